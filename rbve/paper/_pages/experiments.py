"""An experiment's sections: what was asked, how much of it was run, its figures and tables."""

from dataclasses import replace

from rbve.paper._pages import render
from rbve.paper._pages.figures import parts
from rbve.paper._pages.gather import Study
from rbve.report.page import Section

# Title and its short form, in the order of the page; others follow under their own name.
_TITLES = {
    "bsuite": ("Scores by method", "Scores"),
    "bsuite_paper": ("Cartpole at the paper's size", "Paper's size"),
    "fractions": ("Scarce data", "Scarce data"),
    "ranking_strength": ("The strength of ranking, λ", "Strength λ"),
    "reward_distribution": ("Only poor, or only good, episodes", "Poor or good data"),
    "coverage": ("Coverage: an expert's data with noise", "Coverage"),
    "filters": ("Which states are ranked: filters", "Filters"),
    "ranking_forms": ("Forms and numbers of the ranking term", "Ranking forms"),
    "logged_action": ("Actions chosen or executed", "Logged action"),
    "minatar": ("MinAtar: scores by method", "MinAtar"),
    "minatar_tuning": ("MinAtar: settings tried on one game", "MinAtar, settings"),
    "minatar_tenth": ("MinAtar: a tenth of the data", "MinAtar, a tenth"),
    "minatar_fractions": ("MinAtar: scarce data", "MinAtar, scarce"),
    "minatar_strength": ("MinAtar: the strength of ranking, λ", "MinAtar, λ"),
    "minatar_rewards": ("MinAtar: only poor, or only good, episodes", "MinAtar, poor or good"),
    "minatar_kinds": ("MinAtar: kinds of data (not in the paper)", "MinAtar, kinds"),
    "boxing": ("Boxing, from frames alone", "Boxing"),
    "doom": ("Doom, from frames alone", "Doom"),
    "memory": ("Levels with memory: scores by method", "Memory"),
    "memory_coverage": ("Levels with memory: an expert's data with noise", "Memory, coverage"),
    "memory_weights": ("Levels with memory: raw weights", "Memory, raw weights"),
}
# Said before what several of them have: figures and further sections. bsuite's are the plain ones.
_TOPICS = {"minatar": "MinAtar", "boxing": "Boxing", "doom": "Doom", "memory": "Levels with memory"}


def sections(study: Study) -> list[Section]:
    others = sorted(set(study.experiments) - set(_TITLES))
    names = [name for name in (*_TITLES, *others) if name in study.experiments]
    return [section for name in names for section in _of(study, name)]


def _of(study: Study, name: str) -> list[Section]:
    """The experiment's own section, then those of figures that make one."""
    plain = name.replace("_", " ")
    title, short = _TITLES.get(name, (plain, plain))
    # Said before titles, which say what they are of; '' for bsuite's.
    topic = _TOPICS.get(name.partition("_")[0], "") if name in _TITLES else title

    def prefixed(text: str) -> str:
        return f"{topic}: {text[0].lower()}{text[1:]}" if topic else text

    title = study.experiments[name].title or title
    own = Section(name.replace("_", "-"), title, _words(study, name), short=short)
    after = []
    for part in parts() if study.of(name) else ():
        figures = part.figures(study, name)
        if figures is None:
            continue
        drawn = tuple(replace(each, title=prefixed(each.title)) for each in figures)
        tables = part.tables(study, name) if hasattr(part, "tables") else ""
        if not part.TITLE:
            own = replace(own, charts=own.charts + drawn, after=own.after + tables)
            continue
        slug = f"{own.id}-{part.SHORT.lower().replace(' ', '-')}"
        heading, body = prefixed(part.TITLE), render("about.jinja", about=part.ABOUT)
        entry = f"{short}, {part.SHORT.lower()}" if topic else part.SHORT
        after.append(Section(slug, heading, body, drawn, tables, entry))
    return [own, *after]


def _words(study: Study, name: str) -> str:
    known = study.listed[name]
    there, count = study.progress(known.jobs)
    facts = [each for each in study.facts(study.of(name)) if "reference_source" in each]
    return render(
        "experiment.jinja",
        experiment=study.experiments[name],
        there=there,
        count=count,
        proxies=sorted({str(each["reference_source"]) for each in facts}),
        left_out=known.left_out,
    )
