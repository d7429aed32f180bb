"""What the columns of a flat observation mean, so that a policy takes the rows of the log.

A dataset keeps raw values: numbers as they are, categories as the index of their name, NaN where a
value is missing. Networks see numbers standardised, within ± `clip` deviations, and categories
one-hot, by statistics taken once, when the log was read. A missing number is seen as the mean, a
missing category as none of its levels; with an indicator one more input says that it is missing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from rbve.registry import did_you_mean
from rbve.schema import is_finite

_BOOLS = ("False", "True")
Missing = Literal["error", "mean", "indicator"]
# Texts that say that a value is missing; in a text file, where they are not quoted.
NULLS = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "-nan", "NULL", "null")
OTHER = "(other)"  # the level of rare categories
_UNSEEN = -1.0  # the code of a category that is not in the data; datasets hold none
_FAR = 0.1  # of the range of the data, beyond it


@dataclass(frozen=True)
class Feature:
    name: str
    kind: Literal["number", "category"] = "number"
    mean: float = 0.0
    scale: float = 1.0  # numbers are (value − mean) / scale
    categories: tuple[str, ...] = ()  # the index is what the dataset holds
    low: float = -math.inf  # the range of numbers in the data
    high: float = math.inf
    clip: float = math.inf  # deviations at which standardised numbers are cut
    missing: Missing = "error"  # what a missing value is: refused, the mean, or that and an input
    other: bool = False  # categories that are not in the data are accepted

    @property
    def size(self) -> int:
        """Inputs the network sees."""
        values = len(self.categories) if self.kind == "category" else 1
        return values + (self.missing == "indicator")

    def code(self, value: Any) -> float:
        """The number a dataset holds for a value of the log."""
        if self.kind == "number" and type(value) is float and math.isfinite(value):
            return value
        if self.kind == "category" and type(value) is str and value in self.categories:
            return float(self.categories.index(value))
        text = str(value)
        # NaN of any type, and what pandas has for it; text of that kind may be a category.
        nothing = value is None or (not isinstance(value, str) and text in ("nan", "<NA>", "NaT"))
        if nothing or (text.strip() in NULLS and value not in self.categories):
            if self.missing == "error":
                kind = "finite number" if isinstance(value, float) else "number"
                kind = kind if self.kind == "number" else "category"
                raise ValueError(
                    f"column {self.name!r} takes a {kind}; got {value!r}. Convert the log with "
                    "--missing mean or --missing indicator if values may be missing"
                )
            return math.nan
        if self.kind == "category":
            name = category_name(value)
            if set(self.categories) <= {*_BOOLS, OTHER} and name.strip().capitalize() in _BOOLS:
                name = name.strip().capitalize()  # a text file's "true" and "TRUE"
            if name not in self.categories and not self.other:
                hint = did_you_mean(name, self.categories)
                raise ValueError(
                    f"column {self.name!r}: category {name!r} is not in the data the policy "
                    f"learned from.{hint} Known: {', '.join(self.categories[:20])}"
                )
            name = name if name in self.categories else OTHER
            return float(self.categories.index(name)) if name in self.categories else _UNSEEN
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise ValueError(f"column {self.name!r} takes a number; got {value!r}") from None
        except OverflowError:  # of a whole number with hundreds of digits
            number = math.inf
        if not math.isfinite(number):
            raise ValueError(f"column {self.name!r} takes a finite number; got {value!r}")
        return number

    def inputs(self, values: Any, xp: Any) -> list[Any]:
        """(N, 1) as the dataset holds them to the columns the network sees."""
        gaps = xp.isnan(values) if values.dtype.kind == "f" else xp.zeros(values.shape, bool)
        if self.kind == "category":
            seen = values == xp.arange(len(self.categories))
        else:
            seen = xp.clip((values - self.mean) / self.scale, -self.clip, self.clip)
            if self.missing != "error":
                seen = xp.where(gaps, 0, seen)
        return [seen, gaps] if self.missing == "indicator" else [seen]

    def far(self, values: Any, xp: Any = np) -> Any:
        """Which values lie far outside what the data holds: `FAR` of its range beyond it."""
        with np.errstate(invalid="ignore"):
            if self.kind == "category":
                return ~xp.isnan(values) & ~xp.isin(values, xp.arange(len(self.categories)))
            low, high = range_of(self)
            return (values < low) | (values > high)


def range_of(feature: Feature) -> tuple[float, float]:
    """Beyond which a number lies far outside the data."""
    margin = _FAR * (feature.high - feature.low)
    return feature.low - margin, feature.high + margin


def is_finite32(values: np.ndarray) -> np.ndarray:
    """Which values are finite as the 32-bit numbers that networks compute with."""
    if values.dtype.itemsize <= 4:
        return np.isfinite(values)
    return np.abs(values) <= np.finfo(np.float32).max


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
        """(N, columns) of a dataset as the network's (N, size) float32; `xp` is (jax.)numpy."""
        parts: list[Any] = []
        for index, column in enumerate(self.columns):
            parts += column.inputs(raw[:, index : index + 1], xp)
        return xp.concatenate([part.astype(xp.float32) for part in parts], axis=1)

    def accepts(self, raw: np.ndarray) -> np.ndarray:
        """(N, columns) bool, which values are finite, or missing where that is allowed."""
        allowed, finite = [column.missing != "error" for column in self.columns], is_finite32(raw)
        return finite | (np.isnan(raw) & np.array(allowed)) if any(allowed) else finite

    def rows(self, entries: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> np.ndarray:
        """(N, columns) from rows of the log, given by column name."""
        many = [entries] if isinstance(entries, Mapping) else list(entries)
        table = np.empty((len(many), len(self.columns)))
        for index, row in enumerate(many):
            if not isinstance(row, Mapping):
                raise ValueError(f"row {index} is no row by column name; got {str(row)[:80]}")
            lacking = [column for column in self.columns if column.name not in row]
            if lacking:
                gap = "" if lacking[0].missing == "error" else " (None where it is missing)"
                raise ValueError(
                    f"row {index} lacks the column {lacking[0].name!r}; it needs "
                    f"{', '.join(self.names)}{gap}"
                )
            try:
                table[index] = [column.code(row[column.name]) for column in self.columns]
            except ValueError as error:
                raise ValueError(f"row {index}: {error}") from None
        return table

    def far(self, raw: np.ndarray) -> list[str]:
        """What in (N, columns) lies far outside of what the data holds, row by row."""
        outside = [column.far(raw[:, index]) for index, column in enumerate(self.columns)]
        texts = []
        for row, index in np.argwhere(np.stack(outside, axis=1)):
            column = self.columns[index]
            what = (
                "is of a category that is not in the data"
                if column.kind == "category"
                else f"is {raw[row, index]:g}; the data reaches from {column.low:g} to "
                f"{column.high:g}"
            )
            texts.append(f"row {row}: column {column.name!r} {what}")
        return texts

    def to_json(self) -> list[dict[str, Any]]:
        """What is not said is the default: no bound, no missing value, no other category."""
        entries: list[dict[str, Any]] = []
        for column in self.columns:
            if column.kind == "category":
                values: dict[str, Any] = {"categories": list(column.categories)}
            else:
                values = {"mean": column.mean, "scale": column.scale}
            for name in ("low", "high", "clip", "missing", "other"):
                if (value := getattr(column, name)) != getattr(Feature, name):
                    values[name] = value
            entries.append({"name": column.name, "kind": column.kind, **values})
        return entries

    @staticmethod
    def from_json(content: Any, where: str) -> "Features":
        """`where` opens the message if the content is not what to_json() wrote."""
        columns = list(map(_column_of, content)) if isinstance(content, list) else []
        known = tuple(column for column in columns if column is not None)
        if not known or len(known) < len(columns):
            raise ValueError(f"{where}: 'features' is not a list of columns; damaged")
        return Features(known)


def _column_of(entry: Any) -> Feature | None:
    """None where the entry is not what to_json() wrote."""
    if not isinstance(entry, dict) or type(entry.get("name")) is not str:
        return None
    shared = {"missing": entry.get("missing", "error"), "other": entry.get("other", False)}
    if shared["missing"] not in get_args(Missing) or type(shared["other"]) is not bool:
        return None
    if entry.get("kind") == "category":
        names = entry.get("categories")
        if not isinstance(names, list) or not all(type(name) is str for name in names):
            return None
        return Feature(entry["name"], "category", categories=tuple(names), **shared)
    numbers = {name: entry[name] for name in ("low", "high", "clip") if name in entry}
    numbers |= {"mean": entry.get("mean"), "scale": entry.get("scale")}
    if entry.get("kind") != "number" or not all(map(is_finite, numbers.values())):
        return None
    known: dict[str, Any] = {name: float(value) for name, value in numbers.items()}
    feature = Feature(entry["name"], **known, **shared)
    fits = feature.scale > 0 and feature.clip > 0 and feature.low <= feature.high
    return feature if fits else None
