"""An audit on the terminal: figures first, findings next, the verdict last."""

import json
from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from rbve.audit import WORDS, Audit
from rbve.audit.measure import Histogram, Spread
from rbve.audit.verdict import counted
from rbve.cli import _console

_BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH = 24  # characters of a full bar
_LISTED = 6  # actions with a line of their own
_COLOURS = {"fine": "green", "look": "yellow", "stop": "red"}
SIGNS = {"fine": "✓", "look": "!", "stop": "✗"}


def show(audit: Audit, title: str, as_json: bool = False) -> None:
    if as_json:
        print(json.dumps({"path": title, **audit.to_json()}))
        return
    out = _console.output()
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in [*held(audit), *judged(audit)]:
        grid.add_row(name, Text(text))
    out.print(Text(title, style="bold"))
    out.print(grid)
    for note in audit.notes:
        out.print(Text(f"note: {note}", style="dim"))
    for finding in audit.findings:
        sign = Text(f"\n{SIGNS[finding.level]} {finding.name}", f"bold {_COLOURS[finding.level]}")
        out.print(sign)
        out.print(Text(f"  {finding.seen}; {finding.why}."))
        out.print(Text(f"  → {finding.remedy}"))
    verdict = audit.verdict
    out.print(Text(f"\n{SIGNS[verdict]} {summary(audit)}", style=f"bold {_COLOURS[verdict]}"))


def summary(audit: Audit) -> str:
    """The verdict in one line."""
    names = [finding.name for finding in audit.findings]
    return f"{WORDS[audit.verdict]}{': ' if names else ''}{', '.join(names)}"


def held(audit: Audit) -> Iterator[tuple[str, str]]:
    """What the data is."""
    counts, weights = audit.counts, audit.weights
    size = f"{counted(counts.episodes, 'episode')}, {counted(counts.transitions, 'decision')}"
    kinds = f"{counted(len(audit.actions), 'action')}, observations {audit.observation}"
    yield "holds", f"{size}, {kinds}"
    fragments = f", {counts.fragments:,} fragments among them" if counts.fragments else ""
    yield "ends", f"{counts.terminated:,} terminated, {counts.truncated:,} truncated{fragments}"
    yield "length", words(counts.length, counts.lengths)
    above = f"   {100 * counts.above_mean:.3g}% above the mean (what filtered BC keeps)"
    returns = words(counts.returns, counts.return_histogram)
    yield "return", f"{returns}{above if counts.returns else ''}"
    yield f"V̂ at γ={weights.gamma:g}", words(weights.value, weights.histogram)
    horizon = f"{weights.horizon:,.0f} steps; median episode {counts.length.median:,.0f}"
    seen = f"a first state sees {weights.seen_from_start:.0%} of its episode's reward"
    yield "horizon", f"{horizon}; {seen}, {weights.beyond:.0%} of that from beyond the horizon"
    if counts.executed_differs:
        yield "executed", f"differs from the action chosen in {counts.executed_differs:.1%} of rows"


def judged(audit: Audit) -> Iterator[tuple[str, str]]:
    """What it supports, and what training will make of it."""
    support, weights = audit.support, audit.weights
    yield from _action_lines(audit.actions, support.counts)
    if support.legal_counts is not None:
        forced = f"{support.forced:.1%} of decisions have one only"
        yield "masks", f"{support.mean_legal:.2f} legal actions on average; {forced}"
    covered = f"{support.coverage:.0%} of state-action space has 5 rows or more"
    entropy = f"entropy of behaviour {support.entropy:.0%} of uniform choice"
    yield "coverage", f"{covered} ({len(support.cells)} regions); {entropy}"
    if (claimed := support.propensities) is not None:
        entropy = f"entropy {claimed.entropy:.0%} of uniform choice"
        yield "propensity", f"mean {claimed.mean:.3f}; {entropy}"
    late, early = audit.shift.verdicts["late"], audit.shift.verdicts["early"]
    same = f"late or early {late}"
    yield "reward shift", same if late == early else f"late {late}; early {early}"
    for each in weights.effects:
        if each.beta == weights.beta:
            cap = f"{each.clipped:.1%} of rows at the cap"
            share = f"effective share of the data {each.effective:.0%}"
            name = "weights" if each.normalise == "dataset" else ""
            yield name, f"β={each.beta:g} normalise={each.normalise}: {cap}, {share}"
    if weights.recommended is not None:
        yield "", f"recommended: {weights.flags}"


def _action_lines(names: Sequence[str], counts: Sequence[int]) -> Iterator[tuple[str, str]]:
    total, most = max(sum(counts), 1), max(counts)
    pairs = list(zip(names, counts, strict=True))
    if len(pairs) > _LISTED:
        shares = [f"{name} {count / total:.1%}" for name, count in pairs[: 3 * _LISTED]]
        more = f"  … {len(pairs) - len(shares)} more" if len(pairs) > len(shares) else ""
        yield "actions", "  ".join(shares) + more
        return
    wide = max(len(name) for name in names)
    for index, (name, count) in enumerate(pairs):
        bar = "█" * round(WIDTH * count / max(most, 1))
        line = f"{name:<{wide}}  {count:>10,}  {count / total:>6.1%}  {bar}"
        yield "actions" if index == 0 else "", line


def words(spread: Spread | None, histogram: Histogram | None) -> str:
    if spread is None or histogram is None:
        return "unknown"
    shown = _console.shown
    return (
        f"{shown(spread.mean)} ± {shown(spread.deviation)}   "
        f"[{shown(spread.low)} … {shown(spread.median)} … {shown(spread.high)}]   "
        f"{spark(histogram)}"
    )


def spark(histogram: Histogram) -> str:
    """A histogram in one line; an empty bin is a blank, the smallest count a low block."""
    most = max(histogram.counts)
    if len(histogram.counts) < 2:
        return ""
    levels = (-(-count * len(_BLOCKS) // most) for count in histogram.counts)
    return "".join(_BLOCKS[level - 1] if level else " " for level in levels)
