"""Figures of columns, batch by batch, and what they say: actions, features, types."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from rbve.data.features import OTHER, Feature, category_name
from rbve.data.logs import values
from rbve.data.logs.roles import LogOptions, Roles
from rbve.data.logs.table import Log
from rbve.data.source import Report

MAX_ACTIONS = 4096  # inferred ones; more can be declared
EXACT = 2.0**53  # whole numbers beyond it are not all float64
_MAX_CATEGORIES = 1000
MAX_RARE = 100_000  # names counted to find out which are rare


@dataclass
class Numbers:
    """Mean and deviation, merged batch by batch (Chan et al.), and what types hold the values."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0  # summed about the mean
    low: float = math.inf
    high: float = -math.inf
    single: bool = True  # all values are float32 numbers
    gaps: bool = False

    def add(self, column: pa.Array) -> None:
        cells, known = values.numbers(column)
        wide = cells.astype(np.float64)
        finite = known & np.isfinite(wide)
        self.gaps |= not finite.all()
        wide = wide[finite]
        if not len(wide):
            return
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(wide.mean())
            squares = float(np.square(wide - mean).sum())
            total = self.count + len(wide)
            apart = mean - self.mean
            self.squares += squares + apart * apart * self.count * len(wide) / total
            self.mean += apart * len(wide) / total
            self.single &= bool((wide.astype(np.float32) == wide).all())
        self.count = total
        self.low = min(self.low, float(wide.min()))
        self.high = max(self.high, float(wide.max()))

    @property
    def largest(self) -> float:
        return max(-self.low, self.high)

    def feature(self, name: str) -> Feature:
        """The column as it is standardised."""
        if not self.count or self.low == self.high:
            return Feature(name, mean=self.low if self.count else 0.0)
        scale = math.sqrt(self.squares / self.count) if self.squares >= 0 else math.nan
        if not (math.isfinite(self.mean) and 0 < scale < math.inf):  # too wide for float64 sums
            return Feature(name, mean=0.0, scale=self.largest)
        return Feature(name, mean=self.mean, scale=scale)


@dataclass
class Words:
    """Different names in a column and how many rows hold them, up to a limit of names."""

    limit: int
    names: Counter[str] = field(default_factory=Counter)
    gaps: bool = False

    def add(self, column: pa.Array) -> None:
        cells = values.without_nan(values.plain(column))
        self.gaps |= cells.null_count > 0
        if len(self.names) > self.limit:
            return
        for each in cells.drop_null().value_counts()[: self.limit + 1].to_pylist():
            self.names[category_name(each["values"])] += each["counts"]  # one for 9 and 9.0

    def renamed(self, names: pa.Array) -> Words:
        """With these in the place of the names, in their order; NaN is a gap."""
        cells = values.without_nan(names)
        words = Words(self.limit, gaps=self.gaps or cells.null_count > names.null_count)
        for name, count in zip(cells.to_pylist(), self.names.values(), strict=True):
            if name is not None:
                words.names[category_name(name)] += count
        return words


@dataclass
class Ids:
    """Which of the possible action ids occur, and the largest number beyond them."""

    occurs: np.ndarray = field(default_factory=lambda: np.zeros(MAX_ACTIONS, bool))
    beyond: float = -1.0

    def add(self, column: pa.Array) -> None:
        cells, known = values.numbers(column)
        whole = known & (cells >= 0) & (np.floor(cells) == cells)
        small = whole & (cells < MAX_ACTIONS)
        self.occurs[cells[small].astype(np.int64)] = True
        if (whole & ~small).any():
            self.beyond = max(self.beyond, float(cells[whole & ~small].max()))


