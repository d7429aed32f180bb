"""The first pass over a log: types, statistics, categories, actions and the order of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from rbve.data.features import Features
from rbve.data.logs import values
from rbve.data.logs.infer import MAX_ACTIONS, Ids, Inference, Numbers, Words
from rbve.data.logs.resolve import refuse_unfit
from rbve.data.logs.roles import LogOptions, Roles
from rbve.data.logs.table import TextLog
from rbve.data.logs.types import Settler, TextColumn, cleaned


@dataclass(frozen=True)
class Reading:
    """How the columns of a log become those of a Dataset."""

    roles: Roles
    options: LogOptions
    actions: tuple[str, ...]
    by_id: bool  # actions are their ids, names "0", "1", ...
    shape: tuple[int, ...]
    dtype: np.dtype
    features: Features | None  # None: observations are arrays
    interleaved: values.Interleaved | None  # None: the rows of each episode stand together
    notes: list[str] = field(default_factory=list)
    own: bool = False  # the log was written by this library, which says what it holds


class Survey(Inference):
    """Gathers what the columns hold, in one pass over all rows."""

    def reading(self) -> Reading:
        """Read the file once; refuses types or values that do not suit their columns' roles."""
        if isinstance(self.log, TextLog):
            self._read_texts(self.log)
            self._refuse_types()
        else:
            self._refuse_types()
            self._read_values()
        if not self.rows:
            self.report.fatal("empty file", "holds no row; a log needs one row per decision")
        actions, by_id = self._action_set()
        features = None if self.array else Features(tuple(map(self._feature, self._pairs())))
        return Reading(
            roles=self.roles,
            options=self.options,
            actions=actions,
            by_id=by_id,
            shape=self._array_shape() if features is None else (len(features.columns),),
            dtype=self._array_dtype() if features is None else self._dtype(),
            features=features,
            interleaved=self.order.interleaved(),
            notes=self.notes,
        )

    def _refuse_types(self) -> None:
        refuse_unfit(self.log, self.roles, self.report)
        for name in self._observed:
            kind = self.log.types[name]
            held = values.inner(kind)
            other = pa.types.is_boolean(held) if self.array else values.is_category(held)
            fit = values.is_array(kind) == self.array and (values.is_number(held) or other)
            if not fit:
                self.report.fatal(
                    "mixed types",
                    f"column {name!r} holds {kind}, which is no number, category or array of "
                    "numbers as the observation needs; leave it out or convert it",
                )
        decisions = self.roles.decisions
        if not self.options.actions and len({*map(self._is_number, decisions)}) > 1:
            self.report.fatal(
                "mixed types",
                f"columns {', '.join(decisions)} hold numbers and names; declare the set with "
                "--actions if they belong together",
            )
        for name in () if self.array else self.options.categorical:
            if name not in self.roles["observation"]:
                self.report.fault(
                    "missing column",
                    f"--categorical names {name!r}, which is no column of the observation: "
                    f"{', '.join(self.roles['observation'])}",
                )

    # The pass, over values with types or over texts

    def _read_values(self) -> None:
        for pair in () if self.array else self._pairs():
            if self._is_words(pair):
                self.words |= {name: Words(self._most_names) for name in pair}
            else:
                self.numbers |= {name: Numbers() for name in pair}
        for name in () if self.options.actions else self.roles.decisions:
            if self._is_number(name):
                self.ids[name] = Ids()
            else:
                self.words[name] = Words(MAX_ACTIONS)
        gathered: list[tuple[str, Any]] = [
            item for each in (self.numbers, self.words, self.ids) for item in each.items()
        ]
        columns = [*(name for name, _ in gathered), *self.roles["episode"]]
        columns += self.roles["action"] if self._indicated else ()
        for batch in self.log.batches(list(dict.fromkeys(columns)) or [self.roles.one("action")]):
            self.rows += len(batch)
            for name, gather in gathered:
                gather.add(batch.column(name))
            for name in self.roles["episode"]:
                self.order.add(values.comparable(batch.column(name)))
            if self._indicated:
                cells = {
                    name: values.without_nan(values.plain(batch.column(name)))
                    for name in self._observed
                }
                self._note_gaps(batch.column(self.roles.one("action")), cells)
        self.mask_width = self._mask_width()

    def _read_texts(self, log: TextLog) -> None:
        names, time = self.roles.in_use, self.roles["time"]
        for name in names:
            format = self.options.time_format if name in time else None
            log.columns[name] = TextColumn(self.options.decimal or ".", format)
        self.numbers = {name: Numbers() for name in self._observed}
        self.words = {name: Words(self._most_names) for name in self._observed}
        if not self.options.actions:
            self.ids = {name: Ids() for name in self.roles.decisions}
            self.words |= {name: Words(MAX_ACTIONS) for name in self.roles.decisions}
        for block in log.texts(names):
            texts = {name: cleaned(block.column(name)) for name in names}
            self._add_texts(texts, log.columns)
            self.rows += len(block)
        if not self.rows:
            self.report.stop()
            self.report.fatal("empty file", "holds a header and no row; a log needs decisions")
        settler = Settler(self.roles, self.options, self.report)
        log.types = {name: settler.type(name, log.columns[name]) for name in names}
        if settler.unread:
            self.report.unreadable("mixed types", "; ".join(settler.unread))
        self.report.stop()
        for name, words in self.words.items():
            if log.types[name] != pa.string():
                spelled = pa.array(words.names, pa.string())
                self.words[name] = words.renamed(log.columns[name].cast(spelled, log.types[name]))

    def _add_texts(self, texts: dict[str, pa.Array], columns: dict[str, TextColumn]) -> None:
        for name, column in texts.items():
            seen = columns[name]
            cells = seen.add(column, self.rows)
            if cells is not None:
                for numbers in (self.numbers, self.ids):
                    if name in numbers:
                        numbers[name].add(cells)
            if name in self.words:
                self.words[name].gaps |= column.null_count > 0
                if cells is None or name in self._counted:
                    self.words[name].add(column)
            if name in self.roles["episode"]:
                self.order.add(column, cells)
            if self._indicated and cells is not None and name in self._observed:
                texts[name] = values.without_nan(cells)
        if self._indicated:
            self._note_gaps(texts[self.roles.one("action")], texts)

    @cached_property
    def _counted(self) -> set[str]:
        """Columns of a text file whose numbers may turn out to be names."""
        declared = {
            name for pair in self._pairs() if pair[0] in self.options.categorical for name in pair
        }
        roles = {name for _, name in self.roles.of_kind("id", "flag", "mask", "decision")}
        return declared | roles | (set(self._observed) if self.roles["next_observation"] else set())

    def _note_gaps(self, actions: pa.Array, cells: dict[str, pa.Array]) -> None:
        """Final rows do not count: they may lack their observation as a whole."""
        decided = values.present(actions)
        for name in self.roles["observation"]:
            if (decided & ~values.present(cells[name])).any():
                self.gaps.add(name)

    # Arrays, of which the first is read

    def _first_shape(self, name: str) -> tuple[int, ...] | None:
        """Of the first array in a column, which is read no further."""
        columns = (batch.column(name) for batch in self.log.batches([name]))
        shapes = (values.shape_of(values.plain(column)) for column in columns)
        return next(filter(None, shapes), None)

    def _mask_width(self) -> int:
        legal = self.roles["legal"]
        if len(legal) != 1 or not values.is_array(self.log.types[legal[0]]):
            return 0
        return (self._first_shape(legal[0]) or (0,))[0]

    def _array_shape(self) -> tuple[int, ...]:
        name = self.roles.one("observation")
        shape, known = self._first_shape(name), self.log.shape
        if shape is None or 0 in shape:
            self.report.fatal("nan observation", f"column {name!r} holds no number in any row")
        return known if known is not None and math.prod(known) == math.prod(shape) else shape

    def _array_dtype(self) -> np.dtype:
        empty = pa.array([], self.log.types[self.roles.one("observation")])
        kind = values.inner(values.plain(empty).type)
        if pa.types.is_boolean(kind):
            return np.dtype(np.bool_)
        return values.to_numpy(pa.array([], kind)).dtype
