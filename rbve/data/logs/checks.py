"""What can be wrong with the rows of whole episodes, and what is only worth a note."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from rbve.data.logs.roles import ROLES, Chunk
from rbve.data.logs.survey import Reading
from rbve.data.logs.table import Log
from rbve.data.source import Report


class Checks:
    """The rows of whole episodes, table by table."""

    def __init__(self, log: Log, reading: Reading, report: Report) -> None:
        self.log, self.reading, self.report = log, reading, report
        self.roles = reading.roles
        self._steps: set[int] = set()  # sizes of time steps, the first few different ones
        self._odd_steps = 0  # steps of integer time that are not 1
        self._odd_row = 0  # the first of them
        self._unflagged = 0  # episodes that end without a flag
        self._left_over = ""  # note on rows after the last end

    def idle(self, idle: np.ndarray, starts: np.ndarray, first: int) -> None:
        self.report.row(
            "no decision",
            first + int(starts[np.argmax(idle)]),
            "the episode holds no decision, only a row without an action; drop it",
            int(idle.sum()) - 1,
        )

    def run(self, table: Chunk, ends: np.ndarray, final: np.ndarray, first: int) -> None:
        """`ends` are the last decisions; `final` says whether a row without decision follows."""
        last = ends + final
        is_final = np.zeros(len(table["start"]), bool)
        is_final[last[final]] = True

        def rows(kind: str, wrong: np.ndarray, text: Callable[[int], str]) -> None:
            self.report.rows(kind, wrong, first, text)

        self._decisions(table, is_final, rows)
        self._observations(table, ends, is_final, rows)
        self._flags(table, ends, last, rows)
        if "time" in table:
            self._time(table, is_final, first, rows)
        if "legal" in table:
            self._masks(table, is_final, rows)
        for name, role in ROLES.items():
            if name in table and role.accepts is not None:
                self._values(name, table[name], is_final, rows)

    def _decisions(self, table: Chunk, is_final: np.ndarray, rows: Any) -> None:
        if not self.reading.own:  # what recorded it did not know the action either
            rows(
                "bad action",
                ~table["decided"] & ~is_final,
                lambda row: (
                    f"column {self.roles.one('action')!r} is empty, and this is not the last row "
                    "of its episode; every decision needs its action"
                ),
            )
        name, reward = self.roles.one("reward"), table["reward"]
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(reward.astype(np.float32))
        rows(
            "nan reward",
            ~finite & ~is_final,
            lambda row: (
                f"column {name!r} is {_cell(reward[row])}; every decision needs a reward that is a "
                "finite number"
            ),
        )
        rows(
            "final reward",
            is_final & table["paid"] & (reward != 0),
            lambda row: (
                f"column {name!r} is {reward[row]:g} in a row without an action; a reward stands "
                "in the row of its decision (are rewards one row late?)"
            ),
        )

    def _observations(
        self, table: Chunk, ends: np.ndarray, is_final: np.ndarray, rows: Any
    ) -> None:
        """A final row may lack its observation as a whole; no other row may."""
        fillable = self.reading.features is not None and self.reading.options.missing == "error"
        gaps = "pass --missing mean or --missing indicator to take gaps as the column's mean, or "

        def observed(fault: np.ndarray, needed: np.ndarray, names: tuple[str, ...]) -> None:
            rows(
                "nan observation",
                needed & (fault >= 0),
                lambda row: (
                    f"column {names[fault[row]]!r} is empty or not a finite value (in 32 bits) in "
                    f"an observation; {gaps if fillable else ''}fill the gap, take the row's "
                    "episode out of the log, or leave the column out of --observation"
                ),
            )

        observed(table["fault"], ~(is_final & ~table["seen"]), self.roles["observation"])
        if "next_fault" in table:
            used = np.zeros(len(is_final), bool)
            used[ends] = table["next_seen"][ends]
            observed(table["next_fault"], used, self.roles["next_observation"])

    def _flags(self, table: Chunk, ends: np.ndarray, last: np.ndarray, rows: Any) -> None:
        names = [name for name in ("terminated", "truncated") if name in table]
        if not names or self.roles.cut == "rows":
            return
        within = np.ones(len(table["start"]), bool)
        within[ends] = within[last] = False
        ended = np.zeros(len(ends), bool)
        for name in names:
            column = self.roles.one(name)
            rows(
                "early end",
                within & table[name],
                lambda row, column=column: (
                    f"column {column!r} is set and the episode goes on after this row; only the "
                    "last decision of an episode ends it (do two episodes share an id?)"
                ),
            )
            ended |= table[name][ends] | table[name][last]
        if "terminated" in table and not self.reading.own:
            self._unflagged += int((~ended).sum())

    def _time(self, table: Chunk, is_final: np.ndarray, first: int, rows: Any) -> None:
        times, timed, name = table["time"], table["timed"], self.roles.one("time")
        rows(
            "unsorted time",
            ~timed & ~is_final,
            lambda row: f"column {name!r} is empty; give every row its time or no row",
        )
        pair = ~table["start"][1:] & timed[1:] & timed[:-1]
        rows(
            "unsorted time",
            np.append(False, pair & (times[1:] <= times[:-1])),
            lambda row: (
                f"column {name!r} is {self._time_text(times[row])} after "
                f"{self._time_text(times[row - 1])} in the row before of its episode; time rises "
                "within an episode, so sort the file, or correct the id if there are two episodes"
            ),
        )
        if not pa.types.is_integer(self.log.types[name]):
            return
        steps = times[1:] - times[:-1]
        if len(self._steps) < 10:
            self._steps |= set(np.unique(steps[pair])[:10].tolist())
        odd = np.append(False, pair & (steps != 1))
        if odd.any() and not self._odd_steps:
            self._odd_row = first + int(np.argmax(odd))
        self._odd_steps += int(odd.sum())

    def _time_text(self, value: Any) -> str:
        """A time as a person writes it; dates are held as ticks."""
        kind = self.log.types[self.roles.one("time")]
        if not pa.types.is_temporal(kind):
            return str(value)
        ticks = pa.array([value], pa.int32() if kind.bit_width == 32 else pa.int64())
        return str(ticks.view(kind).cast(pa.string())[0])

    def _masks(self, table: Chunk, is_final: np.ndarray, rows: Any) -> None:
        legal, action = table["legal"], table["action"]
        rows(
            "empty mask",
            ~table["legal_known"] & ~is_final,
            lambda row: "no mask of legal actions; every decision needs one",
        )
        allowed = legal[np.arange(len(action)), np.maximum(action, 0)]
        rows(
            "illegal action",
            ~is_final & (action >= 0) & ~allowed,
            lambda row: (
                f"action {self.reading.actions[action[row]]!r} was taken and its mask says it is "
                "not legal; correct one of them (are masks one row late?)"
            ),
        )
        rows(
            "no legal action",
            ~is_final & ~legal.any(axis=1),
            lambda row: "no action is legal; a decision needs at least one",
        )

    def _values(self, name: str, values: np.ndarray, is_final: np.ndarray, rows: Any) -> None:
        role = ROLES[name]
        assert role.accepts is not None
        with np.errstate(invalid="ignore"):
            wrong = ~role.accepts(values)
        rows(
            role.fault,
            wrong if role.in_finals else wrong & ~is_final,
            lambda row: f"column {self.roles.one(name)!r} is {_cell(values[row])}; {role.needs}",
        )

    def trailing(self, table: Chunk, end: int) -> None:
        """Note rows after the last end of a log cut by its flags."""
        names = [name for name in ("terminated", "truncated") if name in table]
        if not any(table[name][end:].any() for name in names):
            self._unflagged -= 1
            rows = len(table["start"]) - int(np.flatnonzero(table["start"])[-1])
            self._left_over = (
                f"the last {rows} rows have no end: kept as a truncated episode, cut off by the "
                "end of the file"
            )

    def notes(self) -> list[str]:
        """Once all parts are read."""
        notes = [self._left_over] if self._left_over else []
        if self._unflagged > 0:
            ends = "1 episode ends" if self._unflagged == 1 else f"{self._unflagged} episodes end"
            notes.append(f"{ends} without a flag set, which counts as truncated")
        if self._odd_steps and len(self._steps) > 1:
            notes.append(
                f"column {self.roles.one('time')!r} does not always rise by 1: {self._odd_steps} "
                f"steps differ, the first in {self.report.place(self._odd_row)}; are rows missing?"
            )
        return notes


def _cell(value: Any) -> str:
    if np.isinf(value):
        return "infinite"
    return "empty or NaN" if np.isnan(value) else f"{value:g}"
