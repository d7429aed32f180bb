"""The columns of a log as inputs of an ONNX graph: standardised and one-hot inside it."""

import numpy as np

from rbve.data.features import NULLS, OTHER, Feature, Features, range_of
from rbve.exports._onnx_nodes import Nodes

_ML = "ai.onnx.ml"
_MISSING, _UNKNOWN = -2, -1  # codes of categories


def taken(features: Features) -> dict[str, str]:
    """The type of each input: numbers are doubles, categories are strings."""
    return {c.name: "string" if c.kind == "category" else "float64" for c in features.columns}


def encode(nodes: Nodes, features: Features, names: dict[str, str]) -> tuple[str, str]:
    """The names of what the network takes, (B, size) float32, and of which rows lie within the
    training data, (B,) bool. `names` gives the input of each column, (B,).

    Numbers are read all at once, so that a graph of many columns has few nodes.
    """
    columns = [*features.columns]
    numbers = [each for each in columns if each.kind == "number"]
    parts: list[str] = []
    insides: list[str] = []
    order: dict[tuple[str, str], list[int]] = {}  # where inputs of a column come to stand
    width = 0
    if numbers:
        values, gaps, inside = _numbers(nodes, numbers, [names[each.name] for each in numbers])
        parts += [values, gaps]
        insides.append(inside)
        for place, each in enumerate(numbers):
            order[each.name, "value"] = [place]
            order[each.name, "gap"] = [len(numbers) + place]
        width = 2 * len(numbers)
    for each in columns:
        if each.kind == "category":
            values, gap, inside = _category(nodes, each, names[each.name])
            parts += [values, nodes.cast(gap, "float32")]
            insides.append(inside)
            levels = len(each.categories)
            order[each.name, "value"] = list(range(width, width + levels))
            order[each.name, "gap"] = [width + levels]
            width += levels + 1
    wanted: list[int] = []
    for each in columns:
        wanted += order[each.name, "value"]
        wanted += order[each.name, "gap"] if each.missing == "indicator" else []
    joined = nodes.add("Concat", parts, axis=1) if len(parts) > 1 else parts[0]
    seen = nodes.add("Gather", [joined, nodes.constant(wanted, np.int64)], axis=1)
    inside = insides[0]
    for more in insides[1:]:
        inside = nodes.add("And", [inside, more])
    return seen, inside


def _numbers(nodes: Nodes, columns: list[Feature], names: list[str]) -> tuple[str, str, str]:
    """Values (B, N) float32, which are missing (B, N) float32, which rows lie within the data."""

    def row(values: list[float]) -> str:
        return nodes.constant([values], np.float64)

    axis = nodes.constant([1], np.int64)
    x = nodes.add("Concat", [nodes.add("Unsqueeze", [name, axis]) for name in names], axis=1)
    mean = row([column.mean for column in columns])
    gaps = nodes.add("IsNaN", [x])
    filled = nodes.add("Where", [gaps, mean, x])
    value = nodes.add("Div", [nodes.add("Sub", [filled, mean]), row([c.scale for c in columns])])
    if any(np.isfinite(column.clip) for column in columns):
        value = nodes.add("Max", [value, row([-column.clip for column in columns])])
        value = nodes.add("Min", [value, row([column.clip for column in columns])])
    ranges = [range_of(column) for column in columns]
    # A missing value counts as neither below nor above, nor as outside where it may be missing.
    bad = [nodes.add("Less", [x, row([low for low, _ in ranges])])]
    bad.append(nodes.add("Greater", [x, row([high for _, high in ranges])]))
    if any(column.missing == "error" for column in columns):  # refused, or here marked
        strict = nodes.constant([[column.missing == "error" for column in columns]], np.bool_)
        bad.append(nodes.add("And", [gaps, strict]))
    outside = bad[0]
    for more in bad[1:]:
        outside = nodes.add("Or", [outside, more])
    count = nodes.add("ReduceMax", [nodes.cast(outside, "int32"), axis], keepdims=0)
    inside = nodes.add("Not", [nodes.cast(count, "bool")])
    return nodes.cast(value, "float32"), nodes.cast(gaps, "float32"), inside


def _category(nodes: Nodes, column: Feature, x: str) -> tuple[str, str, str]:
    """One-hot (B, levels) float32, which are missing (B, 1), which rows lie within the data."""
    codes = _codes(column)
    code = nodes.add(
        "LabelEncoder", [x], domain=_ML, keys_strings=list(codes),
        values_int64s=list(codes.values()), default_int64=_unseen(column),
    )  # fmt: skip
    wide = nodes.add("Unsqueeze", [code, nodes.constant([1], np.int64)])
    places = nodes.constant(np.arange(len(column.categories))[None], np.int64)
    gap = nodes.add("Equal", [wide, nodes.constant(_MISSING, np.int64)])
    if column.missing == "error":  # refused by the policy; a graph can only mark it
        bad = nodes.add("Less", [code, nodes.constant(0, np.int64)])
    else:
        bad = nodes.add("Equal", [code, nodes.constant(_UNKNOWN, np.int64)])
    seen = nodes.cast(nodes.add("Equal", [wide, places]), "float32")
    return seen, gap, nodes.add("Not", [bad])


def _unseen(column: Feature) -> int:
    known = column.other and OTHER in column.categories
    return column.categories.index(OTHER) if known else _UNKNOWN


def _codes(column: Feature) -> dict[str, int]:
    """Every text that stands for a level, or for a missing value."""
    codes = {text: _MISSING for text in NULLS}
    for index, name in enumerate(column.categories):
        codes[name] = index
        for other in (name.lower(), name.upper()) if _is_bool(column, name) else ():
            codes[other] = index
    return codes


def _is_bool(column: Feature, name: str) -> bool:
    return name in ("True", "False") and {*column.categories} <= {"True", "False", OTHER}
