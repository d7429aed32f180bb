"""The columns of a log as inputs of an ONNX graph: standardised and one-hot inside it.

Columns of a kind are encoded together, as matrices of a row for each, so that the number of nodes
does not grow with theirs: of a graph for one decision, nodes cost more than arithmetic.
"""

from typing import NamedTuple

import numpy as np

from rbve.data.features import NULLS, OTHER, Feature, Features, range_of
from rbve.exports._onnx_nodes import Nodes

_ML = "ai.onnx.ml"
_Placed = tuple[Feature, int]  # a column and its first place among the network's inputs


def taken(features: Features) -> dict[str, str]:
    """The type of each input: numbers are doubles, categories are strings."""
    return {c.name: "string" if c.kind == "category" else "float64" for c in features.columns}


def encode(nodes: Nodes, features: Features, names: dict[str, str]) -> tuple[str, str]:
    """The names of what the network takes, (B, size) float32, and of which rows lie within the
    training data, (B,) bool. `names` gives the input of each column, (B,)."""
    numbers: list[_Placed] = []
    categories: list[_Placed] = []
    width = 0
    for each in features.columns:
        (numbers if each.kind == "number" else categories).append((each, width))
        width += each.size
    parts: list[str] = []
    insides: list[str] = []
    order: list[int] = []  # the places of what stands in `parts`
    for encoded, placed in ((_numbers, numbers), (_categories, categories)):
        if placed:
            made = encoded(nodes, placed, _joined(nodes, [names[each.name] for each, _ in placed]))
            parts += made.parts
            insides.append(made.inside)
            order += made.order
    seen = nodes.concat(parts, 0)
    if order != sorted(order):
        seen = nodes.add("Gather", [seen, nodes.constant(np.argsort(order), np.int64)], axis=0)
    good = nodes.cast(nodes.concat(insides, 0), "int32")
    least = nodes.add("ReduceMin", [good, nodes.constant([0], np.int64)], keepdims=0)
    return nodes.add("Transpose", [seen], perm=[1, 0]), nodes.cast(least, "bool")


def _joined(nodes: Nodes, names: list[str]) -> str:
    """(B,) each to (columns, B)."""
    return nodes.add(
        "Reshape", [nodes.concat(names, 0), nodes.constant([len(names), -1], np.int64)]
    )


class _Encoded(NamedTuple):
    parts: list[str]  # float32, together (len(order), B)
    order: list[int]  # the place of each of their rows among the network's inputs
    inside: str  # (columns, B) bool, which values lie within the data


def _numbers(nodes: Nodes, placed: list[_Placed], x: str) -> _Encoded:
    columns = [column for column, _ in placed]

    def each(values: list[float]) -> str:
        return nodes.constant(np.array(values)[:, None], np.float64)

    mean = each([column.mean for column in columns])
    gaps = nodes.add("IsNaN", [x])
    filled = nodes.add("Where", [gaps, mean, x])
    value = nodes.add("Div", [nodes.add("Sub", [filled, mean]), each([c.scale for c in columns])])
    if any(np.isfinite(column.clip) for column in columns):
        value = nodes.add("Max", [value, each([-column.clip for column in columns])])
        value = nodes.add("Min", [value, each([column.clip for column in columns])])
    # What the range does not change lies in it; NaN equals nothing.
    ranges = [range_of(column) for column in columns]
    kept = nodes.add("Max", [x, each([low for low, _ in ranges])])
    kept = nodes.add("Min", [kept, each([high for _, high in ranges])])
    inside = nodes.add("Equal", [kept, x])
    lenient = [column.missing != "error" for column in columns]
    if any(lenient):
        allowed = gaps
        if not all(lenient):
            mask = nodes.constant(np.array(lenient)[:, None], np.bool_)
            allowed = nodes.add("And", [gaps, mask])
        inside = nodes.add("Or", [inside, allowed])
    parts, order = [nodes.cast(value, "float32")], [place for _, place in placed]
    flagged = [i for i, column in enumerate(columns) if column.missing == "indicator"]
    if flagged:
        which = gaps
        if len(flagged) < len(columns):
            which = nodes.add("Gather", [gaps, nodes.constant(flagged, np.int64)], axis=0)
        parts.append(nodes.cast(which, "float32"))
        order += [order[i] + 1 for i in flagged]
    return _Encoded(parts, order, inside)


def _categories(nodes: Nodes, placed: list[_Placed], x: str) -> _Encoded:
    """One-hot, with indicators. Every text has one number, and a table says for each column which
    of the network's inputs it sets: _NOWHERE for none, _OUTSIDE for what the data does not hold."""
    codes = [_places(column, first) for column, first in placed]
    texts = {text: number for number, text in enumerate(dict.fromkeys(t for c in codes for t in c))}
    table = np.array(
        [
            [*(own.get(text, _unseen(*column)) for text in texts), _unseen(*column)]
            for column, own in zip(placed, codes, strict=True)
        ]
    )
    number = nodes.add(
        "LabelEncoder", [x], domain=_ML, keys_strings=list(texts),
        values_int64s=list(texts.values()), default_int64=len(texts),
    )  # fmt: skip
    begins = nodes.constant(np.arange(len(placed))[:, None] * table.shape[1], np.int64)
    flat = nodes.constant(table.reshape(-1), np.int64)
    place = nodes.add("Gather", [flat, nodes.add("Add", [number, begins])])
    inside = nodes.add("Greater", [place, nodes.constant(_OUTSIDE, np.int64)])
    order = [first + i for column, first in placed for i in range(column.size)]
    owner = [row for row, (column, _) in enumerate(placed) for _ in range(column.size)]
    spread = nodes.add("Gather", [place, nodes.constant(owner, np.int64)], axis=0)
    hot = nodes.add("Equal", [spread, nodes.constant(np.array(order)[:, None], np.int64)])
    return _Encoded([nodes.cast(hot, "float32")], order, inside)


_NOWHERE, _OUTSIDE = -1, -2


def _places(column: Feature, first: int) -> dict[str, int]:
    """The place for every text that stands for a level or a missing value."""
    missing = {"error": _OUTSIDE, "mean": _NOWHERE, "indicator": first + len(column.categories)}
    places = {text: missing[column.missing] for text in NULLS}
    for place, name in enumerate(column.categories, first):
        places[name] = place
        for other in (name.lower(), name.upper()) if _is_bool(column, name) else ():
            places[other] = place
    return places


def _unseen(column: Feature, first: int) -> int:
    known = column.other and OTHER in column.categories
    return first + column.categories.index(OTHER) if known else _OUTSIDE


def _is_bool(column: Feature, name: str) -> bool:
    return name in ("True", "False") and {*column.categories} <= {"True", "False", OTHER}
