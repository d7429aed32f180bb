"""The paper's claims beside what was measured, from the rows of a study."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rbve.paper.claims import MEMORY, MINATAR, OWN_TABLES
from rbve.paper.judging.judge import Judged
from rbve.paper.judging.verdicts import VERDICTS, Judgement
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


def cells(each: Judged) -> tuple[str, ...]:
    claim, found, again = each
    return (
        found.verdict,
        claim.text,
        found.measured,
        claim.rule,
        claim.here,
        claim.paper,
        claim.printed,
        claim.again.where if claim.again else NOT_ASKED,
        again.verdict if again else NOT_ASKED,
        again.measured if again else NOT_ASKED,
    )


def as_csv(judged: Sequence[Judged]) -> str:
    return sheet.as_csv(COLUMNS, (cells(each) for each in judged))


def section(judged: Sequence[Judged]) -> Section:
    return Section("claims", "The paper's claims, measured here", as_html(judged), short="Claims")


def tally(judged: Sequence[Judged]) -> str:
    """All claims; those that only the paper's own words speak about; those judged again."""
    own = [each.judgement for each in judged if each.claim.here == OWN_TABLES]
    sentences = [f"{len(judged)} claims: {counted([each.judgement for each in judged])}."]
    if own:
        sentences.append(f"Of these {len(own)} set the paper against itself: {counted(own)}.")
    for second in (MINATAR, MEMORY):
        found = [
            each.again
            for each in judged
            if each.again and each.claim.again and each.claim.again.where == second.where
        ]
        if any(each.verdict != "not run" for each in found):
            sentences.append(
                f"The {len(found)} about {second.about}, on {second.where}: {counted(found)}."
            )
    return " ".join(sentences)


def counted(judgements: Sequence[Judgement]) -> str:
    verdicts = [each.verdict for each in judgements]
    return ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS)


def as_html(judged: Sequence[Judged]) -> str:
    """A plain table; where scripts run it can be searched, filtered by verdict and sorted."""
    head = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    rows = "".join(row(each) for each in judged)
    return f"""<p class="headline">{tally(judged)}</p>
<p>Effects are mean paired differences over recordings with 95% Student intervals; scores are
normalised (0 random, 100 the online agent's best). Rules were committed before any row was read,
but for theory's and for those that say so. Experiments with several settings a method report on a
dataset the setting chosen on the others; where a figure has one setting, R-BVE and R-DQN stand at
λ = .005, the paper's. V̂ is standardised; R-BVE with the paper's raw weights is in bsuite's and
MinAtar's tables below. Claims about Atari and DeepMind Lab are judged twice by one rule: where
bsuite stands in for them, or the paper's own table, and again on MinAtar or on levels with memory;
"all six problems" are all games there. With a memory DDQN is R2D2, R-DQN is R-R2D2, and all
episodes are learned from.</p>
<div class="scroll" role="region" tabindex="0" aria-label="Table: claims">
<table class="claims filterable" data-filters="{",".join(FILTERS)}" data-caption="claims">
<thead><tr>{head}</tr></thead>
<tbody>{rows}</tbody></table></div>
"""


def row(each: Judged) -> str:
    verdict, claim, *rest = (escape(cell) for cell in cells(each))
    others = "".join(cell(name, text) for name, text in zip(COLUMNS[2:], rest, strict=True))
    return (
        f'<tr><td class="{verdict_class(verdict)}">{verdict}</td>'
        f'<th scope="row">{claim}</th>{others}</tr>\n'
    )


def cell(name: str, text: str) -> str:
    """On a phone its name stands before it."""
    kind = verdict_class(text) if text in VERDICTS else "absent" if text == NOT_ASKED else ""
    look = f' class="{kind}"' if kind else ""
    return f'<td{look} data-label="{name}">{text.replace("; ", ";<br/>")}</td>'


def verdict_class(verdict: str) -> str:
    return f"verdict {verdict.replace(' ', '-')}"
