"""The paper's claims beside what was measured, from the rows of a study."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from markupsafe import Markup

from rbve.paper._pages import render, sizes_table
from rbve.paper._pages.gather import Study
from rbve.paper.claims import MEMORY, MINATAR, OWN_TABLES, SECOND, Claim, Judged
from rbve.paper.judging.verdicts import VERDICTS, Judgement
from rbve.report import sheet
from rbve.report.figure import Figure
from rbve.report.page import Section
from rbve.report.render import part

_NOT_ASKED = "–"  # where nothing else stands in for the paper's data
_CELLS: dict[str, Callable[[Judged], str]] = {
    "verdict": lambda each: each.judgement.verdict,
    "claim": lambda each: each.claim.text,
    "measured here": lambda each: each.judgement.measured,
    "rule": lambda each: each.claim.rule,
    "judged on": lambda each: each.claim.here,
    "in the paper": lambda each: each.claim.paper,
    "the paper's numbers": lambda each: each.claim.printed,
    "judged again on": lambda each: each.claim.again.where if each.claim.again else _NOT_ASKED,
    "verdict there": lambda each: each.again.verdict if each.again else _NOT_ASKED,
    "measured there": lambda each: each.again.measured if each.again else _NOT_ASKED,
}
COLUMNS = tuple(_CELLS)
_FILTERS = ("verdict", "judged again on", "verdict there")


class _Verdict(NamedTuple):
    """On one kind of data, as a main claim's card shows it."""

    where: str
    judgement: Judgement


def cells(judged: Judged) -> tuple[str, ...]:
    """Of one claim, by COLUMNS."""
    return tuple(cell(judged) for cell in _CELLS.values())


def as_csv(judged: Sequence[Judged]) -> str:
    return sheet.as_csv(COLUMNS, map(cells, judged))


def section(judged: Sequence[Judged], figures: Mapping[str, Figure], study: Study) -> Section:
    """The main claims with those of the page's figures that show them, the others in a table, the
    sizes behind all; `figures` by name."""
    others = [each for each in judged if not each.claim.figure]
    body = render(
        "claims.jinja",
        tally=tally(judged),
        main=[_card(each, figures) for each in judged if each.claim.figure],
        columns=COLUMNS,
        filters=_FILTERS,
        rows=list(map(cells, others)),
        verdicts=VERDICTS,
        absent=_NOT_ASKED,
        sizes=(sizes_table.COLUMNS, sizes_table.rows(judged, study)),
    )
    return Section("claims", "The paper's claims, measured here", body, short="Claims")


def _card(each: Judged, figures: Mapping[str, Figure]) -> dict[str, object]:
    names = [name for name in _figure_names(each.claim) if name in figures]
    drawn = [replace(figures[name], name=f"claim-{name}") for name in names]
    verdicts = [_Verdict(each.claim.here, each.judgement)]
    if each.claim.again and each.again:
        verdicts.append(_Verdict(each.claim.again.where, each.again))
    shown = {name: Markup(part("figure", own)) for name, own in zip(names, drawn, strict=True)}
    return {"claim": each.claim, "verdicts": verdicts, "figures": shown}


def _figure_names(claim: Claim) -> Iterator[str]:
    """In the page: of the experiment that judges it, and of the one that does so again."""
    for experiment in (claim.experiment, claim.again.experiment if claim.again else ""):
        name = f"{experiment}-{claim.figure}".replace("_", "-")
        yield from (name, f"theory-{name}")


def tally(judged: Sequence[Judged]) -> str:
    """All claims; those that only the paper's own words speak about; those judged again."""
    own = [each.judgement for each in judged if each.claim.here == OWN_TABLES]
    sentences = [f"{len(judged)} claims: {_counted([each.judgement for each in judged])}."]
    if own:
        sentences.append(f"Of these {len(own)} set the paper against itself: {_counted(own)}.")
    for second in (MINATAR, MEMORY):
        own = [e.again for e in judged if e.again and SECOND.get(e.claim.here) is second]
        if any(each.verdict != "not run" for each in own):
            words = f"The {len(own)} about {second.about}, on {second.where}"
            sentences.append(f"{words}: {_counted(own)}.")
    return " ".join(sentences)


def _counted(judgements: Sequence[Judgement]) -> str:
    verdicts = [each.verdict for each in judgements]
    return ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS)
