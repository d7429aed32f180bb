"""What a survey's figures say: the action set, the features and the type of observations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from rbve.data.features import OTHER, Feature, Features
from rbve.data.logs.gather import EXACT, MAX_ACTIONS, Ids, Numbers, Words
from rbve.data.logs.options import LogOptions
from rbve.data.logs.order import EpisodeOrder
from rbve.data.logs.roles import Roles
from rbve.data.logs.table import Log
from rbve.data.logs.values import inner, is_array, is_category, is_number, plain, shape_of, to_numpy
from rbve.data.source import Report

_MAX_CATEGORIES = 1000
MAX_RARE = 100_000  # names counted to find out which are rare


class Inference:
    """Figures of columns, and what follows from them."""

    def __init__(self, log: Log, roles: Roles, options: LogOptions, report: Report) -> None:
        self.log, self.roles, self.options, self.report = log, roles, options, report
        self.notes: list[str] = []
        self.numbers: dict[str, Numbers] = {}  # by column
        self.words: dict[str, Words] = {}
        self.ids: dict[str, Ids] = {}
        self.order = EpisodeOrder()
        self.gaps: set[str] = set()  # columns without a value in the row of a decision
        self.rows = 0
        self._observed = [*roles["observation"], *roles["next_observation"]]
        self.array = is_array(log.types.get(roles.one("observation")))
        self._indicated = options.missing == "indicator" and not self.array

    def _is_number(self, name: str) -> bool:
        return is_number(self.log.types[name])

    @property
    def _most_names(self) -> int:
        """Of a column's categories that are counted."""
        return MAX_RARE if self.options.rare else _MAX_CATEGORIES

    def _pairs(self) -> Iterator[list[str]]:
        """The columns of each feature: of the observation, and of the next one if there is."""
        observation, following = self.roles["observation"], self.roles["next_observation"]
        yield from (
            list(pair) for pair in zip(*filter(None, (observation, following)), strict=True)
        )

    def _is_words(self, pair: list[str]) -> bool:
        kinds = (self.log.types[name] for name in pair)
        return pair[0] in self.options.categorical or any(map(is_category, kinds))

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
            self._refuse_no_action()
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
            self._refuse_no_action()
        count = int(np.flatnonzero(occurs)[-1]) + 1
        suffixes = self.roles.suffixes["legal"]
        if set(suffixes) == set(map(str, range(len(suffixes)))):
            count = max(count, len(suffixes))
        elif set(map(str, np.flatnonzero(occurs))) <= set(suffixes):
            return suffixes, False  # the masks name the set
        count = max(count, self._mask_width())  # masks know actions that were never taken
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

    def _refuse_no_action(self) -> None:
        name = self.roles.one("action")
        self.report.fatal("bad action", f"column {name!r} holds no action at all")

    def _first_shape(self, name: str) -> tuple[int, ...] | None:
        """Of the first array in a column, which is read no further."""
        shapes = (shape_of(plain(batch.column(name))) for batch in self.log.batches([name]))
        return next(filter(None, shapes), None)

    def _mask_width(self) -> int:
        legal = self.roles["legal"]
        if len(legal) != 1 or not is_array(self.log.types[legal[0]]):
            return 0
        return (self._first_shape(legal[0]) or (0,))[0]

    # Observations

    def _features(self) -> Features:
        return Features(tuple(map(self._feature, self._pairs())))

    def _feature(self, pair: list[str]) -> Feature:
        """Statistics are those of the decisions; ranges and names those of both columns."""
        name, missing = pair[0], self.options.missing
        if missing == "indicator" and name not in self.gaps:
            missing = "mean"
        if self._is_words(pair):
            levels = self._levels(name, [self.words[each] for each in pair])
            return Feature(
                name, "category", categories=levels, missing=missing, other=self.options.rare > 0
            )
        feature = self.numbers[name].feature(name)
        if known := [self.numbers[each] for each in pair if self.numbers[each].count]:
            low, high = min(each.low for each in known), max(each.high for each in known)
            feature = replace(feature, low=low, high=high)
        return replace(feature, clip=self.options.clip, missing=missing)

    def _levels(self, name: str, gathered: list[Words]) -> tuple[str, ...]:
        counts: Counter[str] = Counter()
        for each in gathered:
            counts.update(each.names)
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
        if names and all(map(_looks_numeric, names)) and is_category(self.log.types[name]):
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

    def _array_shape(self) -> tuple[int, ...]:
        name = self.roles.one("observation")
        shape, known = self._first_shape(name), self.log.shape
        if shape is None or 0 in shape:
            self.report.fatal("nan observation", f"column {name!r} holds no number in any row")
        return known if known is not None and math.prod(known) == math.prod(shape) else shape

    def _array_dtype(self) -> np.dtype:
        kind = inner(plain(pa.array([], self.log.types[self.roles.one("observation")])).type)
        if pa.types.is_boolean(kind):
            return np.dtype(np.bool_)
        return to_numpy(pa.array([], kind)).dtype


def _looks_numeric(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
