"""Spaces as Minari's metadata describes them, and how an observation becomes one array.

A Box or MultiBinary stays as it is. A Discrete or MultiDiscrete observation is a category: the
dataset holds its index, and networks see it one-hot. A Dict (keys sorted) or Tuple of such flat
spaces becomes one row of columns.
"""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from rbve.data.features import Feature, Features

_MOST = 1 << 16  # of actions, categories or columns; more is taken for damage
_DEEPEST = 8  # nested Dicts and Tuples


class Leaf(NamedTuple):
    """One array of an observation."""

    path: tuple[str | int, ...]  # keys of Dicts and places in Tuples; () is the whole observation
    shape: tuple[int, ...]
    ranges: tuple[tuple[int, int], ...] = ()  # (first value, number of values) of each category
    image: bool = False  # large enough for Minari to store it as JPEG

    @property
    def name(self) -> str:
        return ".".join(map(str, self.path)) or "observation"

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def _parse(text: Any, where: str) -> dict[str, Any]:
    try:
        space = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        space = None
    if not isinstance(space, dict) or not isinstance(space.get("type"), str):
        raise ValueError(f"{where} describes no space; the metadata is damaged")
    return space


def discrete(text: Any, where: str) -> tuple[int, int]:
    """(first action, number of actions) of an action space, which must be Discrete."""
    space = _parse(text, where)
    if space["type"] != "Discrete":
        raise ValueError(
            f"{where} is {space['type']}; this library learns discrete actions only, so it needs "
            "Discrete"
        )
    return _category(space.get("start", 0), space.get("n"), where)


def _category(start: Any, count: Any, where: str) -> tuple[int, int]:
    if type(start) is not int or type(count) is not int or not 0 < count <= _MOST:
        raise ValueError(f"{where}: Discrete of {count} values; it needs 1 to {_MOST}")
    if abs(start) > 1 << 31:
        raise ValueError(f"{where}: Discrete from {start} on; damaged")
    return start, count


def leaves(text: Any, where: str) -> tuple[Leaf, ...]:
    """The arrays of an observation, in the order in which they are joined."""
    tree = tuple(_walk(_parse(text, where), (), where))
    if _is_one_array(tree):
        return tree
    for leaf in tree:
        if len(leaf.shape) > 1:
            raise ValueError(
                f"{where}: {leaf.name!r} has shape {leaf.shape}; only an observation of one array, "
                "or of flat ones that can be joined, can be read"
            )
    if sum(sum(count for _, count in leaf.ranges) or leaf.size for leaf in tree) > _MOST:
        raise ValueError(f"{where}: more than {_MOST} columns and categories; damaged")
    return tree


def _is_one_array(tree: Sequence[Leaf]) -> bool:
    """Whether the observation is an array as it stands."""
    return len(tree) == 1 and not tree[0].ranges


def _walk(space: dict[str, Any], path: tuple[str | int, ...], where: str) -> Iterator[Leaf]:
    kind = space["type"]
    named = f"{where}: {Leaf(path, ()).name!r}"
    if kind in ("Dict", "Tuple"):
        inner = space.get("subspaces")
        if not inner or type(inner) is not (dict if kind == "Dict" else list):
            raise ValueError(f"{named}: {kind} of nothing; the metadata is damaged")
        if len(path) >= _DEEPEST:
            raise ValueError(f"{named}: nested deeper than {_DEEPEST}")
        for key in sorted(inner) if kind == "Dict" else range(len(inner)):
            yield from _walk(_parse(inner[key], named), (*path, key), where)
    elif kind == "Discrete":
        yield Leaf(path, (), (_category(space.get("start", 0), space.get("n"), named),))
    elif kind == "MultiDiscrete":
        counts = space.get("nvec")
        if not isinstance(counts, list) or any(isinstance(count, list) for count in counts):
            raise ValueError(f"{named}: MultiDiscrete needs a flat list of counts")
        starts = space.get("start", [0] * len(counts))
        if not isinstance(starts, list) or len(starts) != len(counts):
            raise ValueError(f"{named}: MultiDiscrete's 'start' does not fit; damaged")
        ranges = tuple(_category(*each, named) for each in zip(starts, counts, strict=True))
        yield Leaf(path, _shape_of([len(counts)], named), ranges)
    elif kind == "MultiBinary":
        count = space.get("n")
        yield Leaf(path, _shape_of(count if isinstance(count, list) else [count], named))
    elif kind == "Box":
        shape = _shape_of(space.get("shape"), named)
        frame = len(shape) in (2, 3) and min(shape[:2]) >= 32 and space.get("dtype") == "uint8"
        yield Leaf(path, shape, image=frame)
    else:
        raise ValueError(f"{named} is {kind}; observations must be numbers, so drop or encode it")


def _shape_of(sizes: Any, where: str) -> tuple[int, ...]:
    if not isinstance(sizes, list) or not all(type(size) is int and size > 0 for size in sizes):
        raise ValueError(f"{where}: cannot have the shape {str(sizes)[:80]}; damaged")
    if len(sizes) > 32:
        raise ValueError(f"{where}: more than 32 dimensions; damaged")
    return tuple(sizes)


def features(tree: Sequence[Leaf]) -> Features | None:
    """What the columns of a joined observation are; a single array needs no names."""
    if _is_one_array(tree):
        return None
    columns: list[Feature] = []
    for leaf in tree:
        for place in range(leaf.size):
            start, count = leaf.ranges[place] if leaf.ranges else (0, 0)
            names = tuple(map(str, range(start, start + count)))
            name = f"{leaf.name}[{place}]" if leaf.shape else leaf.name
            columns.append(Feature(name, "category" if names else "number", categories=names))
    return Features(tuple(columns))


def join(tree: Sequence[Leaf], arrays: Sequence[np.ndarray], where: str) -> np.ndarray:
    """(rows, ...) from the (rows, *shape) of every leaf; categories as indices from 0 on."""
    if _is_one_array(tree):
        return arrays[0]
    columns = []
    for leaf, array in zip(tree, arrays, strict=True):
        values = array.reshape(len(array), leaf.size)
        if leaf.ranges:
            if values.dtype.kind not in "iu":
                raise ValueError(
                    f"{where}: {leaf.name!r} holds {values.dtype}; it needs whole numbers"
                )
            starts, counts = np.array(leaf.ranges).T
            for step, place in np.argwhere((values < starts) | (values >= starts + counts)):
                raise ValueError(
                    f"{where}, step {step}: {leaf.name!r} is {values[step, place]}, which its "
                    f"space of {counts[place]} values from {starts[place]} on does not hold"
                )
            values = values.astype(np.int64) - starts
        columns.append(values)
    return np.concatenate(columns, axis=1)
