"""What a person sees: progress on a terminal or in a log, tables, JSON, errors in one line."""

import io
import json
import math
import os
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

_LOG_SECONDS = 60.0  # between lines of progress in a file
_LEAST_SECONDS, _LEAST_SHARE = 30.0, 0.01  # since the first report, to estimate the time left
_GOOD_PART = 0.1  # of all work, to estimate it from the beginning on
_TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # the direction of writing


class Log:
    """Progress in a file: a line a minute, so that short work says nothing. For any thread."""

    def __init__(
        self, what: str, total: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what, self._total, self._clock = what, total, clock
        self._done = 0.0
        self._began = self._said = clock()
        self._first: tuple[float, float] | None = None  # report: when, and how much was done
        self._lock = threading.Lock()
        self._where, self._retried = "", 0  # of a cluster

    def reach(self, done: int, total: int) -> None:
        """Say how far it is, where the total shows only as work goes on."""
        with self._lock:
            self._done, self._total = done, total
            self._show("", self._clock())

    def advance(self, count: float, latest: float | None = None) -> None:
        """Say how much more is done, and the latest return."""
        known = latest is not None and not math.isnan(latest)
        with self._lock:
            self._done += count
            self._show(f"return {latest:.2f}" if known else "", self._clock())

    def trained(self, progress: Any) -> None:
        """Say that a member was evaluated: updates since its last evaluation, and its return."""
        every = progress.job.evaluation.every
        done = progress.step - (progress.step - 1) // every * every
        self.advance(done, progress.metrics.get("return"))

    def cluster(self, status: Any) -> None:
        """Say how a cluster is doing."""
        alive = [node for node in status.nodes if node.alive]
        tasks = sum(node.tasks for node in alive)
        words = f"{len(alive)} node{'s' * (len(alive) != 1)}, {tasks} task{'s' * (tasks != 1)}"
        with self._lock:
            if status.retried > self._retried:
                self._retried = status.retried
                tell(f"note: tried again: {status.reason}")
            self._where = words
            self._show("", self._clock())

    def _left(self, now: float) -> float | None:
        """Seconds left, by what was done since the first report, or by all if that is a good part.

        None at first: compilation comes before the first report, and these may come in a burst.
        """
        done, total = self._done, self._total
        if not total or not done:
            return None
        self._first = self._first or (now, done)
        when, before = self._first
        if now - when >= _LEAST_SECONDS and done - before >= _LEAST_SHARE * total:
            return (now - when) / (done - before) * max(total - done, 0)
        return (
            (now - self._began) / done * max(total - done, 0)
            if done >= _GOOD_PART * total
            else None
        )

    def _show(self, latest: str, now: float) -> None:
        left = self._left(now)
        if now - self._said < _LOG_SECONDS:
            return
        self._said = now
        share = min(self._done / self._total, 1.0) if self._total else 0.0
        parts = (
            f"{share:.0%}" if share else "",
            f"{(now - self._began) / 60:.0f} min",
            "" if left is None else f"{left / 60:.0f} min left",
            self._where,
            latest,
        )
        with suppress(OSError):  # nobody reads it; the work goes on
            tell(f"{self._what}: {', '.join(filter(None, parts))}")


class Line(Log):
    """On a terminal: what, how far, rate, time left and the latest return, always up to date."""

    def __init__(self, what: str, total: float | None, progress: Any) -> None:
        super().__init__(what, total)
        self._progress = progress
        self._task = progress.add_task(what, total=total, latest="", left="")

    def cluster(self, status: Any) -> None:
        super().cluster(status)
        self._progress.show(status)

    def _show(self, latest: str, now: float) -> None:
        left = self._left(now)
        words = f"{left:.0f} s left" if left is not None else ""
        if left is not None and left >= 60:
            words = f"{left / 60:.0f} min left"
        figures = {"completed": self._done, "total": self._total or None}
        self._progress.update(self._task, latest=latest, left=words, **figures)


@contextmanager
def bar(what: str, total: int | None, unit: str) -> Iterator[Log]:
    if not sys.stderr.isatty():
        yield Log(what, total)
        return
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Any) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None or not unit else f"{speed:,.0f} {unit}/s")

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        Rate(),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.fields[latest]}"),
    )

    class Lines(Progress):
        """With a table of a cluster's nodes above them, where there is one."""

        def show(self, status: Any) -> None:
            self.nodes = node_table(status)
            self.refresh()

        def get_renderables(self) -> Iterator[Any]:
            if nodes := getattr(self, "nodes", None):
                yield nodes
            yield from super().get_renderables()

    with Lines(*columns, console=output(errors=True), speed_estimate_period=60) as progress:
        yield Line(what, total, progress)


def node_table(status: Any) -> Any:
    """The nodes of a cluster: what each does, and what waits."""
    from rich.table import Table

    waits = f"{status.waiting:,} members wait, {status.queued} tasks queued"
    retried = f", {status.retried} tried again" if status.retried else ""
    table = Table(title=f"{waits}{retried}", title_justify="left", box=None)
    for name in ("node", "cores", "tasks", "finished", "updates"):
        table.add_column(name, justify="left" if name == "node" else "right")
    for node in status.nodes:
        state = "" if node.alive else " (lost)"
        counts = (f"{node.tasks}", f"{node.finished:,}", f"{node.updates:,}")
        table.add_row(f"{node.name}{state}", f"{node.cores:g}", *counts)
    return table


def output(errors: bool = False) -> Any:
    """A rich console, of stdout or stderr, that prints names as they are: no markup in them, and no
    control characters, which could write anywhere on a terminal."""
    from rich.console import Console

    class Plain(Console):
        def render(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
            for segment in super().render(*args, **kwargs):
                text = segment.text
                yield segment if segment.control else segment._replace(text=escaped(text, "\n"))

        def on_broken_pipe(self) -> None:
            raise  # the BrokenPipeError that is being handled

    width = None if errors or sys.stdout.isatty() else 140
    return Plain(width=width, stderr=errors, markup=False, emoji=False)


def escaped(text: str, kept: str = "") -> str:
    """With control characters, and those that turn the direction of writing, as \\x1b and so on."""
    if text.isprintable():
        return text
    codes = {
        ord(letter): letter.encode("unicode_escape").decode()
        for letter in set(text) - set(kept)
        if unicodedata.category(letter) in ("Cc", "Cs") or letter in _TURNING
    }
    return text.translate(codes)


def say(text: str) -> None:
    print(escaped(text))


def tell(text: str) -> None:
    """A line on stderr."""
    print(escaped(text), file=sys.stderr, flush=True)


def shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def show_notes(notes: Sequence[str]) -> None:
    for note in notes:
        tell(f"note: {note}")


def show_runs(runs: Sequence[Any], as_json: bool) -> None:
    """Final figures of runs, one table per problem."""
    from rbve.report import table
    from rbve.report.summary import group

    problems = group(runs)
    if as_json:
        print(json.dumps(table.as_json(problems)))
    else:
        for problem in problems:
            output().print(table.table(problem))


def prepare_streams() -> None:
    """Somewhere to write to, and where a terminal's alphabet lacks letters: λ as ?, no error."""
    for handle in (0, 1, 2):  # closed ones, in this order: each call takes the lowest that is free
        try:
            os.fstat(handle)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def fail(message: str, code: int = 2) -> NoReturn:
    # Names and values of a file may hold anything, line breaks too.
    with suppress(OSError):
        tell(f"rbve: {' '.join(message.splitlines())}")
    sys.exit(code)
