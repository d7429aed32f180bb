"""How a command ends: a line and an exit code, or a traceback where somebody's code is wrong.

0    done
1    code failed: rbve's own, or an algorithm or environment of the user's (a traceback)
2    bad input, a damaged file, something in use by another process
3 4  verdicts of `rbve inspect`
5    training diverged
130  stopped by Ctrl-C; 143 by SIGTERM; 141 when nobody reads the output any more
"""

import os
import signal
import sys
import sysconfig
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rbve import stopping
from rbve.cli import _console
from rbve.stopping import Stopped

PACKAGE = str(Path(__file__).parents[1])
STANDARD = sysconfig.get_paths()["stdlib"]
_INSTALLED = {"site-packages", "dist-packages"}
WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
STOPPED = tuple(128 + number for number in WORDS)  # exit codes


@contextmanager
def told_in_one_line(command: str = "") -> Iterator[None]:
    """What a command raises as one line on stderr and an exit code."""
    received: list[int] = []  # signals
    try:
        with _signals_raised(received), _warnings_as_notes():
            try:
                yield
            finally:
                sys.stdout.flush()
    except BrokenPipeError:
        for stream in (sys.stdout, sys.stderr):  # lest the interpreter complain at its end
            try:
                stream.flush()
            except OSError:
                with suppress(OSError):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except (KeyboardInterrupt, Stopped):
        number = received[0] if received else signal.SIGINT
        word = WORDS[signal.Signals(number)]
        resumes = getattr(sys.modules.get(f"rbve.cli.{command}"), "RESUMES", False)
        more = "; run the same command again to go on" if resumes else ""
        _console.fail(f"{word}; what was finished is kept{more}", code=128 + number)
    except (MemoryError, OverflowError, RuntimeError) as error:
        first = (str(error) or "out of memory").splitlines()[0]
        if isinstance(error, RuntimeError) and "RESOURCE_EXHAUSTED" not in first:
            raise
        _console.fail(f"{type(error).__name__}: {first}; try smaller numbers")
    except (ValueError, ImportError) as error:
        if is_of_user_code(error):
            raise
        _console.fail(str(error))
    except OSError as error:  # names its file, whoever opened it
        _console.fail(str(error))


@contextmanager
def _signals_raised(received: list[int]) -> Iterator[None]:
    """SIGINT and SIGTERM as KeyboardInterrupt in the main thread; a second one ends the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: Any) -> None:
        if received:
            os._exit(128 + number)
        received.append(number)
        stopping.ask()
        raise KeyboardInterrupt

    def complain(unraisable: Any) -> None:
        """Python tells of exceptions that get lost in callbacks; the signal is heeded anyway."""
        if not (received and unraisable.exc_type is KeyboardInterrupt):
            usual(unraisable)

    usual, sys.unraisablehook = sys.unraisablehook, complain
    # Whoever started the process may have had a signal ignored, such as `nohup` or a shell's `&`.
    before = {number: signal.getsignal(number) for number in WORDS}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = usual
        stopping.clear()


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Any, category: type[Warning], *place: Any) -> None:
            if issubclass(category, UserWarning):
                _console.show_notes([str(message)])
            else:
                usual(message, category, *place)

        warnings.showwarning = show  # type: ignore[assignment]
        yield


def leave_at_once(code: int) -> None:
    """End the process without the interpreter's teardown.

    A signal that comes while JAX traces or compiles leaves its objects such that freeing them
    often crashes. What had to be saved or removed has been, on the way of the exception.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # closed, or nobody reads
            stream.flush()
    os._exit(code)


def is_of_user_code(error: BaseException | None) -> bool:
    """Whether it, or what caused it, passed through a file that is neither rbve's nor of an
    installed package."""
    if error is None:
        return False
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    foreign = (
        Path(file).is_file()
        and not file.startswith((PACKAGE + os.sep, STANDARD + os.sep))
        and not _INSTALLED & set(Path(file).parts)
        for file in files
    )
    return any(foreign) or is_of_user_code(error.__cause__)
