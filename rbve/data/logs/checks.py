"""Rows of whole episodes to a Dataset, after checks; what is only worth a note."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from rbve.data.dataset import Dataset
from rbve.data.logs.resolve import Log
from rbve.data.logs.roles import ROLES, Assembly, Chunk, Reading, Roles
from rbve.data.source import Report, Text


@dataclass
class Builder:
    """Parts of a Dataset from tables of whole episodes, which come in order."""

    log: Log
    reading: Reading
    report: Report
    provenance: dict[str, Any]
    _steps: set[int] = field(default_factory=set)  # sizes of time steps, the first few different
    _odd_steps: int = 0  # steps of integer time that are not 1
    _odd_place: str = ""  # of the first of them
    _unflagged: int = 0  # episodes that end without a flag
    _left_over: str = ""  # note on rows after the last end

    @property
    def roles(self) -> Roles:
        return self.reading.roles

    def merged(self, later: "Builder") -> "Builder":
        """With what is worth a note of the rows that come after."""
        return replace(
            self,
            _steps=self._steps | later._steps,
            _odd_steps=self._odd_steps + later._odd_steps,
            _odd_place=self._odd_place or later._odd_place,
            _unflagged=self._unflagged + later._unflagged,
            _left_over=self._left_over or later._left_over,
        )

    def part(self, table: Chunk, first: int, last: bool) -> Dataset | None:
        """A Dataset of whole episodes; None if no decision is among the rows."""
        starts = np.flatnonzero(table["start"])
        stops = np.append(starts[1:], len(table["start"]))
        end, lone = stops - 1, self.roles.cut in ("rows", "each")
        final = ~table["paid" if self.reading.own else "decided"][end]
        if "complete" in table and not self.reading.own:  # a fragment may know the next action
            final |= ~table["paid"][end] & ~table["complete"][end]
        final &= not lone  # (E,) whether its last row is no decision, only a final observation
        idle = final & (stops - starts == 1)
        if idle.any():
            self.report.row(
                "no decision",
                first + int(starts[np.argmax(idle)]),
                "the episode holds no decision, only a row without an action; drop it",
                int(idle.sum()) - 1,
            )
            keep = np.repeat(~idle, stops - starts)
            if not keep.any():
                return None
            # Rows keep their number only up to the first one dropped; that is good enough for
            # what an audit says after this fault.
            table = {name: column[keep] for name, column in table.items()}
            starts = np.flatnonzero(table["start"])
            stops = np.append(starts[1:], len(table["start"]))
            final = final[~idle]
        ends = stops - 1 - final  # the last decision of each episode
        for kind, wrong, text in self._faults(table, ends, final, first):
            self.report.rows(kind, wrong, first, text)
        flags = [table[name][ends[-1] :] for name in ("terminated", "truncated") if name in table]
        if last and self.roles.cut == "flags" and not np.any(flags):
            self._unflagged -= 1
            self._left_over = (
                f"the last {stops[-1] - starts[-1]} rows have no end: kept as a truncated episode, "
                "cut off by the end of the file"
            )
        with np.errstate(over="ignore", invalid="ignore"):  # the checks have spoken
            return self._build(table, starts, ends, final)

    def _build(
        self, table: Chunk, starts: np.ndarray, ends: np.ndarray, final: np.ndarray
    ) -> Dataset:
        lengths = ends - starts + 2  # with a final row
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        # Each row of the dataset comes from a row of the table; where the log has no final row,
        # the last decision's stands in.
        source = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - starts, lengths)
        source[offsets[1:][~final] - 1] -= 1
        terminated = self._terminated(table, ends, ends + final)
        complete = np.full(len(ends), self.roles.cut != "rows")
        if "complete" in table:
            complete = table["complete"][ends]
        rows = Assembly(
            table=table,
            columns={},
            source=source,
            last=offsets[1:] - 1,
            final=final,
            ends=ends,
            over=terminated | complete,
            known=final & table["seen"][ends + final],
            own=self.reading.own,
        )
        for name, role in ROLES.items():
            if role.enter is not None and self.roles[name]:
                role.enter(rows, name)
        sums = np.add.reduceat(rows.columns["reward"].astype(np.float64), offsets[:-1])
        returns = np.where(complete, sums, np.nan)  # of a fragment only what the log says
        if "episode_return" in table:
            logged = table["episode_return"][ends]
            returns = np.where(np.isnan(logged), returns, logged)
        return Dataset(
            offsets=offsets,
            terminated=terminated,
            complete=complete,
            episode_return=returns,
            final_observed=None if rows.known.all() else rows.known,
            actions=self.reading.actions,
            features=self.reading.features,
            provenance=self.provenance,
            **rows.columns,
        )

    def _terminated(self, table: Chunk, ends: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Flags stand in the row of the last decision, or in the final row after it."""
        if "terminated" in table:
            return table["terminated"][ends] | table["terminated"][last]
        options = self.reading.options
        if "truncated" in table:
            ended = ~(table["truncated"][ends] | table["truncated"][last])
            return ended & (options.unflagged_ends == "terminated")
        lone = self.roles.cut == "rows"
        assumed = options.ends if lone else options.unflagged_ends
        return np.full(len(ends), assumed == "terminated")

    def _faults(
        self, table: Chunk, ends: np.ndarray, final: np.ndarray, first: int
    ) -> Iterator[tuple[str, np.ndarray, Text]]:
        """(kind, which rows are wrong, what to say of one) of every check.

        `ends` are the last decisions; `final` says whether a row without decision follows.
        """
        last = ends + final
        decision = np.ones(len(table["start"]), bool)
        decision[last[final]] = False
        if not self.reading.own:  # what recorded it did not know the action either
            text = (
                f"column {self.roles.one('action')!r} is empty, and this is not the last row of "
                "its episode; every decision needs its action"
            )
            yield "bad action", ~table["decided"] & decision, text
        column, reward = f"column {self.roles.one('reward')!r} is ", table["reward"]
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(reward.astype(np.float32))
        needs = "every decision needs a reward that is a finite number"
        yield "nan reward", ~finite & decision, partial(_cell, reward, column, needs)
        late = "a reward stands in the row of its decision (are rewards one row late?)"
        wrong = ~decision & table["paid"] & (reward != 0)
        yield (
            "final reward",
            wrong,
            lambda row: f"{column}{reward[row]:g} in a row without an action; {late}",
        )
        # A final row may lack its observation as a whole; no other row may.
        yield self._gaps(table["fault"], decision | table["seen"], "observation")
        if "next_fault" in table:
            used = np.zeros(len(decision), bool)
            used[ends] = table["next_seen"][ends]
            yield self._gaps(table["next_fault"], used, "next_observation")
        flags = [name for name in ("terminated", "truncated") if name in table]
        if flags and self.roles.cut != "rows":
            within = np.ones(len(table["start"]), bool)
            within[ends] = within[last] = False
            for flag in flags:
                text = (
                    f"column {self.roles.one(flag)!r} is set and the episode goes on after this "
                    "row; only the last decision of an episode ends it (do two episodes share an "
                    "id?)"
                )
                yield "early end", within & table[flag], text
            if "terminated" in table and not self.reading.own:
                ended = np.any([table[name][ends] | table[name][last] for name in flags], axis=0)
                self._unflagged += int((~ended).sum())
        if "time" in table:
            yield from self._time_faults(table, decision, first)
        if "legal" in table:
            legal, action, actions = table["legal"], table["action"], self.reading.actions
            unknown = "no mask of legal actions; every decision needs one"
            yield "empty mask", ~table["legal_known"] & decision, unknown
            allowed = legal[np.arange(len(action)), np.maximum(action, 0)]
            not_legal = (
                "was taken and its mask says it is not legal; correct one of them (are masks one "
                "row late?)"
            )
            wrong = decision & (action >= 0) & ~allowed
            yield (
                "illegal action",
                wrong,
                lambda row: f"action {actions[action[row]]!r} {not_legal}",
            )
            none = "no action is legal; a decision needs at least one"
            yield "no legal action", decision & ~legal.any(axis=1), none
        for name, role in ROLES.items():
            if name in table and role.accepts is not None:
                values = table[name]
                with np.errstate(invalid="ignore"):
                    wrong = ~role.accepts(values) & (decision | role.in_finals)
                column = f"column {self.roles.one(name)!r} is "
                yield role.fault, wrong, partial(_cell, values, column, role.needs)

    def _gaps(
        self, fault: np.ndarray, needed: np.ndarray, role: str
    ) -> tuple[str, np.ndarray, Text]:
        names, fill = self.roles[role], "fill the gap"
        if self.reading.features is not None and self.reading.options.missing == "error":
            fill = "pass --missing mean or --missing indicator to take gaps as the column's mean, "
            fill += "or fill the gap"
        text = (
            f"is empty or not a finite value (in 32 bits) in an observation; {fill}, take the "
            "row's episode out of the log, or leave the column out of --observation"
        )
        wrong = needed & (fault >= 0)
        return "nan observation", wrong, lambda row: f"column {names[fault[row]]!r} {text}"

    def _time_faults(
        self, table: Chunk, decision: np.ndarray, first: int
    ) -> Iterator[tuple[str, np.ndarray, Text]]:
        times, timed, name = table["time"], table["timed"], self.roles.one("time")
        kind = self.log.types[name]
        empty = f"column {name!r} is empty; give every row its time or no row"
        yield "unsorted time", ~timed & decision, empty
        pair = ~table["start"][1:] & timed[1:] & timed[:-1]

        def shown(row: int) -> str:
            """A time as a person writes it; dates are held as ticks."""
            if not pa.types.is_temporal(kind):
                return str(times[row])
            ticks = pa.array([times[row]], pa.int32() if kind.bit_width == 32 else pa.int64())
            return str(ticks.view(kind).cast(pa.string())[0])

        yield (
            "unsorted time",
            np.append(False, pair & (times[1:] <= times[:-1])),
            lambda row: (
                f"column {name!r} is {shown(row)} after {shown(row - 1)} in the row before of its "
                "episode; time rises within an episode, so sort the file, or correct the id if "
                "there are two episodes"
            ),
        )
        if not pa.types.is_integer(kind):
            return
        steps = times[1:] - times[:-1]
        odd = np.append(False, pair & (steps != 1))
        if len(self._steps) < 10:
            ones = {1} if (pair & ~odd[1:]).any() else set()
            self._steps |= ones | set(np.unique(steps[odd[1:]])[:10].tolist())
        if odd.any() and not self._odd_steps:
            self._odd_place = self.report.place(first + int(np.argmax(odd)))
        self._odd_steps += int(odd.sum())

    def notes(self) -> list[str]:
        notes = [self._left_over] if self._left_over else []
        if self._unflagged > 0:
            ends = "1 episode ends" if self._unflagged == 1 else f"{self._unflagged} episodes end"
            notes.append(f"{ends} without a flag set, which counts as truncated")
        if self._odd_steps and len(self._steps) > 1:
            notes.append(
                f"column {self.roles.one('time')!r} does not always rise by 1: {self._odd_steps} "
                f"steps differ, the first in {self._odd_place}; are rows missing?"
            )
        return notes


def _cell(values: np.ndarray, column: str, needs: str, row: int) -> str:
    value = values[row]
    text = "infinite" if np.isinf(value) else "empty or NaN" if np.isnan(value) else f"{value:g}"
    return f"{column}{text}; {needs}"
