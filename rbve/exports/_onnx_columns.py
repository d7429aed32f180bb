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
    training data, (B,) bool. `names` gives the input of each column, (B,)."""
    parts: list[str] = []
    insides: list[str] = []
    for column in features.columns:
        read = _category if column.kind == "category" else _number
        seen, gaps, inside = read(nodes, column, names[column.name])
        parts.append(seen)
        if column.missing == "indicator":
            parts.append(nodes.add("Unsqueeze", [gaps, nodes.constant([1], np.int64)]))
        if column.missing == "error":  # what the policy refuses, a graph can only mark
            inside = nodes.add("And", [inside, nodes.add("Not", [gaps])])
        insides.append(inside)
    floats = [nodes.cast(each, "float32") for each in parts]
    inside = insides[0]
    for each in insides[1:]:
        inside = nodes.add("And", [inside, each])
    return nodes.add("Concat", floats, axis=1), inside


def _number(nodes: Nodes, column: Feature, x: str) -> tuple[str, str, str]:
    def double(value: float) -> str:
        return nodes.constant(value, np.float64)

    gaps = nodes.add("IsNaN", [x])
    filled = nodes.add("Where", [gaps, double(column.mean), x])
    value = nodes.add("Sub", [filled, double(column.mean)])
    value = nodes.add("Div", [value, double(column.scale)])
    if np.isfinite(column.clip):
        value = nodes.add("Clip", [value, double(-column.clip), double(column.clip)])
    low, high = range_of(column)
    below, above = (
        nodes.add(kind, [filled, double(bound)])
        for kind, bound in (("Less", low), ("Greater", high))
    )
    inside = nodes.add("Not", [nodes.add("Or", [below, above])])
    # A missing value counts as neither below nor above.
    inside = nodes.add("Or", [inside, gaps])
    return nodes.add("Unsqueeze", [value, nodes.constant([1], np.int64)]), gaps, inside


def _category(nodes: Nodes, column: Feature, x: str) -> tuple[str, str, str]:
    codes = _codes(column)
    code = nodes.add(
        "LabelEncoder", [x], domain=_ML, keys_strings=list(codes),
        values_int64s=list(codes.values()), default_int64=_unseen(column),
    )  # fmt: skip
    gaps = nodes.add("Equal", [code, nodes.constant(_MISSING, np.int64)])
    inside = nodes.add("Not", [nodes.add("Equal", [code, nodes.constant(_UNKNOWN, np.int64)])])
    places = nodes.constant(np.arange(len(column.categories))[None], np.int64)
    column_code = nodes.add("Unsqueeze", [code, nodes.constant([1], np.int64)])
    return nodes.add("Equal", [column_code, places]), gaps, inside


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