class Inference:
    """Figures of columns, and what follows from them."""

    def __init__(self, log: Log, roles: Roles, options: LogOptions, report: Report) -> None:
        self.log, self.roles, self.options, self.report = log, roles, options, report
        self.notes: list[str] = []
        self.numbers: dict[str, Numbers] = {}  # by column
        self.words: dict[str, Words] = {}
        self.ids: dict[str, Ids] = {}
        self.order = values.EpisodeOrder()
        self.gaps: set[str] = set()  # columns without a value in the row of a decision
        self.rows = 0
        self.mask_width = 0  # of arrays of legal actions
        self._observed = [*roles["observation"], *roles["next_observation"]]
        self.array = values.is_array(log.types.get(roles.one("observation")))
        self._no_action = f"column {roles.one('action')!r} holds no action at all"
        # Names of a column's categories that are counted, at most.
        self._most_names = MAX_RARE if options.rare else _MAX_CATEGORIES
        self._indicated = options.missing == "indicator" and not self.array

    def _is_number(self, name: str) -> bool:
        return values.is_number(self.log.types[name])

    def _pairs(self) -> Iterator[list[str]]:
        """The columns of each feature: of the observation, and of the next one if there is."""
        both = filter(None, (self.roles["observation"], self.roles["next_observation"]))
        yield from map(list, zip(*both, strict=True))

    def _is_words(self, pair: list[str]) -> bool:
        kinds = (self.log.types[name] for name in pair)
        return pair[0] in self.options.categorical or any(map(values.is_category, kinds))

    # Actions

    def _action_set(self) -> tuple[tuple[str, ...], bool]:
        """(names, whether they are ids)."""
        if self.options.actions:
            return self.options.actions, False
        if self._is_number(self.roles.one("action")):
            return self._id_set([self.ids[name] for name in self.roles.decisions])
        names = sorted(set().union(*(self.words[name].names for name in self.roles.decisions)))
        if len(names) > MAX_ACTIONS:
            self.report.fatal(
                "too many actions",
                f"column {self.roles.one('action')!r} holds more than {MAX_ACTIONS} different "
                "names; is it the action? Declare the set with --actions if so",
            )
        if not names:
            self.report.fatal("bad action", self._no_action)
        suffixes = self.roles.suffixes["legal"]
        return suffixes if set(names) <= set(suffixes) else tuple(names), False

    def _id_set(self, gathered: list[Ids]) -> tuple[tuple[str, ...], bool]:
        occurs = np.any([each.occurs for each in gathered], axis=0)
        beyond = max(each.beyond for each in gathered)
        if beyond >= MAX_ACTIONS:
            self.report.fault(
                "too many actions",
                f"column {self.roles.one('action')!r} holds action {beyond:.0f}; at most "
                f"{MAX_ACTIONS} actions are inferred. Is it the action? Declare the set with "
                "--actions if so",
            )
        if not occurs.any():
            self.report.fatal("bad action", self._no_action)
        count = int(np.flatnonzero(occurs)[-1]) + 1
        suffixes = self.roles.suffixes["legal"]
        if set(suffixes) == set(map(str, range(len(suffixes)))):
            count = max(count, len(suffixes))
        elif set(map(str, np.flatnonzero(occurs))) <= set(suffixes):
            return suffixes, False  # the masks name the set
        count = max(count, self.mask_width)  # masks know actions that were never taken
        missing = np.flatnonzero(~occurs[:count])
        if len(missing):
            ids = ", ".join(map(str, missing[:10])) + (", ..." if len(missing) > 10 else "")
            held = " ".join(map(str, np.flatnonzero(occurs)[:10]))
            self.notes.append(
                f"action ids {ids} never occur, though ids reach {count - 1}: the set has {count} "
                f"actions; declare it to leave them out (--actions {held}"
                f"{' ...' if occurs.sum() > 10 else ''})"
            )
        return tuple(map(str, range(count))), True

    # Observations

    def _feature(self, pair: list[str]) -> Feature:
        """Statistics are those of the decisions; ranges and names those of both columns."""
        name, missing = pair[0], self.options.missing
        if missing == "indicator" and name not in self.gaps:
            missing = "mean"
        if self._is_words(pair):
            levels = self._levels(name, [self.words[each] for each in pair])
            other = self.options.rare > 0
            return Feature(name, "category", categories=levels, missing=missing, other=other)
        feature = self.numbers[name].feature(name)
        if known := [self.numbers[each] for each in pair if self.numbers[each].count]:
            low, high = min(each.low for each in known), max(each.high for each in known)
            feature = replace(feature, low=low, high=high)
        return replace(feature, clip=self.options.clip, missing=missing)

    def _levels(self, name: str, gathered: list[Words]) -> tuple[str, ...]:
        counts = sum((each.names for each in gathered), Counter[str]())
        names = {each for each in counts if counts[each] >= self.options.rare}
        if pooled := len(counts) - len(names):
            self.notes.append(
                f"column {name!r}: {pooled} of {len(counts)} categories are in fewer than "
                f"{self.options.rare} rows and become {OTHER!r}"
            )
        if len(names) > _MAX_CATEGORIES or len(counts) > self._most_names:
            limit = _MAX_CATEGORIES if len(names) > _MAX_CATEGORIES else self._most_names
            more = "more" if self.options.rare else "the rare ones"
            self.report.fault(
                "too many categories",
                f"column {name!r} holds more than {limit} different texts; leave it out of "
                f"--observation, or pool {more} with --rare N",
            )
            names = set(sorted(names)[:_MAX_CATEGORIES])
        if names and all(map(_looks_numeric, names)) and values.is_category(self.log.types[name]):
            self.notes.append(
                f"column {name!r} holds numbers as text ({min(names)!r}) and is taken as "
                "categories; convert it if they are quantities"
            )
        return (*sorted(names - {OTHER}), *([OTHER] if pooled or OTHER in names else []))

    def _dtype(self) -> np.dtype:
        """One that holds every column: their common type, else float32 if exact, else float64."""
        kinds = {self.log.types[name] for name in self._observed}
        stats = {n: self.numbers[n] for p in self._pairs() if not self._is_words(p) for n in p}
        all_numbers = len(stats) == len(self._observed)
        gathered = [stats.get(name) or self.words[name] for name in self._observed]
        gaps = any(each.gaps for each in gathered)
        kind = next(iter(kinds))
        holds = pa.types.is_floating(kind) or (pa.types.is_integer(kind) and not gaps)
        if self.log.typed and len(kinds) == 1 and all_numbers and holds:
            return np.dtype(kind.to_pandas_dtype())
        whole = [name for name in stats if pa.types.is_integer(self.log.types[name])]
        huge = [name for name in whole if stats[name].largest > EXACT]
        if all(each.single for each in stats.values()) and not huge:
            return np.dtype(np.float32)
        if huge and all_numbers and kinds == {pa.int64()} and not gaps:
            return np.dtype(np.int64)
        if huge:
            self.notes.append(
                f"column {huge[0]!r} holds whole numbers beyond 2^53, which lose their last digits "
                "beside other columns; is it an id, to leave out?"
            )
        return np.dtype(np.float64)


def _looks_numeric(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
