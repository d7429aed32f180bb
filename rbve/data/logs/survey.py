"""The first pass over a log: statistics, categories and the action set, over the whole file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from rbve.data.features import OTHER, Feature, Features
from rbve.data.logs.gather import EXACT, MAX_ACTIONS, Ids, Numbers, Words
from rbve.data.logs.log import Log, Report
from rbve.data.logs.options import Options
from rbve.data.logs.roles import Roles, is_array
from rbve.data.logs.values import (
    inner,
    is_category,
    is_number,
    plain,
    present,
    shape_of,
    to_numpy,
    without_nan,
)

MAX_CATEGORIES = 1000
MAX_RARE = 100_000  # names counted to find out which are rare


@dataclass(frozen=True)
class Plan:
    """How the columns of a log become those of a Dataset."""

    roles: Roles
    options: Options
    actions: tuple[str, ...]
    by_id: bool  # actions are their ids, names "0", "1", ...
    shape: tuple[int, ...]
    dtype: np.dtype
    features: Features | None  # None: observations are arrays
    notes: list[str] = field(default_factory=list)
    own: bool = False  # the log was written by this library, which says what it holds


class Survey:
    def __init__(self, log: Log, roles: Roles, options: Options, report: Report) -> None:
        self.log, self.roles, self.options, self.report = log, roles, options, report
        self.notes: list[str] = []
        self.found: dict[str, Numbers | Words | Ids] = {}
        self.array = is_array(self.kind(roles.observation[0]))
        self.shape: tuple[int, ...] | None = None
        self.mask_width = 0
        self.gaps: set[str] = set()  # columns without a value in the row of a decision
        self.rows = 0

    def kind(self, name: str) -> pa.DataType:
        return self.log.types[name]

    def plan(self) -> Plan:
        self.refuse_observations()
        by_id = not self.options.actions and self.gather_actions()
        if not self.array:
            self.gather_features()
        self.run()
        if not self.rows:
            self.report.fatal("empty file", "holds no row; a log needs one row per decision")
        actions, by_id = self.action_set(by_id)
        features = None if self.array else self.features()
        return Plan(
            roles=self.roles,
            options=self.options,
            actions=actions,
            by_id=by_id,
            shape=self.array_shape() if features is None else (len(features.columns),),
            dtype=self.array_dtype() if features is None else self.dtype(),
            features=features,
            notes=self.notes,
        )

    def refuse_observations(self) -> None:
        for name in (*self.roles.observation, *self.roles.next_observation):
            kind = self.kind(name)
            if is_array(kind):
                fit = self.array and (is_number(inner(kind)) or pa.types.is_boolean(inner(kind)))
            else:
                fit = not self.array and (is_number(kind) or is_category(kind))
            if not fit:
                self.report.fatal(
                    "mixed types",
                    f"column {name!r} holds {kind}, which is no number, category or array of "
                    "numbers as the observation needs; leave it out or convert it",
                )

    def gather_actions(self) -> bool:
        """Prepare to collect the actions; returns whether they are numbers."""
        by_id = [is_number(self.kind(name)) for name in self.roles.decisions]
        if len(set(by_id)) > 1:
            self.report.fatal(
                "mixed types",
                f"columns {', '.join(self.roles.decisions)} hold numbers and names; declare the "
                "set with --actions if they belong together",
            )
        for name in self.roles.decisions:
            self.found[f"action {name}"] = Ids() if by_id[0] else Words(MAX_ACTIONS)
        return by_id[0]

    @property
    def most_names(self) -> int:
        """Of a column's categories that are counted."""
        return MAX_RARE if self.options.rare else MAX_CATEGORIES

    def gather_features(self) -> None:
        for name, following in self.pairs():
            kinds = [self.kind(each) for each in (name, following) if each is not None]
            words = name in self.options.categorical or any(map(is_category, kinds))
            for each in (name, following):
                if each is not None:
                    self.found[each] = Words(self.most_names) if words else Numbers()
        for name in self.options.categorical:
            if name not in self.roles.observation:
                self.report.fault(
                    "missing column",
                    f"--categorical names {name!r}, which is no column of the observation: "
                    f"{', '.join(self.roles.observation)}",
                )

    def pairs(self) -> Iterator[tuple[str, str | None]]:
        following = self.roles.next_observation or (None,) * len(self.roles.observation)
        yield from zip(self.roles.observation, following, strict=True)

    def run(self) -> None:
        masks = self.roles.legal[0] if len(self.roles.legal) == 1 else None
        wanted = [name.removeprefix("action ") for name in self.found]
        if self.array:
            wanted.append(self.roles.observation[0])
        wanted += [masks] if masks else []
        flagged = self.options.missing == "indicator" and not self.array
        wanted += [self.roles.action] if flagged else []
        for batch in self.log.batches(list(dict.fromkeys(wanted)) or [self.roles.action]):
            self.rows += len(batch)
            if flagged:
                self.note_gaps(batch)
            for name, found in self.found.items():
                found.add(batch.column(name.removeprefix("action ")))
            if self.array and self.shape is None:
                self.shape = shape_of(plain(batch.column(self.roles.observation[0])))
            if masks and not self.mask_width and is_array(self.kind(masks)):
                self.mask_width = (shape_of(plain(batch.column(masks))) or (0,))[0]
            if self.array and self.shape and set(wanted) <= {self.roles.observation[0], masks}:
                return  # nothing is left to learn

    def note_gaps(self, batch: pa.RecordBatch) -> None:
        """Final rows do not count: they may lack their observation as a whole."""
        decided = present(batch.column(self.roles.action))
        for name in self.roles.observation:
            if (decided & ~present(without_nan(plain(batch.column(name))))).any():
                self.gaps.add(name)

    # Actions

    def action_set(self, by_id: bool) -> tuple[tuple[str, ...], bool]:
        if self.options.actions:
            return self.options.actions, False
        found = [self.found[f"action {name}"] for name in self.roles.decisions]
        if by_id:
            return self.ids([each for each in found if isinstance(each, Ids)])
        names = sorted(set().union(*(each.names for each in found if isinstance(each, Words))))
        if len(names) > MAX_ACTIONS:
            self.report.fatal(
                "too many actions",
                f"column {self.roles.action!r} holds more than {MAX_ACTIONS} different names; is "
                "it the action? Declare the set with --actions if so",
            )
        if not names:
            self.no_action()
        if set(names) <= set(self.roles.suffixes):
            return self.roles.suffixes, False
        return tuple(names), False

    def ids(self, found: list[Ids]) -> tuple[tuple[str, ...], bool]:
        occurs = np.any([each.occurs for each in found], axis=0)
        beyond = max(each.beyond for each in found)
        if beyond >= MAX_ACTIONS:
            self.report.fault(
                "too many actions",
                f"column {self.roles.action!r} holds action {beyond:.0f}; at most {MAX_ACTIONS} "
                "actions are inferred. Is it the action? Declare the set with --actions if so",
            )
        if not occurs.any():
            self.no_action()
        count = int(np.flatnonzero(occurs)[-1]) + 1
        suffixes = self.roles.suffixes
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

    def no_action(self) -> None:
        self.report.fatal("bad action", f"column {self.roles.action!r} holds no action at all")

    # Observations

    def features(self) -> Features:
        return Features(tuple(self.feature(name, following) for name, following in self.pairs()))

    def feature(self, name: str, following: str | None) -> Feature:
        """Statistics are those of the decisions; ranges and names those of both columns."""
        found = [self.found[each] for each in (name, following) if each is not None]
        missing = self.options.missing
        if missing == "indicator" and name not in self.gaps:
            missing = "mean"
        numbers = [each for each in found if isinstance(each, Numbers)]
        if numbers:
            feature = numbers[0].feature(name)
            if known := [each for each in numbers if each.count]:
                low, high = min(each.low for each in known), max(each.high for each in known)
                feature = replace(feature, low=low, high=high)
            return replace(feature, clip=self.options.clip, missing=missing)
        counts: Counter[str] = Counter()
        for each in found:
            counts.update(each.names if isinstance(each, Words) else ())
        names = {each for each in counts if counts[each] >= self.options.rare}
        if pooled := len(counts) - len(names):
            self.notes.append(
                f"column {name!r}: {pooled} of {len(counts)} categories are in fewer than "
                f"{self.options.rare} rows and become {OTHER!r}"
            )
        if len(names) > MAX_CATEGORIES or len(counts) > self.most_names:
            limit = MAX_CATEGORIES if len(names) > MAX_CATEGORIES else self.most_names
            more = "more" if self.options.rare else "the rare ones"
            self.report.fault(
                "too many categories",
                f"column {name!r} holds more than {limit} different texts; leave it out of "
                f"--observation, or pool {more} with --rare N",
            )
            names = set(sorted(names)[:MAX_CATEGORIES])
        if names and all(looks_numeric(each) for each in names) and is_category(self.kind(name)):
            self.notes.append(
                f"column {name!r} holds numbers as text ({min(names)!r}) and is taken as "
                "categories; convert it if they are quantities"
            )
        levels = (*sorted(names - {OTHER}), *([OTHER] if pooled or OTHER in names else []))
        return Feature(
            name, "category", categories=levels, missing=missing, other=self.options.rare > 0
        )

    def dtype(self) -> np.dtype:
        """One that holds every column: their common type, else float32 if exact, else float64."""
        columns = [self.found[each] for pair in self.pairs() for each in pair if each is not None]
        stats = [each for each in columns if isinstance(each, Numbers)]
        gaps = any(each.gaps for each in columns if isinstance(each, Numbers | Words))
        kinds = {self.kind(each) for pair in self.pairs() for each in pair if each is not None}
        kind = next(iter(kinds))
        holds = pa.types.is_floating(kind) or (pa.types.is_integer(kind) and not gaps)
        if self.log.typed and len(kinds) == 1 and len(stats) == len(columns) and holds:
            return np.dtype(kind.to_pandas_dtype())
        if all(each.single for each in stats):
            return np.dtype(np.float32)
        huge = [
            name
            for name in self.found
            if isinstance(each := self.found[name], Numbers)
            and pa.types.is_integer(self.kind(name))
            and each.largest > EXACT
        ]
        if huge and len(stats) == len(columns) and kinds == {pa.int64()} and not gaps:
            return np.dtype(np.int64)
        if huge:
            self.notes.append(
                f"column {huge[0]!r} holds whole numbers beyond 2^53, which lose their last digits "
                "beside other columns; is it an id, to leave out?"
            )
        return np.dtype(np.float64)

    def array_shape(self) -> tuple[int, ...]:
        name = self.roles.observation[0]
        if self.shape is None or 0 in self.shape:
            self.report.fatal("nan observation", f"column {name!r} holds no number in any row")
        known = self.log.shape
        if known is not None and math.prod(known) == math.prod(self.shape):
            return known
        return self.shape

    def array_dtype(self) -> np.dtype:
        kind = inner(plain(pa.array([], self.kind(self.roles.observation[0]))).type)
        if pa.types.is_boolean(kind):
            return np.dtype(np.bool_)
        return to_numpy(pa.array([], kind)).dtype


def looks_numeric(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
