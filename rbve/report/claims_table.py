"""The paper's claims beside what was measured, from the rows of a study."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from html import escape

from rbve.report.claims.judge import Judged
from rbve.report.page import Section
from rbve.report.rules import VERDICTS

COLUMNS = (
    "verdict",
    "claim",
    "in the paper",
    "the paper's numbers",
    "judged on",
    "measured here",
    "rule",
)


def cells(each: Judged) -> tuple[str, ...]:
    claim, found = each
    return (
        found.verdict,
        claim.text,
        claim.paper,
        claim.printed,
        claim.here,
        found.measured,
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
    verdicts = [each.judgement.verdict for each in judged]
    words = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS)
    return f"{len(judged)} claims: {words}."


def as_html(judged: Sequence[Judged]) -> str:
    """A plain table; where scripts run it can be searched, filtered by verdict and sorted."""
    head = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    rows = "".join(row(each) for each in judged)
    return f"""<p class="headline">{tally(judged)}</p>
<p>Effects are mean paired differences over datasets with 95% bootstrap intervals; scores are
normalised (0 random, 100 the online agent's best). The setting of each method is chosen on other
datasets than the one it is reported on. Rules were written down before the runs, but for
theory's.</p>
<div class="scroll" role="region" tabindex="0" aria-label="Table: claims">
<table class="claims filterable" data-filters="verdict" data-caption="claims">
<thead><tr>{head}</tr></thead>
<tbody>{rows}</tbody></table></div>
"""


def row(each: Judged) -> str:
    verdict, claim, *rest = (escape(cell) for cell in cells(each))
    kind = verdict.replace(" ", "-")
    others = "".join(
        f'<td data-label="{name}">{cell.replace("; ", ";<br/>")}</td>'
        for name, cell in zip(COLUMNS[2:], rest, strict=True)
    )
    return (
        f'<tr><td class="verdict {kind}">{verdict}</td><th scope="row">{claim}</th>{others}</tr>\n'
    )
