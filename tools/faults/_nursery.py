"""Commands of `rbve` in processes that are forked from one which has imported everything.

So a command is at work at once, and hundreds of kills take minutes. JAX starts in the child alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

CHILD = """
import ctypes, importlib, json, os, pkgutil, resource, signal, sys, time

import rbve.api, rbve.cli, rbve.deciding, rbve.decisions, rbve.off_policy.select, rbve.shipping
import rbve.streaming, rbve.sweep.executors
for each in pkgutil.walk_packages(rbve.__path__, "rbve."):
    if each.name.startswith(("rbve.cli.", "rbve.algorithms.", "rbve.data.", "rbve.behaviours.")):
        if not each.name.endswith("__main__"):
            try:
                importlib.import_module(each.name)
            except ImportError:  # an extra that is not there
                pass

def run(asked, handle):
    os.setsid()
    for stream in (1, 2):
        os.dup2(handle, stream)
    sys.stdout, sys.stderr = (open(each, "w", buffering=1, closefd=False) for each in (1, 2))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(asked["folder"])
    if asked["user"] is not None and os.getuid() == 0:
        os.setgroups([])
        os.setgid(asked["user"])
        os.setuid(asked["user"])
    for name, most in asked["limits"].items():
        resource.setrlimit(getattr(resource, name), (most, most))
    if asked["clock"]:
        now, begin = time.time, time.time()
        time.time = lambda: now() - (asked["clock"] if now() - begin > 0.3 else 0)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler if number == 2 else signal.SIG_DFL)
    sys.argv = ["rbve", *asked["argv"]]
    code = 0
    try:
        rbve.cli.main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        import traceback
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

def heard(pipe, log):
    # What was printed so far, into the log.
    try:
        while held := os.read(pipe, 1 << 16):
            log.write(held)
    except BlockingIOError:
        pass

def wait_for_others(group):
    # Whether processes that the command had started are there seconds after its end.
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.01)
        except ChildProcessError:
            return False
    os.killpg(group, signal.SIGKILL)
    return True

ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans come to this process
print("ready", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    begin = time.monotonic()
    pipe, handle = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(pipe)
        run(asked, handle)
    os.close(handle)
    with open(asked["log"] + ".pid", "w") as file:
        file.write(str(child))
    os.set_blocking(pipe, False)
    log, sent = open(asked["log"], "wb"), False
    while True:
        heard(pipe, log)
        done, status = os.waitpid(child, os.WNOHANG)
        passed = time.monotonic() - begin
        if done:
            break
        if asked["after"] is not None and passed >= asked["after"] and not sent:
            os.kill(child, asked["signal"])
            sent = True
        if passed > 600:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.002)
    left = wait_for_others(child)
    heard(pipe, log)
    os.close(pipe)
    log.close()
    print(json.dumps([os.waitstatus_to_exitcode(status), sent, passed, left]), flush=True)
"""


class Ended(NamedTuple):
    code: int  # −9 of a process that was killed
    sent: bool  # whether the signal came before its end
    seconds: float
    left: bool  # whether processes that it had started outlived it by many seconds
    text: str  # what it printed

    @property
    def last(self) -> str:
        return (self.text.strip().splitlines() or [""])[-1]


class Nursery:
    """Runs one command at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Nursery:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()

    def open(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise RuntimeError("the commands could not be imported")

    def begin(self, argv: Sequence[object], folder: Path, log: Path, **more: Any) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        asked = {"after": None, "signal": 9, "limits": {}, "clock": 0, "user": None, **more}
        asked |= {"argv": [str(each) for each in argv], "folder": str(folder), "log": str(log)}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()

    @staticmethod
    def process_of(log: Path) -> int:
        """The process of the command that writes this log."""
        return int(log.with_name(f"{log.name}.pid").read_text())

    def end(self, log: Path) -> Ended:
        assert self._process is not None
        assert self._process.stdout is not None
        begin = time.monotonic()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the nursery is gone after {time.monotonic() - begin:.0f} s")
        code, sent, seconds, left = json.loads(line)
        text = log.read_text(errors="replace")
        for file in (log, log.with_name(f"{log.name}.pid")):
            file.unlink()
        return Ended(code, sent, seconds, left, text)
