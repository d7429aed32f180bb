"""The paper's claims beside what was measured, from the rows of a study."""

from collections.abc import Callable, Sequence

from rbve.paper._pages import render
from rbve.paper.claims import MEMORY, MINATAR, OWN_TABLES, SECOND, Judged
from rbve.paper.judging.verdicts import VERDICTS, Judgement
from rbve.report import sheet
from rbve.report.page import Section

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


def cells(judged: Judged) -> tuple[str, ...]:
    """Of one claim, by COLUMNS."""
    return tuple(cell(judged) for cell in _CELLS.values())


def as_csv(judged: Sequence[Judged]) -> str:
    return sheet.as_csv(COLUMNS, map(cells, judged))


def section(judged: Sequence[Judged]) -> Section:
    table = {"columns": COLUMNS, "filters": _FILTERS, "rows": list(map(cells, judged))}
    known = {"tally": tally(judged), "verdicts": VERDICTS, "absent": _NOT_ASKED}
    body = render("claims.jinja", **table, **known)
    return Section("claims", "The paper's claims, measured here", body, short="Claims")


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
