"""What each verdict stands on: how much data, how many updates, and whether they suffice."""

from collections.abc import Iterator, Mapping, Sequence

from rbve.paper._pages.measures import span
from rbve.paper.claims import Judged
from rbve.paper.judging.verdicts import Size
from rbve.report import sheet
from rbve.report.statistics import finite
from rbve.report.table import ABSENT, number
from rbve.rows import Run

COLUMNS = (
    "verdict", "claim", "judged on", "environments", "datasets", "transitions",
    "passes over them", "updates", "batch", "settings per method", "scores flat", "order, longer",
)  # fmt: skip


def rows(judged: Sequence[Judged], runs: Mapping[str, Run]) -> list[tuple[str, ...]]:
    """One for every verdict that training stands behind, by COLUMNS; `runs` by job."""
    return [
        (judgement.verdict, each.claim.text, where, *_cells(judgement.size, runs))
        for each in judged
        for judgement, where in (
            (each.judgement, each.claim.here),
            (each.again, each.claim.again.where if each.claim.again else ""),
        )
        if judgement is not None and judgement.size is not None
    ]


def as_csv(rows: Sequence[Sequence[str]]) -> str:
    return sheet.as_csv(COLUMNS, rows)


def _cells(size: Size, runs: Mapping[str, Run]) -> Iterator[str]:
    finals = [final for curve in size.curves for final in curve]
    own = [runs[job] for job in dict.fromkeys(final.job for final in finals)]
    yield ", ".join(sorted({final.problem.env for final in finals}))
    yield span(len({final.seed for final in curve}) for curve in size.curves)
    yield _numbers(run.facts.get("transitions") for run in own)
    yield _numbers(map(_passes, own))
    yield span(run.field("steps") for run in own)
    yield _batches(own)
    yield span(len({final.settings for final in curve}) for curve in size.curves)
    yield size.flat
    yield size.order


def _numbers(values: Iterator[float | None]) -> str:
    known = finite(values)
    if not len(known):
        return ABSENT
    ends = dict.fromkeys(_rounded(end) for end in (known.min(), known.max()))
    return " to ".join(ends)


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else number(value)


def _passes(run: Run) -> float | None:
    """How many times an update saw each transition, on average."""
    drawn = run.field("steps") * run.field("batch_size")
    if not run.field("memory"):
        held = run.facts.get("transitions")
    elif window := run.field("sequence"):
        drawn, held = drawn * window, run.facts.get("transitions")
    else:
        held = run.facts.get("episodes")  # an update sees whole episodes
    return drawn / held if held else None


def _batches(runs: Sequence[Run]) -> str:
    words = span(run.field("batch_size") for run in runs)
    return f"{words} sequences" if any(run.field("memory") for run in runs) else words
