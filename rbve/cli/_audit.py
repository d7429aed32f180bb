"""An audit on the terminal: figures first, findings next, the verdict last."""

import json
from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from rbve.audit import WORDS, Audit
from rbve.audit.measure import Histogram
from rbve.cli import _console
from rbve.report.audit_facts import facts

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
    for name, text in _lines(audit):
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


def _lines(audit: Audit) -> Iterator[tuple[str, str]]:
    """Name and text: the facts, with histograms; actions; the ranking weight."""
    counts, weights = audit.counts, audit.weights
    value = f"V̂ at γ = {weights.gamma:g}"
    drawn = {"Length": counts.lengths, "Return": counts.return_histogram, value: weights.histogram}
    for name, text in facts(audit).items():
        histogram = drawn.get(name)
        yield name, text if histogram is None else f"{text}   {spark(histogram)}"
    yield from _action_lines(audit.actions, audit.support.counts)
    for each in weights.effects:
        if each.beta == weights.beta:
            cap = f"{each.clipped:.1%} of rows at the cap"
            share = f"effective share of the data {each.effective:.0%}"
            name = "Weights" if each.normalise == "dataset" else ""
            yield name, f"β={each.beta:g} normalise={each.normalise}: {cap}, {share}"
    if weights.recommended is not None:
        yield "", f"recommended: {weights.flags}"


def _action_lines(names: Sequence[str], counts: Sequence[int]) -> Iterator[tuple[str, str]]:
    total, most = max(sum(counts), 1), max(counts)
    pairs = list(zip(names, counts, strict=True))
    if len(pairs) > _LISTED:
        shares = [f"{name} {count / total:.1%}" for name, count in pairs[: 3 * _LISTED]]
        more = f"  … {len(pairs) - len(shares)} more" if len(pairs) > len(shares) else ""
        yield "Decisions by action", "  ".join(shares) + more
        return
    wide = max(len(name) for name in names)
    for index, (name, count) in enumerate(pairs):
        bar = "█" * round(WIDTH * count / max(most, 1))
        line = f"{name:<{wide}}  {count:>10,}  {count / total:>6.1%}  {bar}"
        yield "Decisions by action" if index == 0 else "", line


def spark(histogram: Histogram) -> str:
    """A histogram in one line; an empty bin is a blank, the smallest count a low block."""
    most = max(histogram.counts)
    if len(histogram.counts) < 2:
        return ""
    levels = (-(-count * len(_BLOCKS) // most) for count in histogram.counts)
    return "".join(_BLOCKS[level - 1] if level else " " for level in levels)
