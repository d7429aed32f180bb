"""An experiment's sections: what was asked, how much of it was run, its figures and tables."""

from __future__ import annotations

from dataclasses import replace

from rbve.paper.pages._render import render
from rbve.paper.pages.figures import parts
from rbve.paper.pages.gather import Study
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


def sections(study: Study) -> list[Section]:
    known = list(TITLES)
    names = sorted(
        study.experiments, key=lambda n: (known.index(n) if n in known else len(known), n)
    )
    return [section for name in names for section in _of(study, name)]


def _of(study: Study, name: str) -> list[Section]:
    """The experiment's own section, then those of figures that make one."""
    title, short = study.experiments[name].title or _titles(name)[0], _titles(name)[1]
    own = Section(name.replace("_", "-"), title, _words(study, name), short=short)
    after = []
    for part in parts() if study.of(name) else ():
        figures = part.figures(study, name)
        if figures is None:
            continue
        drawn = tuple(replace(each, title=_prefixed(name, each.title)) for each in figures)
        tables = part.tables(study, name) if hasattr(part, "tables") else ""
        if not part.TITLE:
            own = replace(own, charts=own.charts + drawn, after=own.after + tables)
            continue
        slug = f"{own.id}-{part.SHORT.lower().replace(' ', '-')}"
        heading, body = _prefixed(name, part.TITLE), render("about.jinja", about=part.ABOUT)
        entry = f"{short}, {part.SHORT.lower()}" if _topic(name) else part.SHORT
        after.append(Section(slug, heading, body, drawn, tables, entry))
    return [own, *after]


def _titles(name: str) -> tuple[str, str]:
    plain = name.replace("_", " ")
    return TITLES.get(name, (plain, plain))


def _topic(name: str) -> str:
    """'' for bsuite's."""
    return TOPICS.get(name.partition("_")[0], "") if name in TITLES else _titles(name)[0]


def _prefixed(name: str, text: str) -> str:
    """Titles say what they are of."""
    topic = _topic(name)
    return f"{topic}: {text[0].lower()}{text[1:]}" if topic else text


def _words(study: Study, name: str) -> str:
    there, count = study.progress(name)
    facts = [each for each in study.facts(study.of(name)) if "reference_source" in each]
    return render(
        "experiment.jinja",
        experiment=study.experiments[name],
        there=there,
        count=count,
        proxies=sorted({str(each["reference_source"]) for each in facts}),
        left_out=study.left_out.get(name, {}),
    )
