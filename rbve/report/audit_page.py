"""An audit as one self-contained HTML page: verdict, findings, figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from rbve.audit import WORDS, Audit, Finding
from rbve.audit.measure import Spread
from rbve.audit.support import ENOUGH
from rbve.audit.weights import CAP, CLIPPED, EFFECTIVE
from rbve.files import write_atomically
from rbve.report import audit_figures as figures
from rbve.report.audit_figures import Chart
from rbve.report.page import encode
from rbve.report.render import web

COLUMNS_SHOWN = 60  # of the observation
TALL = 10  # actions; the charts of more stand side by side
ACTIONS_LISTED = 500  # in the table of those that figures do not show in full

STYLE = """
:root { --good: #1a7f37; --look: #9a6700; --stop: #c2200e; --bar: #3b6ea5; --hatch: #b9b9c0; }
@media (prefers-color-scheme: dark) { :root { --good: #5bd07a; --look: #e3b341; --stop: #ff8370;
  --bar: #6ea3dc; --hatch: #5a5a62; } }
h3 { font-size: 1.02rem; margin: 0 0 .2rem; }
table + h3 { margin-top: 1.2rem; }
.verdict { border-left: .5rem solid var(--tone); background: var(--card); padding: .8rem 1rem;
  margin: 1rem 0; border-radius: .3rem; }
.verdict strong { color: var(--tone); font-size: 1.35rem; display: block; }
.fine { --tone: var(--good); } .look { --tone: var(--look); } .stop { --tone: var(--stop); }
.finding { border-left: .25rem solid var(--tone); background: var(--card); padding: .7rem 1rem;
  margin: .7rem 0; border-radius: .3rem; overflow-wrap: anywhere; }
.finding p { margin: .2rem 0; max-width: 60rem; }
.level { color: var(--tone); font-weight: 600; font-size: .85rem; }
.remedy { font-weight: 600; }
caption { text-align: left; color: var(--muted); padding-bottom: .3rem; }
.facts tbody th { min-width: 6.5rem; white-space: normal; vertical-align: top; }
.facts td { text-align: left; white-space: normal; }
.charts { grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr)); }
figure { background: var(--card); padding: .7rem; }
figure:first-child { grid-row: auto; }
#values { grid-row: span 2; }
.tall #values { grid-row: auto; grid-column: 1 / -1; }
figure svg { min-width: 0; max-width: 40rem; }
figcaption { font-weight: 600; font-size: .95rem; margin-bottom: .3rem; }
figcaption span { display: block; font-weight: 400; font-size: .85rem; color: var(--muted); }
.chart text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  fill: var(--muted); }
.chart .bar { fill: var(--bar); }
.chart .heat { fill: var(--bar); }
.chart .rest { fill-opacity: .45; }
.chart .none { fill: url(#hatch); }
.chart .hatch { stroke: var(--hatch); stroke-width: 1.4; }
.chart .illegal { fill: url(#dots); }
.chart .ground { fill: var(--line); }
.chart .dot { fill: var(--muted); }
.chart .axis { stroke: var(--muted); stroke-width: 1; }
.chart .grid { stroke: var(--line); stroke-width: .7; }
.chart .mark { stroke: var(--ink); stroke-width: 1.2; stroke-dasharray: 4 3; }
.chart .curve { fill: none; stroke-width: 2; }
.chart .c0 { stroke: var(--accent); } .chart .c1 { stroke: var(--ink); stroke-dasharray: 2 3; }
tr.chosen th, tr.chosen td { font-weight: 700; }
"""


def write(audit: Audit, path: str | Path, title: str) -> Path:
    """Write the page; the file is whole or absent."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path}: is a folder; name a file that ends in .html")
    write_atomically(path, encode(document(audit, title)))
    return path


def document(audit: Audit, title: str) -> str:
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>Audit of {escape(title)}</title>
<style>{web("page.css")}{STYLE}</style>
</head>
<body>
<header>
<h1>Audit of {escape(title)}</h1>
<p class="muted">What the logged data holds, what is wrong with it, and whether to train on it.</p>
{banner(audit)}
</header>
<main>
{findings(audit.findings)}
<section aria-labelledby="holds"><h2 id="holds">What it holds</h2>
{facts(audit)}
{notes(audit.notes)}
</section>
<section aria-labelledby="figures"><h2 id="figures">Figures</h2>
<div class="charts{" tall" if len(audit.actions) > TALL else ""}">
{"".join(figure(chart) for chart in charts(audit))}</div>
{action_table(audit)}
</section>
<section aria-labelledby="weights"><h2 id="weights">The ranking weight</h2>
{weight_table(audit)}
</section>
{column_table(audit)}
<section aria-labelledby="measures"><h2 id="measures">What the measures mean</h2>
<dl>{"".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in DEFINITIONS.items())}</dl>
</section>
</main>
</body>
</html>
"""


DEFINITIONS = {
    "V̂(s)": "Discounted sum of the rewards that followed s in its episode; for a fragment, the "
    "return of its episode.",
    "w(s)": "exp((V̂(s) − mean)/β), at most the cap: how much a state counts in R-BVE's ranking "
    "term. With normalise=dataset V̂ is divided by its deviation first; normalise=none is the "
    "paper's raw formula.",
    "Effective share": "(Σw)² / (n Σw²): 1 where all rows count alike, near 0 where few count.",
    "Regions": "Cells of like states, by k-means on standardised observations of a sample. They "
    "are coarse: within one, behaviour looks more varied than it is in each state.",
    "Coverage": f"Share of legal (state, action) pairs, weighed by visits, with {ENOUGH} rows or "
    "more of that action in the state's region.",
    "Entropy of behaviour": "Of the action within a region, as a share of that of uniform choice "
    "among legal actions.",
    "Reward shift": "Whether the step before or after explains the rewards better than their own "
    "step does, by regressions scored on episodes they have not seen.",
    "Horizon": "1/(1 − γ) steps: what lies further off counts for less than 37%.",
}


def banner(audit: Audit) -> str:
    verdict = audit.verdict
    names = ", ".join(finding.name for finding in audit.findings)
    reason = f"Found: {names}." if names else "No fault was found."
    flags = "" if verdict == "stop" else audit.weights.flags
    advice = f" Recommended for R-BVE: <code>{escape(flags)}</code>." if flags else ""
    return (
        f'<div class="verdict {verdict}" role="status"><strong>{escape(WORDS[verdict])}</strong>'
        f"{escape(reason)}{advice}</div>"
    )


def findings(found: Sequence[Finding]) -> str:
    if not found:
        return ""
    cards = "".join(
        f'<article class="finding {each.level}"><h3>{escape(each.name)}</h3>'
        f'<p class="level">{escape(WORDS[each.level])}</p>'
        f"<p>{escape(sentence(each.seen))}</p><p>Why it matters: {escape(each.why)}.</p>"
        f'<p class="remedy">What to do: {escape(each.remedy)}.</p></article>\n'
        for each in found
    )
    return f'<section aria-labelledby="found"><h2 id="found">Findings</h2>\n{cards}</section>'


def sentence(words: str) -> str:
    # A path keeps its case.
    first = words.split(" ", 1)[0]
    start = words[:1] if "." in first or "/" in first else words[:1].upper()
    return f"{start}{words[1:]}."


def notes(remarks: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(note)}</li>" for note in remarks)
    return f"<h3>Notes</h3><ul>{items}</ul>" if items else ""


def facts(audit: Audit) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>\n'
        for name, value in fact_rows(audit)
    )
    return (
        f'<table class="facts"><caption>Figures of all data</caption><tbody>{rows}</tbody></table>'
    )


def fact_rows(audit: Audit) -> Iterator[tuple[str, str]]:
    counts, support, weights = audit.counts, audit.support, audit.weights
    yield "Episodes", f"{counts.episodes:,}"
    yield "Decisions", f"{counts.transitions:,}; R-BVE trains on {weights.rows:,}"
    yield "Observation", audit.observation
    yield "Actions", f"{len(audit.actions)}"
    yield "Ends", f"{counts.terminated:,} terminated, {counts.truncated:,} truncated"
    if counts.fragments:
        yield "Fragments", f"{counts.fragments:,}"
    if counts.without_final:
        yield "Without final observation", f"{counts.without_final:,}"
    yield "Length", spread(counts.length)
    above = f"; {100 * counts.above_mean:.3g}% of episodes above the mean" if counts.returns else ""
    yield "Return", f"{spread(counts.returns)}{above}"
    yield f"V̂ at γ = {weights.gamma:g}", spread(weights.value)
    yield (
        "Horizon",
        f"{weights.horizon:,.0f} steps; a first state sees {weights.seen_from_start:.0%} of the "
        f"reward of its episode, {weights.beyond:.0%} of that from beyond the horizon",
    )
    if counts.executed_differs is not None:
        yield "Executed ≠ chosen", f"{counts.executed_differs:.1%} of decisions"
    if support.legal_counts is not None:
        yield (
            "Legal actions",
            f"{support.mean_legal:.2f} on average; {support.forced:.1%} of decisions have one only",
        )
    yield "Coverage", f"{support.coverage:.0%} of state-action space ({len(support.cells)} regions)"
    yield "Entropy of behaviour", f"{support.entropy:.0%} of uniform choice"
    if support.propensities is not None:
        yield (
            "Propensities",
            f"mean {support.propensities.mean:.3f}; entropy {support.propensities.entropy:.0%} of "
            "uniform choice",
        )
    for side, told in audit.shift.verdicts.items():
        yield f"Rewards one row {side}", told


def spread(values: Spread | None) -> str:
    if values is None:
        return "unknown"
    low, middle, high = (figures.short(v) for v in (values.low, values.median, values.high))
    mean, deviation = figures.short(values.mean), figures.short(values.deviation)
    return f"mean {mean}, deviation {deviation}, from {low} to {high}, median {middle}"


def charts(audit: Audit) -> Iterator[Chart]:
    counts, weights = audit.counts, audit.weights
    above = f"{100 * counts.above_mean:.3g}% of episodes lie above the mean: what filtered BC keeps"
    if counts.returns and counts.return_histogram:
        yield figures.histogram(
            "returns", "Returns of episodes", counts.return_histogram, "return",
            counts.returns.mean, above,
        )  # fmt: skip
    yield figures.histogram(
        "lengths", "Lengths of episodes", counts.lengths, "steps", counts.length.mean
    )
    if weights.recommended and weights.value and weights.histogram:
        chosen = weights.recommended.beta
        curves = [(f"β = {weights.beta:g}", weights.beta * weights.value.deviation)]
        if chosen != weights.beta:
            curves.append((f"β = {chosen:g}, recommended", chosen * weights.value.deviation))
        mean, deviation = weights.value.mean, weights.value.deviation
        yield figures.values(weights.histogram, mean, deviation, curves, CAP)
    support = audit.support
    rows = figures.action_rows(audit.actions, support.counts)
    yield figures.actions(rows, support.counts)
    yield figures.regions(rows, support.cells, support.legal_cells, ENOUGH)


def figure(chart: Chart) -> str:
    note = f"<span>{escape(chart.note)}</span>" if chart.note else ""
    caption = f"<figcaption>{escape(chart.title)}{note}</figcaption>"
    return f'<figure id="{chart.kind}">{caption}{chart.svg}</figure>\n'


def weight_table(audit: Audit) -> str:
    weights = audit.weights
    if weights.recommended is None:
        why = "does not vary" if weights.value else "is not known"
        return f"<p>V̂ {why}: every weight is 1.</p>"
    rows = []
    for each in weights.effects:
        chosen = ' class="chosen"' if each == weights.recommended else ""
        mark = " (recommended)" if each == weights.recommended else ""
        rows.append(
            f'<tr{chosen}><th scope="row">β = {each.beta:g}, {each.normalise}{mark}</th>'
            f"<td>{each.clipped:.1%}</td><td>{each.effective:.0%}</td><td>{each.half:.1%}</td>"
            f"<td>{'yes' if each.useful else 'no'}</td></tr>\n"
        )
    heads = ("β, normalise", "at the cap", "effective share", "rows with half the weight", "useful")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    rule = (
        f"Useful: an effective share of at least {EFFECTIVE:.0%} and at most {CLIPPED:.0%} of rows "
        "at the cap. Recommended: the β asked for if it is useful, else the smallest from .5 on."
    )
    return (
        f"<p>{rule} Pass <code>{escape(weights.flags)}</code> to <code>rbve train</code>.</p>\n"
        '<div class="scroll" role="region" tabindex="0" aria-label="Weights by β"><table>'
        f"<caption>What w(s) does at γ = {weights.gamma:g}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def action_table(audit: Audit) -> str:
    """Every action with its full name, where the figures do not tell them."""
    names, counts = audit.actions, audit.support.counts
    drawn = figures.action_rows(names, counts)
    if all(row.label == row.name and len(row.members) == 1 for row in drawn):
        return ""
    total = max(sum(counts), 1)
    order = sorted(range(len(names)), key=lambda action: -counts[action])
    rows = "".join(
        f'<tr><th scope="row">{escape(names[k])}</th><td>{counts[k]:,}</td>'
        f"<td>{counts[k] / total:.2%}</td></tr>\n"
        for k in order[:ACTIONS_LISTED]
    )
    more = len(names) - ACTIONS_LISTED
    rest = f"<p>{more:,} more actions are in the JSON output.</p>" if more > 0 else ""
    head = "".join(f'<th scope="col">{name}</th>' for name in ("action", "decisions", "share"))
    return (
        f"<details><summary>All {len(names):,} actions, their names in full</summary>"
        '<div class="scroll" role="region" tabindex="0" aria-label="All actions"><table>'
        f"<caption>Most frequent first</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>{rest}</details>"
    )


def column_table(audit: Audit) -> str:
    columns = audit.scan.columns
    if not columns:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(each.name)}</th>'
        + "".join(
            f"<td>{figures.short(value)}</td>"
            for value in (each.low, each.high, each.mean, each.deviation)
        )
        + "</tr>\n"
        for each in columns[:COLUMNS_SHOWN]
    )
    heads = ("column", "lowest", "highest", "mean", "deviation")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    more = len(columns) - COLUMNS_SHOWN
    rest = f"<p>{more:,} more columns are in the JSON output.</p>" if more > 0 else ""
    read = "all rows" if audit.scan.whole else f"{audit.scan.rows:,} rows"
    return (
        '<section aria-labelledby="columns"><h2 id="columns">Observation columns</h2>'
        '<div class="scroll" role="region" tabindex="0" aria-label="Observation columns"><table>'
        f"<caption>Values over {read}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>{rest}</section>"
    )
