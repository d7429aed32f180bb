"""The bsuite figure: every method on every problem, its setting chosen in two ways."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rbve.paper.finals import (
    SCORE,
    Final,
    Problem,
    best_of_all,
    by_setting,
    chosen_on_others,
    on_other_datasets,
)
from rbve.paper.pages.gather import Shown, Study, by_method, by_problem
from rbve.paper.pages.html import folded, paragraph, table
from rbve.paper.pages.measures import SCORE_WORDS, centre, n_words
from rbve.report import statistics
from rbve.report.chart import Chart, Mark, Panel, Series
from rbve.report.labels import PROXY, describe
from rbve.report.table import ABSENT, number

OTHERS, BEST = "setting chosen on other datasets", "best setting of all, the paper's way"
ONE = "one setting a method"  # where there was nothing to choose
COLOURS = {OTHERS: "#0072B2", BEST: "#D55E00"}
BEST_COLUMN = "best of all [95%]"
COLUMNS = (
    "method",
    "score [95%]",
    BEST_COLUMN,
    "return [95%]",
    "over-estimation (median)",
    "n",
    "diverged",
    "settings chosen (× datasets)",
)


class Result(NamedTuple):
    """A method on a problem."""

    method: Shown
    others: dict[int, float]  # dataset -> score; empty where no setting ran on all datasets
    best: dict[int, float]
    finals: list[Final]


Results = Mapping[Problem, Sequence[Result]]


def results(found: Iterable[Final]) -> dict[Problem, list[Result]]:
    return {
        problem: [
            Result(
                method,
                on_other_datasets(mine, SCORE, SCORE),
                best_of_all(mine, SCORE, SCORE),
                mine,
            )
            for method, mine in by_method(own).items()
        ]
        for problem, own in by_problem(found).items()
    }


def ways(known: Results) -> dict[str, str]:
    """Way a setting was chosen -> its words; where each method has but one, both are the same."""
    every = (each for own in known.values() for each in own)
    if any(len(by_setting(each.finals, SCORE)) > 1 for each in every):
        return {OTHERS: OTHERS, BEST: BEST}
    return {OTHERS: ONE}


def chart(study: Study, known: Results, slug: str) -> Chart:
    words = ways(known)
    rings = f"; ring: {BEST}" if BEST in words else ""
    counts = [len(each.others) for own in known.values() for each in own if each.others]
    panels = tuple(panel(study, problem, own, words) for problem, own in known.items())
    proxy = any(mark.name == PROXY for each in panels for mark in each.marks)
    scale = f"0 = random, 100 = {PROXY}" if proxy else SCORE_WORDS
    return Chart(
        name=f"{slug}-scores",
        title="Normalised score by method and problem",
        note=f"{scale}. Dot: mean over datasets, {words[OTHERS]}{rings}; bar: 95% Student "
        f"interval over datasets; faint: single datasets; {n_words(counts)}.",
        kind="rows",
        x_label="method",
        y_label="normalised score",
        panels=panels,
        x_scale="category",
    )


def panel(study: Study, problem: Problem, own: Sequence[Result], words: Mapping[str, str]) -> Panel:
    held = [each for each in own if each.others]
    dots = Series(
        words[OTHERS],
        COLOURS[OTHERS],
        tuple(centre(r.others.values(), SCORE).point(r.method.name) for r in held),
        members=tuple((r.method.name, v) for r in held for v in r.others.values()),
        strong=True,
    )
    rings = Series(
        BEST,
        COLOURS[BEST],
        tuple(centre(r.best.values(), SCORE).point(r.method.name) for r in held),
        marker="ring",
    )
    return Panel(problem.label, (dots, rings) if BEST in words else (dots,), marks(study, own))


def marks(study: Study, own: Sequence[Result]) -> tuple[Mark, ...]:
    """What a score is measured by, and where the data itself lies on that scale."""
    known = study.facts(final for each in own for final in each.finals)
    behaviour = [
        100 * (facts["behaviour_return"] - facts["random_return"])
        / (facts["reference_return"] - facts["random_return"])
        for facts in known
        if comparable(facts)
    ]  # fmt: skip
    best = PROXY if any("reference_source" in facts for facts in known) else "online agent's best"
    found = [Mark(0.0, "random"), Mark(100.0, best)]
    if behaviour:
        found.insert(1, Mark(float(np.mean(behaviour)), "behaviour mean"))
    return tuple(found)


def comparable(facts: Mapping[str, float | None]) -> bool:
    low, high = facts.get("random_return"), facts.get("reference_return")
    return None not in (low, high, facts.get("behaviour_return")) and low != high


def tables(study: Study, known: Results) -> str:
    """A folded table per problem."""
    words = ways(known)
    columns = [name for name in COLUMNS if name != BEST_COLUMN or BEST in words]
    best = " Best of all: the score of the one setting with the best mean." if BEST in words else ""
    return paragraph(
        f"Score, return and over-estimation error: {words[OTHERS]}.{best} Over-estimation error is "
        "a median over datasets, the others are means.",
        "muted",
    ) + "".join(
        folded(
            f"{problem.label}: numbers",
            table(problem.label, columns, [cells(study, each, columns) for each in own], "R-BVE"),
            opened=index == 0,
        )
        for index, (problem, own) in enumerate(known.items())
    )


def cells(study: Study, each: Result, columns: Sequence[str] = COLUMNS) -> tuple[str, ...]:
    choose_by = SCORE if each.others else "return"

    def reported(measure: str) -> list[float]:
        return list(on_other_datasets(each.finals, measure, choose_by).values())

    over = statistics.finite(reported("overestimation"))
    found = (
        each.method.name,
        centre(each.others.values(), SCORE).text,
        centre(each.best.values(), SCORE).text,
        centre(reported("return"), "return").text,
        number(float(np.median(over))) if len(over) else ABSENT,
        str(len(reported("return"))),
        f"{sum(study.diverged(final.job) for final in each.finals):,} of {len(each.finals):,} runs",
        chosen_words(each.finals),
    )
    return tuple(text for name, text in zip(COLUMNS, found, strict=True) if name in columns)


def chosen_words(found: Sequence[Final]) -> str:
    """'lr=0.001 ×4, lr=0.0003 ×1': those parts of the settings that differ."""
    chosen = Counter(chosen_on_others(found, SCORE, SCORE).values())
    tried = [json.loads(each) for each in by_setting(found, SCORE)]
    if not chosen:
        return ABSENT
    names = {name for each in tried for name in each}
    differ = sorted(n for n in names if len({str(each.get(n)) for each in tried}) > 1)
    if not differ:
        return "one setting"
    return ", ".join(
        f"{describe({n: json.loads(setting).get(n) for n in differ})} ×{count}"
        for setting, count in sorted(chosen.items(), key=lambda pair: (-pair[1], pair[0]))
    )
