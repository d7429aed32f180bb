"""Rows cut into episodes, and whole episodes gathered into parts of a Dataset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.episode import NO_ACTION
from rbve.data.logs.checks import Checks
from rbve.data.logs.columns import Chunk, Columns
from rbve.data.logs.cut import make_cutter
from rbve.data.logs.interleaved import Interleaved, interleaved
from rbve.data.logs.interleaved import tables as grouped
from rbve.data.logs.log import Log, Report
from rbve.data.logs.roles import Roles
from rbve.data.logs.survey import Plan
from rbve.data.source import PART_BYTES

ROW_BYTES = 64  # of a row beside its observation and mask, while it is worked on


def parts(log: Log, plan: Plan, report: Report, provenance: dict[str, Any]) -> Iterator[Dataset]:
    """The log's episodes, part by part."""
    builder = Builder(log, plan, report, provenance)
    tables = in_order(log, plan, report)
    if plan.roles.episode is not None:
        apart = interleaved(log, plan.roles.episode)
        if apart is not None:
            plan.notes.append(grouping(plan.roles, apart, report))
            tables = grouped(log, plan, report, Columns(plan, report), apart, rows_of_part(plan))
    for table, first, last in tables:
        yield from builder.part(table, first, last)
    plan.notes.extend(builder.checks.notes())
    if not builder.episodes:
        report.fatal("empty file", "holds no decision; a log needs one row per decision")


def grouping(roles: Roles, apart: Interleaved, report: Report) -> str:
    """A note, where something says that an id that comes back is the same episode."""
    begins, again = map(report.place, apart.rows)
    if roles.time is None and roles.terminated is None:
        report.fatal(
            "split episode",
            f"{again}: episode {apart.example} of column {roles.episode!r} begins here again, "
            f"after {begins}; if these rows belong together, pass --time NAME, by which they are "
            "ordered",
        )
    order = "as they stand" if roles.time is None else f"by {roles.time!r}"
    return (
        f"rows are grouped by {roles.episode!r} and ordered {order}, since those of an episode do "
        f"not stand together: {apart.example} begins in {begins} and again in {again}"
    )


def in_order(log: Log, plan: Plan, report: Report) -> Iterator[tuple[Chunk, int, bool]]:
    """(whole episodes, number of their first row, whether they are the last), as they stand."""
    columns = Columns(plan, report)
    cutter = make_cutter(plan, report)
    held: list[Chunk] = []
    first = rows = 0  # number of the first row held, and how many are held
    last_start = 0  # number of the row where the last episode begins
    limit = rows_of_part(plan)
    for batch in log.batches(plan.roles.columns):
        chunk = columns.chunk(batch, first + rows)
        chunk["start"] = cutter.starts(batch, chunk, first + rows)
        starts = np.flatnonzero(chunk["start"])
        if len(starts):
            last_start = first + rows + int(starts[-1])
        held.append(chunk)
        rows += len(batch)
        if rows >= limit and last_start > first:
            table = joined(held)
            stop = last_start - first
            yield {name: column[:stop] for name, column in table.items()}, first, False
            held = [{name: column[stop:].copy() for name, column in table.items()}]
            first, rows = last_start, rows - stop
            del table
    if rows:
        yield joined(held), first, True


def joined(held: list[Chunk]) -> Chunk:
    if len(held) == 1:
        return held[0]
    table = {name: np.concatenate([chunk[name] for chunk in held]) for name in held[0]}
    held.clear()
    return table


