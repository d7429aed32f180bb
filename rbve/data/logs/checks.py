"""What can be wrong with the rows of whole episodes, and what is only worth a note."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from rbve.data.logs.columns import Chunk
from rbve.data.logs.log import Log, Report
from rbve.data.logs.roles import Roles
from rbve.data.logs.survey import Plan


class Checks:
    def __init__(self, log: Log, plan: Plan, report: Report) -> None:
        self.log, self.plan, self.report = log, plan, report
        self.steps: set[int] = set()  # sizes of time steps, the first few different ones
        self.odd_steps = 0  # steps of integer time that are not 1
        self.odd_row = 0  # the first of them
        self.unflagged = 0  # episodes that end without a flag
        self.left_over = ""  # note on rows after the last end

    @property
    def roles(self) -> Roles:
        return self.plan.roles

    def idle(self, idle: np.ndarray, starts: np.ndarray, first: int) -> None:
        row = first + int(starts[np.argmax(idle)])
        self.report.row(
            "no decision",
            row,
            "the episode holds no decision, only a row without an action; drop it",
            int(idle.sum()) - 1,
        )

    def run(
        self, table: Chunk, starts: np.ndarray, ends: np.ndarray, final: np.ndarray, first: int
    ) -> None:
        """`ends` are the last decisions; `final` says whether a row without decision follows."""
        last = ends + final
        is_final = np.zeros(len(table["start"]), bool)
        is_final[last[final]] = True
        self.decisions(table, is_final, first)
        self.rewards(table, is_final, first)
        self.observations(table, ends, is_final, first)
        self.flags(table, ends, last, first)
        if "time" in table:
            self.time(table, is_final, first)
        if "legal" in table:
            self.masks(table, is_final, first)
        if "propensity" in table:
            self.propensities(table, is_final, first)
        if "episode_return" in table:
            self.report.rows(
                "bad return",
                np.isinf(table["episode_return"]),
                first,
                lambda row: f"column {self.roles.episode_return!r} is infinite",
            )

    def decisions(self, table: Chunk, is_final: np.ndarray, first: int) -> None:
        if self.plan.own:  # what recorded it did not know the action either
            return
        self.report.rows(
            "bad action",
            ~table["decided"] & ~is_final,
            first,
            lambda row: (
                f"column {self.roles.action!r} is empty, and this is not the last row of its "
                "episode; every decision needs its action"
            ),
        )

    def rewards(self, table: Chunk, is_final: np.ndarray, first: int) -> None:
        name = self.roles.reward
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(table["reward"].astype(np.float32))
        self.report.rows(
            "nan reward",
            ~finite & ~is_final,
            first,
            lambda row: (
                f"column {name!r} is {cell(table['reward'][row])}; every decision needs a reward "
                "that is a finite number"
            ),
        )
        self.report.rows(
            "final reward",
            is_final & table["paid"] & (table["reward"] != 0),
            first,
            lambda row: (
                f"column {name!r} is {table['reward'][row]:g} in a row without an action; a reward "
                "stands in the row of its decision (are rewards one row late?)"
            ),
        )

    def observations(
        self, table: Chunk, ends: np.ndarray, is_final: np.ndarray, first: int
    ) -> None:
        """A final row may lack its observation as a whole; no other row may."""
        self.observed(table["fault"], ~(is_final & ~table["seen"]), self.roles.observation, first)
        if "next_fault" in table:
            used = np.zeros(len(is_final), bool)
            used[ends] = table["next_seen"][ends]
            self.observed(table["next_fault"], used, self.roles.next_observation, first)

    def observed(
        self, fault: np.ndarray, needed: np.ndarray, names: tuple[str, ...], first: int
    ) -> None:
        self.report.rows(
            "nan observation",
            needed & (fault >= 0),
            first,
            lambda row: (
                f"column {names[fault[row]]!r} is empty or not a finite value (in 32 bits) in an "
                f"observation; {self.choices}fill the gap, take the row's episode out of the log, "
                "or leave the column out of --observation"
            ),
        )

    @property
    def choices(self) -> str:
        if self.plan.features is None or self.plan.options.missing != "error":
            return ""
        return "pass --missing mean or --missing indicator to take gaps as the column's mean, or "

    def flags(self, table: Chunk, ends: np.ndarray, last: np.ndarray, first: int) -> None:
        names = [name for name in ("terminated", "truncated") if name in table]
        if not names or self.roles.cut == "rows":
            return
        within = np.ones(len(table["start"]), bool)
        within[ends] = within[last] = False
        for name in names:
            self.report.rows("early end", within & table[name], first, self.early(name))
        ended = np.zeros(len(ends), bool)
        for name in names:
            ended |= table[name][ends] | table[name][last]
        if "terminated" in table and not self.plan.own:
            self.unflagged += int((~ended).sum())

    def early(self, name: str) -> Callable[[int], str]:
        return lambda row: (
            f"column {getattr(self.roles, name)!r} is set and the episode goes on after this row; "
            "only the last decision of an episode ends it (do two episodes share an id?)"
        )

    def time(self, table: Chunk, is_final: np.ndarray, first: int) -> None:
        times, timed = table["time"], table["timed"]
        name = self.roles.time
        self.report.rows(
            "unsorted time",
            ~timed & ~is_final,
            first,
            lambda row: f"column {name!r} is empty; give every row its time or no row",
        )
        pair = ~table["start"][1:] & timed[1:] & timed[:-1]
        late = np.append(False, pair & (times[1:] <= times[:-1]))
        self.report.rows(
            "unsorted time",
            late,
            first,
            lambda row: (
                f"column {name!r} is {self.moment(times[row])} after "
                f"{self.moment(times[row - 1])} in the row before of its episode; time rises "
                "within an episode, so sort the file, or correct the id if there are two episodes"
            ),
        )
        if times.dtype.kind not in "iu" or not self.counts:
            return
        steps = (times[1:] - times[:-1])[pair]
        if len(self.steps) < 10:
            self.steps |= set(np.unique(steps)[:10].tolist())
        odd = np.append(False, pair & (times[1:] - times[:-1] != 1))
        if odd.any() and not self.odd_steps:
            self.odd_row = first + int(np.argmax(odd))
        self.odd_steps += int(odd.sum())

    def moment(self, value: Any) -> str:
        """A time as a person writes it; dates are held as ticks."""
        kind = self.log.types[self.roles.time or ""]
        if not pa.types.is_temporal(kind):
            return str(value)
        ticks = pa.array([value], pa.int32() if kind.bit_width == 32 else pa.int64())
        return str(ticks.view(kind).cast(pa.string())[0])

    @property
    def counts(self) -> bool:
        """Whether time counts steps, as whole numbers do and dates do not."""
        kind = self.log.types[self.roles.time or ""]
        return str(kind).startswith(("int", "uint"))

    def masks(self, table: Chunk, is_final: np.ndarray, first: int) -> None:
        legal, action = table["legal"], table["action"]
        self.report.rows(
            "empty mask",
            ~table["legal_known"] & ~is_final,
            first,
            lambda row: "no mask of legal actions; every decision needs one",
        )
        taken = ~is_final & (action >= 0)
        allowed = legal[np.arange(len(action)), np.maximum(action, 0)]
        self.report.rows(
            "illegal action",
            taken & ~allowed,
            first,
            lambda row: (
                f"action {self.plan.actions[action[row]]!r} was taken and its mask says it is not "
                "legal; correct one of them (are masks one row late?)"
            ),
        )
        self.report.rows(
            "no legal action",
            ~is_final & ~legal.any(axis=1),
            first,
            lambda row: "no action is legal; a decision needs at least one",
        )

    def propensities(self, table: Chunk, is_final: np.ndarray, first: int) -> None:
        values = table["propensity"]
        with np.errstate(invalid="ignore"):
            possible = (values > 0) & (values <= 1)
        self.report.rows(
            "bad propensity",
            ~possible & ~is_final,
            first,
            lambda row: (
                f"column {self.roles.propensity!r} is {cell(values[row])}; the probability of an "
                "action that was taken lies above 0 and is at most 1"
            ),
        )

    def trailing(self, table: Chunk, end: int) -> None:
        """Note rows after the last end of a log cut by its flags."""
        names = [name for name in ("terminated", "truncated") if name in table]
        if not any(table[name][end:].any() for name in names):
            self.unflagged -= 1
            rows = len(table["start"]) - int(np.flatnonzero(table["start"])[-1])
            self.left_over = (
                f"the last {rows} rows have no end: kept as a truncated episode, cut off by the "
                "end of the file"
            )

    def notes(self) -> list[str]:
        """Once all parts are read."""
        notes = [self.left_over] if self.left_over else []
        if self.unflagged > 0:
            ends = "1 episode ends" if self.unflagged == 1 else f"{self.unflagged} episodes end"
            notes.append(f"{ends} without a flag set, which counts as truncated")
        if self.odd_steps and len(self.steps) > 1:
            notes.append(
                f"column {self.roles.time!r} does not always rise by 1: {self.odd_steps} steps "
                f"differ, the first in {self.report.place(self.odd_row)}; are rows missing?"
            )
        return notes


def cell(value: float) -> str:
    return "empty or NaN" if np.isnan(value) else f"{value:g}"
