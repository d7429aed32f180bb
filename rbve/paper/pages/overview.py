"""How to read the page: what was run at which scale, and how much of it is there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rbve.paper import experiments
from rbve.paper.experiments import Outline, Theory
from rbve.paper.finals import final_of
from rbve.paper.pages.gather import Study, shown
from rbve.paper.pages.html import folded, paragraph, table
from rbve.paper.results import theory_runs
from rbve.policy.trained import averaged
from rbve.report.page import Section
from rbve.report.table import ABSENT
from rbve.rows import Run

COLUMNS = (
    "experiment",
    "question",
    "in the paper",
    "runs",
    "datasets per problem",
    "updates",
    "target copied every",
    "batch",
    "settings per method",
    "evaluation",
)
FILES = {"claims.csv": "the claims", "summary.csv": "every method on every problem"}


def section(study: Study, judged: bool = True) -> Section:
    wanted = set().union(*study.jobs.values())
    there = sum(job in study for job in wanted)
    runs = (
        f"{there:,} runs" if there == len(wanted) else f"{there:,} of {len(wanted):,} runs so far"
    )
    if other := len(set(study.runs) - wanted):
        runs += f", and {other:,} of no experiment"
    body = paragraph(f"{runs}." if study.runs else "Nothing was trained.", "headline") + paragraph(
        "A dataset is one recording of an online agent (or of its best snapshot, or of a "
        "player written for the game); methods learn from a share of its episodes and never "
        "act while they learn. A problem is a kind of data; its datasets differ in the seed "
        "of the recording, and n counts them. Where a method has several settings, the one "
        "reported on a dataset was chosen by score on the other datasets; the paper's way, the "
        "best setting of all, stands beside it. Evaluation is without noise."
    )
    return Section(
        "reading",
        "How to read this page",
        body,
        after=folded(
            "Experiments: their questions and sizes",
            table("experiments", COLUMNS, lines(study), words=True),
        ),
        short="How to read",
        first=True,
        linked=FILES if judged else {"summary.csv": FILES["summary.csv"]},
    )


def lines(study: Study) -> list[tuple[str, ...]]:
    """Every experiment of the package, run or not, where any was; then those of users' files."""
    found: list[tuple[str, ...]] = []
    theory = theory_runs(study.paths)
    listed: dict[str, Outline | Theory] = {}
    if theory or not set(study.experiments) <= set(study.outlines):
        listed.update((name, experiments.load(name)) for name in experiments.names())
    for name, each in {**listed, **study.experiments}.items():
        if isinstance(each, Outline):
            there, wanted = study.progress(name)
            count = f"{there:,} of {wanted:,}" if wanted else "not run"
            own = [study.runs[job] for job in study.jobs.get(name, ()) if job in study.runs]
            found.append((name, each.question, each.paper or ABSENT, count, *sizes(own)))
        else:
            known = len(theory.get(name, ()))
            count = f"{known:,}" if known else "not run"
            found.append((name, experiments.summary(name), each.paper, count, *sizes([])))
    return found


def sizes(runs: Sequence[Run]) -> tuple[str, ...]:
    """The last COLUMNS, as the runs' own specifications have them."""
    if not runs:
        return (ABSENT,) * 6
    lengths = ("steps", "every", "final_evaluations")
    datasets: dict[Any, set[int]] = {}
    settings: dict[Any, set[str]] = {}
    for each in (final_of(run, {}) for run in runs):
        datasets.setdefault(each.problem, set()).add(each.seed)
        settings.setdefault((each.problem, shown(each)), set()).add(each.settings)
    last = [averaged(*(run.field(name) for name in lengths)) for run in runs]
    return (
        span(len(seeds) for seeds in datasets.values()),
        span(run.field("steps") for run in runs),
        f"{span(run.field('target_period') for run in runs)} updates",
        span(run.field("batch_size") for run in runs),
        span(len(each) for each in settings.values()),
        f"{span(run.field('eval_episodes') for run in runs)} episodes every "
        f"{span(run.field('every') for run in runs)} updates, the last {span(last)} averaged",
    )


def span(values: Iterable[int]) -> str:
    known = sorted(set(values))
    return f"{known[0]:,}" if len(known) == 1 else f"{known[0]:,} to {known[-1]:,}"
