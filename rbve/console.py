"""What a person sees: progress on a terminal, tables, JSON, and errors in one line."""

from __future__ import annotations

import io
import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any, NoReturn


class Bar:
    """One line: what, how far, rate, time left and the latest return."""

    def __init__(self, progress: Any, task: Any) -> None:
        self._progress, self._task = progress, task

    def advance(self, count: int, latest: float | None = None) -> None:
        if self._progress is None:
            return
        shown = "" if latest is None or math.isnan(latest) else f"return {latest:.2f}"
        self._progress.update(self._task, advance=count, latest=shown)


@contextmanager
def bar(what: str, total: int, unit: str) -> Iterator[Bar]:
    if not sys.stderr.isatty():
        yield Bar(None, None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Any) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.0f} {unit}/s")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        Rate(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[latest]}"),
    )
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=60) as progress:
        yield Bar(progress, progress.add_task(what, total=total, latest=""))


def print_figures(title: str, figures: Mapping[str, Any]) -> None:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("measure")
    table.add_column("value", justify="right")
    for name, value in figures.items():
        table.add_row(name.replace("_", " "), shown(value))
    output().print(table)


def print_description(path: str, figures: Mapping[str, Any]) -> None:
    """What rbve.inspect.describe found."""
    plain = {
        name: figures[name]
        for name in ("episodes", "transitions", "terminated_episodes", "truncated_episodes")
    }
    for name in ("length", "return", "value"):
        spread = figures[name]
        plain[name] = (
            f"{shown(spread['mean'])} ± {shown(spread['deviation'])}"
            f"   [{shown(spread['min'])} … {shown(spread['median'])} … {shown(spread['max'])}]"
        )
    for name, action in figures["actions"].items():
        plain[f"action {name}"] = f"{action['count']:,} ({action['share']:.1%})"
    for name, effect in figures["ranking_weight"].items():
        if isinstance(effect, dict):
            plain[f"ranking weight, {name}"] = (
                f"{effect['clipped']:.1%} at the cap, "
                f"effective share of the data {effect['effective_share']:.1%}"
            )
    if not figures["provenance"].get("finished", True):
        plain["recording"] = "was interrupted; every complete episode is here"
    print_figures(path, plain)


def output() -> Any:
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 140)


def shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def show_dataset(folder: Path, figures: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"path": str(folder), **figures}))
    else:
        print_description(str(folder), figures)


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
        words = re.sub(r"[─│╭╮╰╯┆]+", " ", caught.getvalue())
        fail(re.sub(r"\s+", " ", words).strip())


def fail(message: str, code: int = 2) -> NoReturn:
    print(f"rbve: {message}", file=sys.stderr)
    sys.exit(code)
