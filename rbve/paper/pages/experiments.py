"""An experiment's sections: what was asked, how much of it was run, its figures and tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from rbve.paper.experiments import Outline
from rbve.paper.pages import against, aggregates, curves, scores
from rbve.paper.pages.gather import Study
from rbve.paper.pages.html import paragraph
from rbve.report.chart import Chart
from rbve.report.page import Section

# Title and its short form, in the order of the page; others follow under their own name.
TITLES = {
    "bsuite": ("Scores by method", "Scores"),
    "fractions": ("Scarce data", "Scarce data"),
    "ranking_strength": ("The strength of ranking, λ", "Strength λ"),
    "reward_distribution": ("Only poor, or only good, episodes", "Poor or good data"),
    "coverage": ("Coverage: an expert's data with noise", "Coverage"),
    "filters": ("Which states are ranked: filters", "Filters"),
    "ranking_forms": ("Forms and numbers of the ranking term", "Ranking forms"),
    "logged_action": ("Actions chosen or executed", "Logged action"),
    "minatar": ("MinAtar: scores by method", "MinAtar"),
    "minatar_fractions": ("MinAtar: scarce data", "MinAtar, scarce"),
    "minatar_strength": ("MinAtar: the strength of ranking, λ", "MinAtar, λ"),
    "minatar_rewards": ("MinAtar: only poor, or only good, episodes", "MinAtar, poor or good"),
    "boxing": ("Boxing, from frames alone", "Boxing"),
    "doom": ("Doom, from frames alone", "Doom"),
    "memory": ("Levels with memory: scores by method", "Memory"),
    "memory_coverage": ("Levels with memory: an expert's data with noise", "Memory, coverage"),
    "memory_weights": ("Levels with memory: raw weights", "Memory, raw weights"),
}


# Said before what several of them have: figures and further sections. bsuite's are the plain ones.
TOPICS = {"minatar": "MinAtar", "boxing": "Boxing", "doom": "Doom", "memory": "Levels with memory"}


def topic(name: str) -> str:
    """'' for bsuite's."""
    if name in TITLES:
        return TOPICS.get(name.partition("_")[0], "")
    return titles(name)[0]


def prefixed(start: str, text: str) -> str:
    return f"{start}: {text[0].lower()}{text[1:]}" if start else text


def entry(name: str, text: str) -> str:
    """For the table of contents."""
    return f"{titles(name)[1]}, {text.lower()}" if topic(name) else text


def named(charts: Iterable[Chart], name: str) -> tuple[Chart, ...]:
    """Their titles say what they are of."""
    return tuple(replace(each, title=prefixed(topic(name), each.title)) for each in charts)


def in_order(names: Iterable[str]) -> list[str]:
    known = list(TITLES)
    return sorted(names, key=lambda n: (known.index(n) if n in known else len(known), n))


def titles(name: str) -> tuple[str, str]:
    plain = name.replace("_", " ")
    return TITLES.get(name, (plain, plain))


def section(study: Study, name: str) -> list[Section]:
    experiment = study.experiments[name]
    if experiment.figure == "methods":
        return methods(study, name, experiment)
    title, short = experiment.title or titles(name)[0], titles(name)[1]
    charts = named(against.charts(name, experiment, study.of(name)), name)
    body = words(study, name, experiment)
    return [Section(name.replace("_", "-"), title, body, charts, short=short)]


def words(study: Study, name: str, experiment: Outline) -> str:
    there, wanted = study.progress(name)
    count = f"{there:,} runs" if there == wanted else f"{there:,} of {wanted:,} runs so far"
    notes = {
        str(facts["reference_source"])
        for facts in study.facts(study.of(name))
        if "reference_source" in facts
    }
    left_out = study.left_out.get(name, {}).items()
    return (
        paragraph(experiment.question, "headline")
        + paragraph(
            f"{_origin(experiment)} {count}."
            + (" Numbers will change as runs come in." if there < wanted else "")
            + "".join(f" What scores are normalised by is a {note}." for note in sorted(notes)),
            "muted",
        )
        + "".join(paragraph(f"{env} is left out: {reason}.") for env, reason in left_out)
    )


def _origin(experiment: Outline) -> str:
    if experiment.paper:
        return f"In the paper: {experiment.paper}."
    return f"An experiment of {Path(experiment.file).name} ({experiment.version})."


def methods(study: Study, name: str, experiment: Outline) -> list[Section]:
    found = study.of(name)
    known = scores.results(found)
    slug, short = name.replace("_", "-"), titles(name)[1]
    title = experiment.title or titles(name)[0]
    if not known:
        return [Section(slug, title, words(study, name, experiment), short=short)]
    sections = [
        Section(
            slug,
            title,
            words(study, name, experiment),
            named([scores.chart(study, known, slug)] if scored(known) else [], name),
            scores.tables(study, known),
            short,
        ),
        Section(
            f"{slug}-training",
            prefixed(topic(name), "Over training"),
            paragraph(
                "How return and the error of the values develop, problem by problem. Errors are "
                "not known where values were not measured, or all episodes were cut."
            ),
            named(curves.charts(study, found, slug), name),
            short=entry(name, "Training"),
        ),
    ]
    if aggregates.has_several_scores(known):
        sections.insert(1, over_problems(name, slug, known))
    return sections


def scored(known: scores.Results) -> bool:
    """Not where nobody knows what random play and an online agent return."""
    return any(each.others for own in known.values() for each in own)


def over_problems(name: str, slug: str, known: scores.Results) -> Section:
    return Section(
        f"{slug}-over-problems",
        prefixed(topic(name), "Scores over all problems"),
        paragraph(
            "Every problem counts alike. The mean has a Student interval over datasets; the others "
            "are bootstrapped: datasets resampled within each problem, never problems."
        ),
        named(aggregates.charts(known, slug), name),
        aggregates.tables(known),
        entry(name, "Over problems"),
    )
