"""Every method on every problem: normalised scores and what else was measured."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from rbve.paper import finals as of
from rbve.paper._pages import render
from rbve.paper._pages.gather import BEST, COLOURS, OTHERS, Result, Results, Study, results_of, ways
from rbve.paper._pages.measures import SCORE_WORDS, centre, n_words
from rbve.paper.finals import SCORE, Finals, Problem
from rbve.report import statistics
from rbve.report.chart import Chart, Mark, Panel, Series
from rbve.report.labels import PROXY, describe
from rbve.report.table import ABSENT, number

PLACE, TITLE, SHORT, ABOUT = 1, "", "", ""
_BEST_COLUMN = "best of all [95%]"
COLUMNS = (
    "method", "score [95%]", _BEST_COLUMN, "return [95%]", "over-estimation (median)", "n",
    "diverged", "settings chosen (× datasets)",
)  # fmt: skip


def figures(study: Study, name: str) -> list[Chart] | None:
    """Nothing where nobody knows what random play and an online agent return."""
    results = results_of(study, name)
    if not results:
        return None
    scored = any(each.others for own in results.values() for each in own)
    return [chart(study, results, name.replace("_", "-"))] if scored else []


def tables(study: Study, name: str) -> str:
    """A folded table per problem."""
    results = results_of(study, name)
    words = ways(results)
    columns = [name for name in COLUMNS if name != _BEST_COLUMN or BEST in words]
    return render(
        "scores.jinja",
        ways={"others": words[OTHERS], "best": BEST in words},
        columns=columns,
        tables={
            problem.label: [cells(study, each, columns) for each in own]
            for problem, own in results.items()
        },
    )


def chart(study: Study, results: Results, slug: str) -> Chart:
    words = ways(results)
    rings = f"; ring: {BEST}" if BEST in words else ""
    counts = [len(each.others) for own in results.values() for each in own if each.others]
    panels = tuple(_panel(study, problem, own, words) for problem, own in results.items())
    proxy = any(mark.name == PROXY for each in panels for mark in each.marks)
    scale = f"0 = random, 100 = {PROXY}" if proxy else SCORE_WORDS
    note = (
        f"{scale}. Dot: mean over datasets, {words[OTHERS]}{rings}; bar: 95% Student "
        f"interval over datasets; faint: single datasets; {n_words(counts)}."
    )
    title, labels = "Normalised score by method and problem", ("method", "normalised score")
    return Chart(f"{slug}-scores", title, note, "rows", *labels, panels, "category")


def _panel(
    study: Study, problem: Problem, own: Sequence[Result], words: Mapping[str, str]
) -> Panel:
    held = [each for each in own if each.others]
    points = tuple(centre(r.others.values(), SCORE).point(r.method.name) for r in held)
    best = tuple(centre(r.best.values(), SCORE).point(r.method.name) for r in held)
    single = tuple((r.method.name, value) for r in held for value in r.others.values())
    dots = Series(words[OTHERS], COLOURS[OTHERS], points, members=single, strong=True)
    rings = Series(BEST, COLOURS[BEST], best, marker="ring")
    return Panel(problem.label, (dots, rings) if BEST in words else (dots,), marks(study, own))


def marks(study: Study, own: Sequence[Result]) -> tuple[Mark, ...]:
    """What a score is measured by, and where the data itself lies on that scale."""
    known = study.facts(final for each in own for final in each.finals)
    behaviour = statistics.finite(map(of.behaviour_score, known))
    best = PROXY if any("reference_source" in facts for facts in known) else "online agent's best"
    data = [Mark(float(behaviour.mean()), "behaviour mean")] if len(behaviour) else []
    return (Mark(0.0, "random"), *data, Mark(100.0, best))


def cells(study: Study, each: Result, columns: Sequence[str] = COLUMNS) -> tuple[str, ...]:
    """A line of the table."""
    choose_by = SCORE if each.others else "return"

    def reported(measure: str) -> list[float]:
        return list(of.on_other_datasets(each.finals, measure, choose_by).values())

    over = statistics.finite(reported("overestimation"))
    line = (
        each.method.name,
        centre(each.others.values(), SCORE).text,
        centre(each.best.values(), SCORE).text,
        centre(reported("return"), "return").text,
        number(float(np.median(over))) if len(over) else ABSENT,
        str(len(reported("return"))),
        f"{sum(study.diverged(final.job) for final in each.finals):,} of {len(each.finals):,} runs",
        chosen_words(each.finals),
    )
    return tuple(text for name, text in zip(COLUMNS, line, strict=True) if name in columns)


def chosen_words(finals: Finals) -> str:
    """'lr=0.001 ×4, lr=0.0003 ×1': those parts of the settings that differ."""
    chosen = Counter(of.chosen_on_others(finals).values())
    tried = [json.loads(each) for each in of.by_setting(finals, SCORE)]
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
