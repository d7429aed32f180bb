"""The paper's claims beside what was measured, from the rows of a study."""

from __future__ import annotations

from collections.abc import Sequence

from rbve.paper.claims import MEMORY, MINATAR, OWN_TABLES
from rbve.paper.judging.judge import Judged
from rbve.paper.judging.verdicts import VERDICTS, Judgement
from rbve.paper.pages._render import render
from rbve.report import sheet
from rbve.report.page import Section

COLUMNS = (
    "verdict",
    "claim",
    "measured here",
    "rule",
    "judged on",
    "in the paper",
    "the paper's numbers",
    "judged again on",
    "verdict there",
    "measured there",
)
FILTERS = ("verdict", "judged again on", "verdict there")
NOT_ASKED = "–"  # where nothing else stands in for the paper's data


def cells(judged: Judged) -> tuple[str, ...]:
    """Of one claim, by COLUMNS."""
    claim, judgement, again = judged
    return (
        judgement.verdict,
        claim.text,
        judgement.measured,
        claim.rule,
        claim.here,
        claim.paper,
        claim.printed,
        claim.again.where if claim.again else NOT_ASKED,
        again.verdict if again else NOT_ASKED,
        again.measured if again else NOT_ASKED,
    )


def as_csv(judged: Sequence[Judged]) -> str:
    return sheet.as_csv(COLUMNS, map(cells, judged))


def section(judged: Sequence[Judged]) -> Section:
    body = render(
        "claims.jinja",
        tally=tally(judged),
        columns=COLUMNS,
        filters=FILTERS,
        rows=list(map(cells, judged)),
        verdicts=VERDICTS,
        absent=NOT_ASKED,
    )
    return Section("claims", "The paper's claims, measured here", body, short="Claims")


def tally(judged: Sequence[Judged]) -> str:
    """All claims; those that only the paper's own words speak about; those judged again."""
    own = [each.judgement for each in judged if each.claim.here == OWN_TABLES]
    sentences = [f"{len(judged)} claims: {_counted([each.judgement for each in judged])}."]
    if own:
        sentences.append(f"Of these {len(own)} set the paper against itself: {_counted(own)}.")
    for second in (MINATAR, MEMORY):
        again = [
            each.again
            for each in judged
            if each.again and each.claim.again and each.claim.again.where == second.where
        ]
        if any(each.verdict != "not run" for each in again):
            sentences.append(
                f"The {len(again)} about {second.about}, on {second.where}: {_counted(again)}."
            )
    return " ".join(sentences)


def _counted(judgements: Sequence[Judgement]) -> str:
    verdicts = [each.verdict for each in judgements]
    return ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS)
