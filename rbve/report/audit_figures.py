"""Figures of an audit: distributions, actions, and where in the state space they were taken."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rbve.audit import Audit
from rbve.audit.measure import Histogram
from rbve.audit.support import ENOUGH
from rbve.audit.weights import CAP
from rbve.report import marks
from rbve.report.audit_facts import short
from rbve.report.figure import DASHES, GRID, INK, Entry, Figure, Spec
from rbve.report.labels import METHODS

BAR, _ILLEGAL, _EDGE = "#3b6ea5", "#9a9aa2", "#8a8a92"
_STEEPNESS = 96  # points of a curve
_MOST = 24  # rows of a figure of actions
LONGEST = 18  # characters of a label
_WIDTH = 560  # pixels of a picture
_STEP = 20  # pixels of a row


def figures(audit: Audit) -> Iterator[Figure]:
    """Those the log has data for."""
    counts, weights, support = audit.counts, audit.weights, audit.support
    above = f"{100 * counts.above_mean:.3g}% of episodes lie above the mean: what filtered BC keeps"
    if counts.returns and counts.return_histogram:
        title, mean = "Returns of episodes", counts.returns.mean
        yield histogram("returns", title, counts.return_histogram, "return", mean, above)
    yield histogram("lengths", "Lengths of episodes", counts.lengths, "steps", counts.length.mean)
    if weights.recommended and weights.value and weights.histogram:
        chosen, deviation = weights.recommended.beta, weights.value.deviation
        curves = {f"w(s), β = {weights.beta:g}": weights.beta * deviation}
        if chosen != weights.beta:
            curves[f"w(s), β = {chosen:g}, recommended"] = chosen * deviation
        yield _values(weights.histogram, weights.value.mean, deviation, curves)
    rows = action_rows(audit.actions, support.counts)
    yield _actions(rows, support.counts)
    yield regions(rows, support.cells, support.legal_cells)


def histogram(
    name: str, title: str, data: Histogram, unit: str, mean: float, note: str = ""
) -> Figure:
    """Of episodes."""
    align = "right" if mean > (data.edges[0] + data.edges[-1]) / 2 else "left"
    place = {"x": {**_along(data, unit), "field": "mean"}, "y": {"value": -4}}
    words = [{"mean": mean, "words": f"mean {short(mean)}"}]
    encoding = {**place, "text": {"field": "words"}}
    label = marks.text(encoding, words, baseline="bottom", align=align)
    view = marks.view([*_bars(data, unit, mean), label], width=_WIDTH, height=170)
    columns = {"from": f"{unit} from", "to": "to", "count": "episodes"}
    alt = f"{title}: {_describe(data)}. {note}"
    return Figure(name, title, note, view, _bins(data), columns, alt=alt)


def _values(
    data: Histogram, mean: float, deviation: float, temperatures: Mapping[str, float]
) -> Figure:
    """Distribution of V̂ with the weight each value gets, by name and scale · β of a curve."""
    styles = dict(zip(temperatures, ((METHODS["rbve"][1], 0), (INK, 2)), strict=False))
    curves, low, high = [], data.edges[0], data.edges[-1]
    for name, temperature in temperatures.items():
        for k in range(_STEEPNESS + 1):
            value = low + (high - low) * k / _STEEPNESS
            weight = math.exp(min((value - mean) / temperature, math.log(CAP)))
            curves.append({"series": name, "value": value, "weight": weight})
    legend = {"orient": "top", "title": None, "symbolType": "stroke", "symbolSize": 250}
    colours = {name: colour for name, (colour, _) in styles.items()}
    dashes = {name: DASHES[dash] for name, (_, dash) in styles.items()}
    scale = {"axis": None, "scale": {"domain": [0, CAP]}}
    encoding = {
        "x": {**_along(data, "V̂(s)"), "field": "value"},
        "y": {"field": "weight", "type": "quantitative", **scale},
        "color": marks.colours(colours, legend=legend),
        "strokeDash": marks.colours(dashes, legend=legend),
    }
    line = marks.layer({"type": "line", "strokeWidth": 2}, encoding, curves)
    view = marks.view([*_bars(data, "V̂(s)", mean), line], width=_WIDTH, height=170)
    view["resolve"] = {"scale": {"y": "independent"}}
    note = (
        f"curves: weight of a state in the ranking term, from 0 to the cap of {CAP:g} at the top; "
        "dashed line: mean, where the weight is 1"
    )
    columns = {"from": "V̂ from", "to": "to", "count": "states"}
    entries = tuple(Entry(k, colour, line=True, dash=dash) for k, (colour, dash) in styles.items())
    alt = f"Distribution of V̂: {_describe(data)}, deviation {short(deviation)}. {note}"
    return Figure("values", "V̂ and its weight", note, view, _bins(data), columns, entries, alt)


def _bins(data: Histogram) -> list[dict[str, Any]]:
    ends = zip(data.edges[:-1], data.edges[1:], data.counts, strict=True)
    return [{"from": low, "to": high, "count": count} for low, high, count in ends]


def _along(data: Histogram, unit: str) -> Spec:
    ends = [data.edges[0], data.edges[-1]]
    channel = marks.measure("from", unit, grid=False, padding=0, domain=ends)
    if all(edge % 1 == 0.5 for edge in data.edges):  # bins of whole numbers
        channel["axis"]["tickMinStep"] = 1
    return channel


def _bars(data: Histogram, unit: str, mean: float) -> list[Spec]:
    """Bars of at least a pixel, and where the mean is."""
    up = marks.measure("count", zero=True, padding=0, nice=True)
    up["axis"] |= {"tickMinStep": 1, "tickCount": 4}
    along = _along(data, unit)
    ends = {"x2": {"field": "to"}, "y2": {"datum": 0}}
    mark = {"type": "bar", "stroke": BAR, "strokeWidth": 0.5}
    bars = marks.layer(mark, {"x": along, "y": up, "color": {"value": BAR}, **ends}, name="points")
    return [bars, marks.rule(mean, "x", along, strokeDash=[4, 3], strokeWidth=1.2)]


class _ActionRow(NamedTuple):
    """Of a figure of actions: one action, or all that have no row of their own."""

    label: str  # short, no two alike
    name: str  # in full
    members: list[int]

    def of(self, values: Sequence[int]) -> int:
        return sum(values[action] for action in self.members)


def action_rows(names: Sequence[str], counts: Sequence[int], most: int = _MOST) -> list[_ActionRow]:
    """All actions as they are declared; of many the most frequent, the rest in one row."""
    kept, rest = list(range(len(names))), []
    if len(names) > most:
        ranked = sorted(kept, key=lambda action: -counts[action])
        kept, rest = ranked[: most - 1], ranked[most - 1 :]
    labels = short_labels([names[action] for action in kept])
    rows = [_ActionRow(label, names[k], [k]) for label, k in zip(labels, kept, strict=True)]
    other = f"{len(rest):,} other actions"
    return [*rows, _ActionRow(other, other, rest)] if rest else rows


def short_labels(names: Sequence[str]) -> list[str]:
    """Cut to LONGEST characters: at the end, or where that makes two alike in the middle."""
    ends = [n if len(n) <= LONGEST else f"{n[: LONGEST - 1]}…" for n in names]
    middle = [n if len(n) <= LONGEST else f"{n[:7]}…{n[-(LONGEST - 8) :]}" for n in names]
    labels = [m if ends.count(e) > 1 else e for e, m in zip(ends, middle, strict=True)]
    alike = [labels.count(label) > 1 for label in labels]
    return [
        f"{label[: LONGEST - 5]}… {k + 1}" if clash else label
        for k, (label, clash) in enumerate(zip(labels, alike, strict=True))
    ]


def _action_axis(rows: Sequence[_ActionRow]) -> Spec:
    labels = [row.label for row in rows]
    return marks.category("place", labels, domain=False, ticks=False, labelLimit=200)


def _actions(rows: Sequence[_ActionRow], counts: Sequence[int]) -> Figure:
    """Shares are of all decisions."""
    total = max(sum(counts), 1)
    shares = [
        {"action": row.name, "count": row.of(counts), "share": row.of(counts) / total, "place": k}
        | {"rest": len(row.members) > 1}
        for k, row in enumerate(rows)
    ]
    share = {**marks.measure("share", grid=False, zero=True, padding=0), "axis": None}
    place = {"x": share, "y": _action_axis(rows)}
    mark = {"type": "bar", "height": {"band": 0.75}, "minBandSize": 1}
    pale = {"condition": {"test": "datum.rest", "value": 0.45}, "value": 1}
    bars = marks.layer(mark, {**place, "color": {"value": BAR}, "opacity": pale}, name="points")
    percent = {"field": "share", "format": ".1%"}
    label = marks.text({**place, "text": percent}, align="left", dx=5)
    view = marks.view([bars, label], width=_WIDTH - 120, height={"step": _STEP})
    columns = {"action": "action", "count": "decisions", "share": "share of all"}
    note = ""
    if len(rows[-1].members) > 1:
        note = f"the {len(rows) - 1} most frequent of {len(counts):,}; shares of all decisions"
    words = ", ".join(f"{r['action']} {r['count']:,} ({r['share']:.1%})" for r in shares)
    alt = f"Actions taken: {words}"
    return Figure("actions", "Actions taken", note, view, shares, columns, alt=alt)


def regions(
    rows: Sequence[_ActionRow],
    cells: Sequence[Sequence[int]],
    legal: Sequence[Sequence[int]] | None,
) -> Figure:
    """Heat map: a column per cell as wide as its visits, a row per action."""
    total = max(sum(map(sum, cells)), 1)
    # The strongest colour is that of the action taken most in a region.
    most = max(row.of(c) / sum(c) for c in cells for row in rows if len(row.members) == 1)
    kinds = {"heat": "taken", "none": f"under {ENOUGH} rows"}
    if legal is not None:
        kinds |= {"none": f"legal, under {ENOUGH} rows", "illegal": "never legal there"}
    cells_drawn, start = [], 0
    for k, cell in enumerate(cells):
        visits = sum(cell)
        for place, row in enumerate(rows):
            count = row.of(cell)
            kind = "heat" if count >= ENOUGH else "none"
            if legal is not None and not row.of(legal[k]):
                kind = "illegal"
            shade = min(0.08 + 0.92 * count / visits / most, 1.0) if kind == "heat" else 1.0
            cells_drawn.append(
                {"series": kinds[kind], "region": k + 1, "action": row.name, "count": count}
                | {"of": visits, "place": place, "shade": round(shade, 3)}
                | {"start": start / total, "stop": (start + visits) / total}
            )
        start += visits
    fills = dict(zip(kinds.values(), (BAR, "transparent", _ILLEGAL), strict=False))
    legend = {"orient": "top", "title": None, "symbolType": "square", "symbolOpacity": 1}
    encoding = {
        "x": {"field": "start", "type": "quantitative", "axis": None, "scale": {"domain": [0, 1]}},
        "x2": {"field": "stop"},
        "y": _action_axis(rows),
        "fill": marks.colours(fills, legend=legend),
        "fillOpacity": {"field": "shade", "type": "quantitative", "scale": None},
    }
    mark = {"type": "rect", "stroke": GRID, "strokeWidth": 0.6}
    layer = marks.layer(mark, encoding, name="points")
    view = marks.view([layer], width=_WIDTH - 120, height={"step": _STEP})
    title = "Actions over the state space"
    note = (
        f"{len(cells)} regions of like states from left to right, as wide as they are visited; "
        "stronger colour: taken more often there"
    )
    drawn = [row["series"] for row in cells_drawn]
    counted = ", ".join(f"{drawn.count(words)} {words}" for words in kinds.values())
    alt = f"{title}. {note}. Of {len(cells_drawn)} pairs of a region and an action: {counted}."
    columns = {"series": "cell", "region": "region", "action": "action", "count": "decisions"}
    columns["of"] = "of all in the region"
    entries = tuple(
        Entry(name, _EDGE if name == kinds["none"] else colour, ring=name == kinds["none"])
        for name, colour in fills.items()
    )
    return Figure("regions", title, note, view, cells_drawn, columns, entries, alt, wide=True)


def _describe(data: Histogram) -> str:
    top = max(range(len(data.counts)), key=lambda k: data.counts[k])
    low, high = data.edges[top], data.edges[top + 1]
    return (
        f"{sum(data.counts):,} values from {short(data.edges[0])} to {short(data.edges[-1])}, most "
        f"({data.counts[top]:,}) between {short(low)} and {short(high)}"
    )