def rows_of_part(plan: Plan) -> int:
    obs = plan.dtype.itemsize * max(1, int(np.prod(plan.shape)))
    copies = 2 if plan.roles.next_observation else 1
    masks = len(plan.actions) if plan.roles.legal else 0
    return max(1, PART_BYTES // (copies * (obs + masks) + ROW_BYTES))


class Builder:
    def __init__(self, log: Log, plan: Plan, report: Report, provenance: dict[str, Any]) -> None:
        self.plan, self.report, self.provenance = plan, report, provenance
        self.checks = Checks(log, plan, report)
        self.episodes = 0

    def part(self, table: Chunk, first: int, last: bool) -> Iterator[Dataset]:
        """A Dataset of whole episodes; none if no decision is among the rows."""
        starts = np.flatnonzero(table["start"])
        stops = np.append(starts[1:], len(table["start"]))
        final = self.final_rows(table, stops - 1)  # (E,) whether its last row is no decision
        idle = final & (stops - starts == 1)
        if idle.any():
            self.checks.idle(idle, starts, first)
            keep = np.repeat(~idle, stops - starts)
            if not keep.any():
                return
            # Rows keep their number only up to the first one dropped; that is good enough for
            # what an audit says after this fault.
            table = {name: column[keep] for name, column in table.items()}
            starts = np.flatnonzero(table["start"])
            stops = np.append(starts[1:], len(table["start"]))
            final = final[~idle]
        ends = stops - 1 - final  # the last decision of each episode
        self.checks.run(table, starts, ends, final, first)
        if last and self.plan.roles.cut == "flags":
            self.checks.trailing(table, int(ends[-1]))
        with np.errstate(over="ignore", invalid="ignore"):  # the checks have spoken
            dataset = self.build(table, starts, stops, final)
        self.episodes += dataset.num_episodes
        yield dataset

    def final_rows(self, table: Chunk, last: np.ndarray) -> np.ndarray:
        """Which of the last rows only hold a final observation."""
        if self.plan.roles.cut in ("rows", "each"):
            return np.zeros(len(last), bool)
        if self.plan.own:
            return ~table["paid"][last]
        empty = ~table["decided"][last]
        if "complete" in table:  # a fragment's last row may know the next action
            empty |= ~table["paid"][last] & ~table["complete"][last]
        return empty

    def build(
        self, table: Chunk, starts: np.ndarray, stops: np.ndarray, final: np.ndarray
    ) -> Dataset:
        lengths = stops - starts
        offsets = np.concatenate([[0], np.cumsum(lengths + ~final)])
        # Each row of the dataset comes from a row of the table; where the log has no final row,
        # the last decision's stands in.
        source = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - starts, lengths + ~final)
        source[offsets[1:][~final] - 1] -= 1
        last = offsets[1:] - 1
        added = last[~final]  # rows the log does not have
        ends = stops - 1 - final
        terminated = self.terminated(table, ends, stops - 1)
        complete = self.complete(table, ends)

        columns: Chunk = {
            name: table[name][source]
            for name in ("obs", "action", "executed", "propensity", "legal")
            if name in table
        }
        reward = table["reward"].astype(np.float32)[source]
        reward[last] = 0
        columns["action"][added] = NO_ACTION
        columns["action"][last[terminated | complete]] = NO_ACTION
        known = final & table["seen"][stops - 1]
        unseen = last[final & ~known]
        columns["obs"][unseen] = columns["obs"][unseen - 1]
        if "executed" in columns:
            columns["executed"][added] = NO_ACTION
            columns["executed"][last[terminated | complete]] = NO_ACTION
        if "propensity" in columns:
            if not self.plan.own:  # logs leave the cell of a final row empty
                columns["propensity"][last] = np.nan_to_num(columns["propensity"][last], nan=1.0)
            columns["propensity"] = columns["propensity"].astype(np.float32)
        self.follow(table, columns, added, ends[~final], (terminated | complete)[~final])
        if "next_obs" in table:
            known[~final] = table["next_seen"][ends[~final]]
        return Dataset(
            reward=reward,
            offsets=offsets,
            terminated=terminated,
            complete=complete,
            episode_return=self.returns(table, reward, offsets, ends, complete),
            final_observed=None if known.all() else known,
            actions=self.plan.actions,
            features=self.plan.features,
            provenance=self.provenance,
            **columns,
        )

    def follow(
        self,
        table: Chunk,
        columns: Chunk,
        added: np.ndarray,
        ends: np.ndarray,
        over: np.ndarray,
    ) -> None:
        """Fill added rows with what the last decisions' rows say came after them.

        After an episode that is over no action follows; after a fragment one may.
        """
        if "next_obs" in table:
            seen = table["next_seen"][ends]
            columns["obs"][added[seen]] = table["next_obs"][ends[seen]]
        if "next_legal" in table:
            columns["legal"][added] = table["next_legal"][ends]
        elif "legal" in table and "next_obs" in table:
            columns["legal"][added] = True
        if "next_action" in table:
            columns["action"][added] = np.where(over, NO_ACTION, table["next_action"][ends])

    def terminated(self, table: Chunk, ends: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Flags stand in the row of the last decision, or in the final row after it."""
        if "terminated" in table:
            return table["terminated"][ends] | table["terminated"][last]
        if self.plan.roles.cut == "rows" and "truncated" not in table:
            return np.full(len(ends), self.plan.options.ends == "terminated")
        assumed = np.full(len(ends), self.plan.options.unflagged_ends == "terminated")
        if "truncated" in table:
            return assumed & ~(table["truncated"][ends] | table["truncated"][last])
        return assumed

    def complete(self, table: Chunk, ends: np.ndarray) -> np.ndarray:
        if "complete" in table:
            return table["complete"][ends]
        return np.full(len(ends), self.plan.roles.cut != "rows")

    def returns(
        self,
        table: Chunk,
        reward: np.ndarray,
        offsets: np.ndarray,
        ends: np.ndarray,
        complete: np.ndarray,
    ) -> np.ndarray:
        """Of whole episodes; of a fragment only what the log says."""
        sums = np.add.reduceat(reward.astype(np.float64), offsets[:-1])
        known = np.where(complete, sums, np.nan)
        if "episode_return" not in table:
            return known
        given = table["episode_return"][ends]
        return np.where(np.isnan(given), known, given)
