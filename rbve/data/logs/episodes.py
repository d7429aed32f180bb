"""A log, once its file is open: roles, survey, then whole episodes to parts of a Dataset."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.logs.checks import Checks
from rbve.data.logs.chunks import Chunks, Spilled, Table, in_episodes, shown, whole_episodes
from rbve.data.logs.resolve import Resolver, refuse_unfit
from rbve.data.logs.roles import ROLES, Assembly, Chunk, LogOptions, Roles
from rbve.data.logs.survey import Reading, Survey
from rbve.data.logs.table import Log, Own, TextLog
from rbve.data.logs.values import EpisodeOrder, Interleaved, comparable
from rbve.data.source import PART_BYTES, Report, Source

_ROW_BYTES = 64  # of a row beside its observation and mask, while it is worked on


def read_log(log: Log, options: LogOptions, report: Report) -> Source:
    """The episodes of an open log, as a Source whose notes grow as its parts are read.

    Raises:
        ValueError: Roles or types cannot be settled. Faults of rows are raised by the parts.
    """
    resolver = Resolver(log, options, report)
    roles = resolver.roles()
    notes = resolver.notes + (log.notes if isinstance(log, TextLog) else [])
    if log.own is not None:
        refuse_unfit(log, roles, report)
        reading = _own_reading(log, log.own, roles, options)
        provenance = log.own.provenance
    else:
        reading = Survey(log, roles, options, report).reading()
        provenance = {"source": log.path.name, "format": log.format, "columns": roles.record()}
        notes += reading.notes + _end_notes(roles, options)
    reading = replace(reading, notes=notes)
    return Source(_parts(log, reading, report, provenance), log.total, log.position, notes)


def _own_reading(log: Log, own: Own, roles: Roles, options: LogOptions) -> Reading:
    order = EpisodeOrder()
    for name in roles["episode"]:
        for batch in log.batches([name]):
            order.add(comparable(batch.column(name)))
    return Reading(
        roles=roles,
        options=options,
        actions=own.actions,
        by_id=own.actions == tuple(map(str, range(len(own.actions)))),
        shape=own.shape,
        dtype=np.dtype(own.dtype),
        features=own.features,
        interleaved=order.interleaved(),
        own=True,
    )


def _end_notes(roles: Roles, options: LogOptions) -> list[str]:
    """What was assumed about the ends of episodes; it decides whether values end there, too."""
    if options.ends is not None or roles["terminated"]:
        return []
    if roles.cut == "rows" and not roles["truncated"]:
        return ["no end flags: every transition goes on; pass --terminated NAME if some end"]
    ends = options.unflagged_ends
    other = "truncated" if ends == "terminated" else "terminated"
    meaning = "nothing is earned after their last decision"
    if ends == "truncated":
        meaning = "the future after their last decision counts and is unknown"
    which = "episodes without that flag" if roles["truncated"] else "no end flags: all episodes"
    return [f"{which} count as {ends}, so {meaning}; pass --ends {other} if that is wrong"]


def _parts(
    log: Log, reading: Reading, report: Report, provenance: dict[str, Any]
) -> Iterator[Dataset]:
    builder = _Builder(log, reading, report, provenance)
    tables = (
        whole_episodes(_in_order(log, reading, report), _rows_of_part(reading))
        if reading.interleaved is None
        else _grouped(log, reading, report, reading.interleaved)
    )
    empty = True
    for table, first, last in tables:
        part = builder.part(table, first, last)
        if part is not None:
            empty = False
            yield part
    reading.notes.extend(builder.checks.notes())
    if empty:
        report.fatal("empty file", "holds no decision; a log needs one row per decision")


def _rows_of_part(reading: Reading) -> int:
    obs = reading.dtype.itemsize * max(1, int(np.prod(reading.shape)))
    copies = 2 if reading.roles["next_observation"] else 1
    masks = len(reading.actions) if reading.roles["legal"] else 0
    return max(1, PART_BYTES // (copies * (obs + masks) + _ROW_BYTES))


def _in_order(log: Log, reading: Reading, report: Report) -> Iterator[Chunk]:
    chunks, rows = Chunks(reading, report), 0
    for batch in log.batches(reading.roles.in_use):
        chunk = chunks.chunk(batch, rows)
        chunk["start"] = chunks.starts(batch, chunk)
        yield chunk
        rows += len(batch)


def _grouped(
    log: Log, reading: Reading, report: Report, interleaved: Interleaved
) -> Iterator[Table]:
    """The rows of each episode brought together, by way of temporary files.

    From then on `report` takes row numbers of the new order.
    """
    roles = reading.roles
    name, (begins, again) = roles.one("episode"), interleaved.rows
    if not roles["time"] and not roles["terminated"]:
        report.fatal(
            "split episode",
            f"{report.place(again)}: episode {_cell(log, name, again)} of column {name!r} begins "
            f"here again, after {report.place(begins)}; if these rows belong together, pass --time "
            "NAME, by which they are ordered",
        )
    spilled, chunks, rows, example = Spilled(), Chunks(reading, report), 0, "?"
    try:
        for batch in log.batches(roles.in_use):
            spilled.add(chunks.chunk(batch, rows))
            if rows <= again < rows + len(batch):
                example = shown(batch.column(name), again - rows)
            rows += len(batch)
        by = f"by {roles.one('time')!r}" if roles["time"] else "as they stand"
        reading.notes.append(
            f"rows are grouped by {name!r} and ordered {by}, since those of an episode do not "
            f"stand together: {example} begins in {report.place(begins)} and again in "
            f"{report.place(again)}"
        )
        columns, episode = spilled.columns(), interleaved.episode[:rows]
        # By episode, then by time, rows without one last, else as they stand in the file.
        times = (columns["time"], ~columns["timed"]) if roles["time"] else ()
        order, place = np.lexsort((*times, episode)), report.place
        report.place = lambda row: place(int(order[row]))
        yield from in_episodes(columns, episode, order, _rows_of_part(reading))
    except OSError as error:
        raise ValueError(
            f"{log.path}: grouping its rows by episode needs room for temporary files in "
            f"{tempfile.gettempdir()} ({error.strerror}); set TMPDIR to a folder with more"
        ) from None
    finally:
        spilled.close()


def _cell(log: Log, name: str, row: int) -> str:
    """Of a log that is refused for it, so that reading on to the row is no pass more."""
    for batch in log.batches([name]):
        if row < len(batch):
            return shown(batch.column(name), row)
        row -= len(batch)
    return "?"


class _Builder:
    def __init__(
        self, log: Log, reading: Reading, report: Report, provenance: dict[str, Any]
    ) -> None:
        self.reading, self.provenance = reading, provenance
        self.checks = Checks(log, reading, report)

    def part(self, table: Chunk, first: int, last: bool) -> Dataset | None:
        """A Dataset of whole episodes; None if no decision is among the rows."""
        starts = np.flatnonzero(table["start"])
        stops = np.append(starts[1:], len(table["start"]))
        final = self._final_rows(table, stops - 1)  # (E,) whether its last row is no decision
        idle = final & (stops - starts == 1)
        if idle.any():
            self.checks.report.row(
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
        self.checks.run(table, ends, final, first)
        if last and self.reading.roles.cut == "flags":
            self.checks.trailing(table, int(ends[-1]))
        with np.errstate(over="ignore", invalid="ignore"):  # the checks have spoken
            return self._build(table, starts, ends, final)

    def _final_rows(self, table: Chunk, last: np.ndarray) -> np.ndarray:
        """Which of the last rows only hold a final observation."""
        if self.reading.roles.cut in ("rows", "each"):
            return np.zeros(len(last), bool)
        if self.reading.own:
            return ~table["paid"][last]
        empty = ~table["decided"][last]
        if "complete" in table:  # a fragment's last row may know the next action
            empty |= ~table["paid"][last] & ~table["complete"][last]
        return empty

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
        complete = np.full(len(ends), self.reading.roles.cut != "rows")
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
            if role.enter is not None and self.reading.roles[name]:
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
        lone = self.reading.roles.cut == "rows"
        assumed = options.ends if lone else options.unflagged_ends
        return np.full(len(ends), assumed == "terminated")
