"""What the columns of a flat observation mean, so that a policy takes the rows of the log.

A dataset keeps raw values: numbers as they are, categories as the index of their name. Networks
see numbers standardised and categories one-hot, by statistics taken once, when the log was read.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rbve.registry import did_you_mean

BOOLS = ("False", "True")


@dataclass(frozen=True)
class Feature:
    name: str
    kind: Literal["number", "category"] = "number"
    mean: float = 0.0
    scale: float = 1.0  # numbers are (value − mean) / scale
    categories: tuple[str, ...] = ()  # the index is what the dataset holds

    @property
    def size(self) -> int:
        """Inputs the network sees."""
        return len(self.categories) if self.kind == "category" else 1

    def code(self, value: Any) -> float:
        """The number a dataset holds for a value of the log."""
        if self.kind == "category":
            return float(self._category(value))
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise ValueError(f"column {self.name!r} takes a number; got {value!r}") from None
        if not math.isfinite(number):
            raise ValueError(f"column {self.name!r} takes a finite number; got {value!r}")
        return number

    def _category(self, value: Any) -> int:
        name = category_name(value)
        if set(self.categories) <= set(BOOLS) and name.strip().capitalize() in BOOLS:
            name = name.strip().capitalize()  # a text file's "true" and "TRUE"
        if name not in self.categories:
            hint = did_you_mean(name, self.categories)
            raise ValueError(
                f"column {self.name!r}: category {name!r} is not in the data the policy learned "
                f"from.{hint} Known: {', '.join(self.categories[:20])}"
            )
        return self.categories.index(name)


def category_name(value: Any) -> str:
    """The name of a value of a log, the same whichever type the file or the caller gave it."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


@dataclass(frozen=True)
class Features:
    columns: tuple[Feature, ...]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def size(self) -> int:
        return sum(column.size for column in self.columns)

    def encode(self, raw: Any, xp: Any = np) -> Any:
        """(N, columns) as the dataset holds them to (N, size) float32 as the network sees them.

        `xp` is numpy, or jax.numpy inside a compiled function.
        """
        parts = []
        for index, column in enumerate(self.columns):
            values = raw[:, index : index + 1]
            if column.kind == "category":
                parts.append(values == xp.arange(column.size))
            else:
                parts.append((values - column.mean) / column.scale)
        return xp.concatenate([part.astype(xp.float32) for part in parts], axis=1)

    def rows(self, given: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> np.ndarray:
        """(N, columns) from rows of the log, given by column name."""
        many = [given] if isinstance(given, Mapping) else list(given)
        table = np.empty((len(many), len(self.columns)))
        for index, row in enumerate(many):
            missing = [name for name in self.names if name not in row]
            if missing:
                raise ValueError(
                    f"row {index} lacks the column {missing[0]!r}; it needs {', '.join(self.names)}"
                )
            table[index] = [column.code(row[column.name]) for column in self.columns]
        return table

    def to_json(self) -> list[dict[str, Any]]:
        return [
            {"name": column.name, "kind": "category", "categories": list(column.categories)}
            if column.kind == "category"
            else {
                "name": column.name,
                "kind": "number",
                "mean": column.mean,
                "scale": column.scale,
            }
            for column in self.columns
        ]

    @staticmethod
    def from_json(content: Any, where: str) -> Features:
        """`where` opens the message if the content is not what to_json() wrote."""
        damaged = ValueError(f"{where}: 'features' is not a list of columns; damaged")
        if not isinstance(content, list) or not content:
            raise damaged
        columns = []
        for entry in content:
            if not isinstance(entry, dict) or type(entry.get("name")) is not str:
                raise damaged
            if entry.get("kind") == "category":
                names = entry.get("categories")
                if not isinstance(names, list) or not all(type(name) is str for name in names):
                    raise damaged
                columns.append(Feature(entry["name"], "category", categories=tuple(names)))
                continue
            mean, scale = entry.get("mean"), entry.get("scale")
            if entry.get("kind") != "number" or not (is_finite(mean) and is_finite(scale)):
                raise damaged
            if not scale > 0:  # type: ignore[operator]
                raise damaged
            columns.append(Feature(entry["name"], "number", float(mean), float(scale)))  # type: ignore[arg-type]
        return Features(tuple(columns))


def is_finite(value: Any) -> bool:
    # A whole number may have more digits than a float can count.
    return type(value) in (int, float) and abs(value) <= sys.float_info.max
