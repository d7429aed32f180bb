"""What each verdict stands on: how much data, how many updates, and whether they suffice."""

from collections.abc import Iterator, Sequence

from rbve.paper._pages.gather import Study
from rbve.paper._pages.measures import span
from rbve.paper.claims import Judged
from rbve.paper.finals import SCORE, Finals, best_setting, by_setting
from rbve.paper.judging.verdicts import Size
from rbve.report import sheet
from rbve.report.statistics import finite
from rbve.report.table import ABSENT, number
from rbve.rows import Run

COLUMNS = (
    "verdict", "claim", "judged on", "environments", "datasets", "transitions",
    "passes over them", "updates", "batch", "settings tried", "scores flat", "order, longer",
)  # fmt: skip


def rows(judged: Sequence[Judged], study: Study) -> list[tuple[str, ...]]:
    """One for every verdict that training stands behind, by COLUMNS."""
    return [
        (judgement.verdict, each.claim.text, where, *_cells(judgement.size, study, experiment))
        for each in judged
        for judgement, where, experiment in (
            (each.judgement, each.claim.here, each.claim.experiment),
            (each.again, *(each.claim.again or ("", ""))),
        )
        if judgement is not None and judgement.size is not None
    ]


def as_csv(rows: Sequence[Sequence[str]]) -> str:
    return sheet.as_csv(COLUMNS, rows)


def _cells(size: Size, study: Study, experiment: str) -> Iterator[str]:
    finals = [final for curve in size.curves for final in curve]
    own = [study.runs[job] for job in dict.fromkeys(final.job for final in finals)]
    yield ", ".join(sorted({final.problem.env for final in finals}))
    yield span(len({final.seed for final in curve}) for curve in size.curves)
    yield _numbers(run.facts.get("transitions") for run in own)
    yield _numbers(map(_passes, own))
    yield span(run.field("steps") for run in own)
    yield _batches(own)
    yield tried(size.curves, study.tuning.get(experiment))
    yield size.flat
    yield size.order


def tried(curves: Sequence[Finals], tuning: Finals | None = None) -> str:
    """How many settings a method was chosen from, and on which data.

    Args:
        curves: Of each method on each kind of data, all its runs.
        tuning: Where settings are frozen, the runs by which they were to be.
    """
    here = [len({final.settings for final in curve}) for curve in curves]
    if max(here) > 1:
        return f"{span(here)}, each on the other datasets"
    by_algorithm = {
        curve[0].algorithm: [each for each in tuning or () if each.algorithm == curve[0].algorithm]
        for curve in curves
    }
    counts = [
        len(by_setting(own, SCORE)) if best_setting(own) == curve[0].settings else 1
        for curve in curves
        for own in [by_algorithm[curve[0].algorithm]]
    ]
    games = ", ".join(sorted({each.problem.env for own in by_algorithm.values() for each in own}))
    if not games:
        return "1, not tuned"
    if max(counts) == 1:
        return f"1, not the one chosen on {games}"
    return f"{span(counts)}, on another recording of {games}"


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
