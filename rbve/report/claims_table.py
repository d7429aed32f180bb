"""The paper's claims beside what was measured, from the rows of a study."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from html import escape

from rbve.report.claims.judge import Judged
from rbve.report.page import Section
from rbve.report.rules import VERDICTS, Judgement

COLUMNS = (
    "verdict",
    "claim",
    "on MinAtar",
    "in the paper",
    "the paper's numbers",
    "judged on",
    "measured here",
    "measured on MinAtar",
    "rule",
)


NOT_ASKED = "–"  # of MinAtar, where a claim is not about Atari


def cells(each: Judged) -> tuple[str, ...]:
    claim, found, boards = each
    return (
        found.verdict,
        claim.text,
        boards.verdict if boards else NOT_ASKED,
        claim.paper,
        claim.printed,
        claim.here,
        found.measured,
        boards.measured if boards else NOT_ASKED,
        claim.rule,
    )


def as_csv(judged: Sequence[Judged]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(cells(each) for each in judged)
    return stream.getvalue()


def section(judged: Sequence[Judged]) -> Section:
    return Section("claims", "The paper's claims, measured here", as_html(judged), short="Claims")


def tally(judged: Sequence[Judged]) -> str:
    boards = [each.minatar for each in judged if each.minatar]
    words = f"{len(judged)} claims: {counted([each.judgement for each in judged])}."
    return f"{words} The {len(boards)} about Atari, on MinAtar: {counted(boards)}."


def counted(judgements: Sequence[Judgement]) -> str:
    verdicts = [each.verdict for each in judgements]
    return ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS)


def as_html(judged: Sequence[Judged]) -> str:
    """A plain table; where scripts run it can be searched, filtered by verdict and sorted."""
    head = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    rows = "".join(row(each) for each in judged)
    return f"""<p class="headline">{tally(judged)}</p>
<p>Effects are mean paired differences over datasets with 95% bootstrap intervals; scores are
normalised (0 random, 100 the online agent's best). The setting of each method is chosen on other
datasets than the one it is reported on. Rules were written down before the runs, but for
theory's. Claims about Atari are judged twice by one rule: where bsuite stands in for it, and on
MinAtar; "all six problems" are all of its games there.</p>
<div class="scroll" role="region" tabindex="0" aria-label="Table: claims">
<table class="claims filterable" data-filters="verdict,on MinAtar" data-caption="claims">
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
    kind = f' class="{verdict_class(text)}"' if text in VERDICTS else ""
    return f'<td{kind} data-label="{name}">{text.replace("; ", ";<br/>")}</td>'


def verdict_class(verdict: str) -> str:
    return f"verdict {verdict.replace(' ', '-')}"
