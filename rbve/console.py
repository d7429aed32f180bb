"""What a person sees: progress on a terminal or in a log, tables, JSON, errors in one line."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any, NoReturn, Protocol

LOG_SECONDS = 60.0  # between lines of progress in a file
EXPLANATION = 9 * " "  # indents the words on an option in a complaint of the parser


class Bar(Protocol):
    """Progress, whoever shows it; called from any thread."""

    def reach(self, done: int, total: int) -> None:
        """Say how far it is, where the total shows only as work goes on."""

    def advance(self, count: float, latest: float | None = None) -> None:
        """Say how much more is done, and the latest return."""


class Line:
    """On a terminal: what, how far, rate, time left and the latest return, always up to date."""

    def __init__(self, progress: Any, task: Any) -> None:
        self._progress, self._task = progress, task

    def reach(self, done: int, total: int) -> None:
        self._progress.update(self._task, completed=done, total=total or None)

    def advance(self, count: float, latest: float | None = None) -> None:
        self._progress.update(self._task, advance=count, latest=last_return(latest))


class Log:
    """In a file: a line a minute, so that short work says nothing."""

    def __init__(
        self, what: str, total: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what, self._total, self._clock = what, total, clock
        self._done = 0.0
        self._began = self._said = clock()
        self._lock = threading.Lock()

    def reach(self, done: int, total: int) -> None:
        with self._lock:
            self._done, self._total = done, total
            self._say("")

    def advance(self, count: float, latest: float | None = None) -> None:
        with self._lock:
            self._done += count
            self._say(last_return(latest))

    def _say(self, latest: str) -> None:
        now = self._clock()
        if now - self._said < LOG_SECONDS:
            return
        self._said = now
        taken = now - self._began
        share = min(self._done / self._total, 1.0) if self._total else 0.0
        parts = (
            f"{share:.0%}" if share else "",
            f"{taken / 60:.0f} min",
            f"{taken * (1 / share - 1) / 60:.0f} min left" if share else "",
            latest,
        )
        print(f"{self._what}: {', '.join(filter(None, parts))}", file=sys.stderr, flush=True)


def last_return(latest: float | None) -> str:
    return "" if latest is None or math.isnan(latest) else f"return {latest:.2f}"


@contextmanager
def bar(what: str, total: int | None, unit: str) -> Iterator[Bar]:
    if not sys.stderr.isatty():
        yield Log(what, total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Any) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None or not unit else f"{speed:,.0f} {unit}/s")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        Rate(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[latest]}"),
    )
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=60) as progress:
        yield Line(progress, progress.add_task(what, total=total, latest=""))


def print_figures(title: str, figures: Mapping[str, Any]) -> None:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("measure")
    table.add_column("value", justify="right")
    for name, value in figures.items():
        table.add_row(name.replace("_", " "), shown(value))
    output().print(table)


def output() -> Any:
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 140)


def shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def show_notes(notes: Sequence[str]) -> None:
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def show_written(path: Path) -> None:
    """One line about what a conversion wrote."""
    from rbve.audit.verdict import counted
    from rbve.data.manifest import MANIFEST, read_manifest

    if not (path / MANIFEST).is_file():
        print(f"{path}: {path.stat().st_size:,} bytes" if path.is_file() else path)
        return
    held = read_manifest(path)
    decisions, actions = held["rows"] - held["episodes"], held["actions"]
    print(
        f"{path}: {counted(held['episodes'], 'episode')}, {counted(decisions, 'decision')}, "
        f"{counted(len(actions), 'action')} ({', '.join(actions[:8])}"
        f"{', …' if len(actions) > 8 else ''})"
    )


def log_options(flags: Any, toml: Path | None) -> Any:
    """Which column is what, from flags and, where they are silent, a TOML file."""
    if toml is None:
        return flags
    from rbve.data.formats import choices
    from rbve.data.logs.options import from_toml

    return dataclasses.replace(from_toml(toml), **choices(flags))


def show_figures(title: str, figures: Mapping[str, Any], as_json: bool) -> None:
    print(json.dumps(figures)) if as_json else print_figures(title, figures)


def show_runs(runs: Sequence[Any], as_json: bool) -> None:
    """Final figures of runs, one table per problem."""
    from rbve.report import table
    from rbve.report.summary import group

    problems = group(runs)
    if as_json:
        print(json.dumps(table.as_json(problems)))
    else:
        for each in table.tables(problems):
            output().print(each)


def show_claims(judged: Sequence[Any], as_json: bool) -> None:
    """Verdicts on the paper's claims, and how many there are of each."""
    from rich.table import Table
    from rich.text import Text

    from rbve.report import claims_table

    if as_json:
        names = [name.lower().replace(" ", "_").replace("'", "") for name in claims_table.COLUMNS]
        lines = [dict(zip(names, claims_table.cells(each), strict=True)) for each in judged]
        print(json.dumps({"claims": lines}))
        return
    shown = ("verdict", "claim", "judged on", "judged again on", "verdict there")
    table = Table(*shown, title=Text("The paper's claims, measured here"))
    for each in judged:
        found = dict(zip(claims_table.COLUMNS, claims_table.cells(each), strict=True))
        table.add_row(*(Text(found[name]) for name in shown))
    output().print(table)
    output().print(claims_table.tally(judged))


def show_policies(folders: Sequence[Path], at_most: int = 8) -> None:
    """Where the trained policies are."""
    for folder in folders[:at_most]:
        print(f"policy: {folder / 'policy.safetensors'}", file=sys.stderr)
    if len(folders) > at_most:
        print(f"and {len(folders) - at_most} more beside them", file=sys.stderr)


def replace_unknown_letters() -> None:
    """Where a terminal's alphabet lacks some: λ as ? rather than an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


@contextmanager
def one_line_errors() -> Iterator[None]:
    """The parser's boxed complaint as one line; help passes through."""
    caught = io.StringIO()
    try:
        with redirect_stderr(caught):
            yield
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        fail(unboxed(caught.getvalue()))


def unboxed(complaint: str) -> str:
    """Its sections in a row, without the title, and without what explains an option at length."""
    sections: list[dict[str, None]] = [{}]
    for line in complaint.splitlines():
        inside = line.strip("│")
        if line.startswith("╭") or not inside.strip(" ─-╰╯"):  # plain where letters are ASCII
            sections.append({})
        elif not inside.startswith(EXPLANATION):
            sections[-1][inside.strip()] = None  # what is said twice is said once
    said = sections[1:] if any(sections[1:]) else sections  # the first holds the title
    return "; ".join(" ".join(section) for section in said if section)


def fail(message: str, code: int = 2) -> NoReturn:
    # Names and values of a file may hold anything, line breaks too.
    print(f"rbve: {' '.join(message.splitlines())}", file=sys.stderr)
    sys.exit(code)
