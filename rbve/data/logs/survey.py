"""The first pass over a log: figures of its columns; actions, features and types that follow."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from rbve.data.features import OTHER, Feature, Features
from rbve.data.logs.columns import (
    comparable,
    plain,
    present,
    to_numpy,
    without_nan,
)
from rbve.data.logs.figures import Numbers, Words
from rbve.data.logs.order import EpisodeOrder
from rbve.data.logs.resolve import Log, inner, is_array, is_category, is_number, refuse_types
from rbve.data.logs.roles import LogOptions, Reading, Roles
from rbve.data.source import Report, on_cores

_MAX_ACTIONS = 4096  # inferred ones; more can be declared
_EXACT = 2.0**53  # whole numbers beyond it are not all float64
_MAX_CATEGORIES = 1000
MAX_RARE = 100_000  # names counted to find out which are rare


class Survey:
    """Figures of the columns, gathered in one pass over all rows, and what follows from them."""

    def __init__(
        self, log: Log, roles: Roles, options: LogOptions, report: Report, notes: list[str]
    ) -> None:
        self.log, self.roles, self.options, self.report = log, roles, options, report
        self.notes = notes
        self.numbers: dict[str, Numbers] = {}  # by column
        self.words: dict[str, Words] = {}
        self.gaps: set[str] = set()  # columns without a value in the row of a decision
        self.rows = 0
        self._observed = [*roles["observation"], *roles["next_observation"]]
        # The columns of each feature: of the observation, and of the next one if there is.
        both = filter(None, (roles["observation"], roles["next_observation"]))
        self._pairs = list(zip(*both, strict=True))
        self.array = is_array(log.types.get(roles.one("observation")))
        # Names of a column's categories that are counted, at most.
        self._most_names = MAX_RARE if options.rare else _MAX_CATEGORIES

    def _is_words(self, pair: tuple[str, ...]) -> bool:
        kinds = (self.log.types[name] for name in pair)
        return pair[0] in self.options.categorical or any(map(is_category, kinds))

    def reading(self, order: EpisodeOrder) -> Reading:
        """Read the file once; refuses types or values that do not suit their columns' roles.

        `order` gets the ids of episodes, batch by batch.
        """
        log = self.log
        if log.typed:
            refuse_types(log, self.roles, self.options, self.report)
        if log.typed and log.logs:
            self._gather_apart(log.logs, order)
        else:
            self._gather(order)
        if not self.rows:
            self.report.stop()
            rows = "no row; a log needs one row per decision"
            rows = rows if log.typed else "a header and no row; a log needs decisions"
            self.report.fatal("empty file", f"holds {rows}")
        if not log.typed:
            log.settle(self.report)
            for name, words in self.words.items():
                self.words[name] = words.renamed(log.cast(name, pa.array(words.names, pa.string())))
            refuse_types(log, self.roles, self.options, self.report)
        actions, by_id = self._action_set()
        features = None if self.array else Features(tuple(map(self._feature, self._pairs)))
        shape, dtype = (
            self._array_facts() if features is None else ((len(features.columns),), self._dtype())
        )
        facts = (actions, by_id, shape, dtype, features)
        return Reading(self.roles, self.options, *facts, self.notes)

    def _gather_apart(self, logs: Sequence[Log], order: EpisodeOrder) -> None:
        """Of logs one after another, on all cores."""

        def survey(log: Log) -> tuple[Survey, EpisodeOrder]:
            own = Survey(log, self.roles, self.options, log.report, [])
            ids = EpisodeOrder()
            own._gather(ids)
            return own, ids

        for own, ids in on_cores(survey, logs):
            order.extend(ids)
            self.gaps |= own.gaps
            self.rows += own.rows
            for name, figures in own.numbers.items():
                self.numbers.setdefault(name, Numbers()).merge(figures)
            for name, words in own.words.items():
                self.words.setdefault(name, Words(words.limit)).merge(words)

    def _gather(self, order: EpisodeOrder) -> None:
        """Of a column of texts, which may turn out as numbers or names, figures of both."""
        log, roles, action = self.log, self.roles, self.roles.one("action")
        for pair in () if self.array else self._pairs:
            if not log.typed or not self._is_words(pair):
                self.numbers |= {name: Numbers() for name in pair}
            if not log.typed or self._is_words(pair):
                self.words |= {name: Words(self._most_names) for name in pair}
        for name in () if self.options.actions else roles.decisions:
            self.words[name] = Words(16 * _MAX_ACTIONS)  # the largest id among so many is named
        indicated = roles["observation"] if self.options.missing == "indicator" else ()
        indicated = () if self.array else indicated
        names = roles.in_use  # of texts all, whose types are not known yet
        if log.typed:
            more = (*roles["episode"], *([action] if indicated else ()))
            names = list(dict.fromkeys([*self.numbers, *self.words, *more])) or [action]
        log.begin(roles)
        for batch in log.batches(names):
            for name in names:
                column = batch.column(name)
                cells = log.numbers(name, column, self.rows)
                if name in self.numbers and cells is not None:
                    self.numbers[name].add(cells)
                if name in self.words:
                    self.words[name].add(column)
                if name in roles["episode"]:
                    order.add(comparable(column), None if log.typed else cells)
                if name in indicated:
                    known = without_nan(plain(column if cells is None else cells))
                    # Final rows do not count: they may lack their observation as a whole.
                    gap = present(batch.column(action)) & ~present(known)
                    self.gaps |= {name} if gap.any() else set()
            self.rows += len(batch)

    def _first_shape(self, name: str) -> tuple[int, ...] | None:
        """Of the first array in a column, which is read no further."""
        columns = (batch.column(name) for batch in self.log.batches([name]))
        shapes = (_shape_of(plain(column)) for column in columns)
        return next(filter(None, shapes), None)

    def _array_facts(self) -> tuple[tuple[int, ...], np.dtype]:
        """Shape and type of observations that are arrays."""
        name = self.roles.one("observation")
        shape, known = self._first_shape(name), self.log.shape
        if shape is None or 0 in shape:
            self.report.fatal("nan observation", f"column {name!r} holds no number in any row")
        if known is not None and math.prod(known) == math.prod(shape):
            shape = known
        kind = inner(plain(pa.array([], self.log.types[name])).type)
        boolean = pa.types.is_boolean(kind)
        return shape, np.dtype(bool) if boolean else to_numpy(pa.array([], kind)).dtype

    def _action_set(self) -> tuple[tuple[str, ...], bool]:
        """(names, whether they are ids)."""
        if self.options.actions:
            return self.options.actions, False
        action, suffixes = self.roles.one("action"), self.roles.suffixes["legal"]
        by_id, legal = is_number(self.log.types[action]), self.roles["legal"]
        names = set().union(*(self.words[name].names for name in self.roles.decisions))
        ids = sorted(int(name) for name in names if name.isdecimal()) if by_id else []
        if ids and ids[-1] >= _MAX_ACTIONS:
            self.report.fault(
                "too many actions",
                f"column {action!r} holds action {ids[-1]}; at most {_MAX_ACTIONS} actions are "
                "inferred. Is it the action? Declare the set with --actions if so",
            )
            ids = [each for each in ids if each < _MAX_ACTIONS]
        names = set(map(str, ids)) if by_id else names
        if len(names) > _MAX_ACTIONS:
            self.report.fatal(
                "too many actions",
                f"column {action!r} holds more than {_MAX_ACTIONS} different names; is it the "
                "action? Declare the set with --actions if so",
            )
        if not names:
            what = "holds no action at all"
            if sum(self.words[action].names.values()):
                what = "holds numbers of which none is an action's id; ids are whole, from 0 on"
            self.report.fatal("bad action", f"column {action!r} {what}")
        numbered = by_id and set(suffixes) == set(map(str, range(len(suffixes))))
        if names <= set(suffixes) and not numbered:
            return suffixes, False  # the masks name the set
        if not by_id:
            return tuple(sorted(names)), False
        count = max(ids[-1] + 1, len(suffixes) if numbered else 0)
        if len(legal) == 1 and is_array(self.log.types[legal[0]]):
            # Masks know actions that were never taken.
            count = max(count, (self._first_shape(legal[0]) or (0,))[0])
        missing = [str(each) for each in range(count) if str(each) not in names]
        if missing:
            self.notes.append(
                f"action ids {', '.join(missing[:10])}{', ...' if len(missing) > 10 else ''} never "
                f"occur, though ids reach {count - 1}: the set has {count} actions; declare it to "
                f"leave them out (--actions {' '.join(map(str, ids[:10]))}"
                f"{' ...' if len(ids) > 10 else ''})"
            )
        return tuple(map(str, range(count))), True

    def _feature(self, pair: tuple[str, ...]) -> Feature:
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
        if names and all(map(_looks_numeric, names)) and is_category(self.log.types[name]):
            self.notes.append(
                f"column {name!r} holds numbers as text ({min(names)!r}) and is taken as "
                "categories; convert it if they are quantities"
            )
        return (*sorted(names - {OTHER}), *([OTHER] if pooled or OTHER in names else []))

    def _dtype(self) -> np.dtype:
        """One that holds every column: their common type, else float32 if exact, else float64."""
        kinds = {self.log.types[name] for name in self._observed}
        stats = {n: self.numbers[n] for p in self._pairs if not self._is_words(p) for n in p}
        all_numbers = len(stats) == len(self._observed)
        gathered = [stats.get(name) or self.words[name] for name in self._observed]
        gaps = any(each.gaps for each in gathered)
        kind = next(iter(kinds))
        holds = pa.types.is_floating(kind) or (pa.types.is_integer(kind) and not gaps)
        if self.log.typed and len(kinds) == 1 and all_numbers and holds:
            return np.dtype(kind.to_pandas_dtype())
        whole = [name for name in stats if pa.types.is_integer(self.log.types[name])]
        huge = [name for name in whole if stats[name].largest > _EXACT]
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


def _shape_of(column: pa.Array) -> tuple[int, ...] | None:
    """Of the first row that has one."""
    for row in range(len(column)):
        value, shape = column[row], []
        while value.is_valid and isinstance(value, pa.ListScalar | pa.FixedSizeListScalar):
            shape.append(len(value.values))
            if not shape[-1]:
                break
            value = value.values[0]
        if shape:
            return tuple(shape)
    return None


def _looks_numeric(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
