"""Logs: tables with one row per decision, read in a survey and a reading pass.

roles      what a user says: which column is what, how values are read; what each role is
resolve    what a file format has to offer (Log); the options against the columns it has
survey     the first pass: what figures of the columns say of actions, features and types
figures    what it gathers of a column
columns    the second pass: batches of Arrow columns to NumPy columns, by role
order      whether the rows of each episode stand together
checks     whole episodes to parts of a Dataset, after checks

What cuts rows into whole episodes, also of episodes whose rows do not stand together, is here.
"""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial, reduce
from itertools import chain
from threading import Lock
from typing import Any

import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.logs.checks import Builder
from rbve.data.logs.columns import Chunks, comparable, shown
from rbve.data.logs.order import EpisodeOrder, Interleaved
from rbve.data.logs.resolve import Log, Resolver, refuse_types
from rbve.data.logs.roles import Chunk, LogOptions, Reading, Roles
from rbve.data.logs.survey import Survey
from rbve.data.source import Report, Source

__all__ = ["LogOptions", "read_log"]

PART_BYTES = 1 << 23  # of a part, about: what is done with its columns stays in the cache
_ROW_BYTES = 64  # of a row beside its observation and mask, while it is worked on
_Table = tuple[Chunk, int, bool]  # whole episodes, number of their first row, whether they are last


def read_log(log: Log, options: LogOptions, report: Report) -> Source:
    """The episodes of an open log, as a Source whose notes grow as its parts are read.

    Raises:
        ValueError: Roles or types cannot be settled. Faults of rows are raised by the parts.
    """
    resolver = Resolver(log, options, report)
    roles, order = resolver.roles(), EpisodeOrder()
    notes = resolver.notes + log.notes
    provenance: dict[str, Any]
    if (own := log.own) is not None:
        refuse_types(log, roles, options, report)
        order = order if log.logs else _order(log, roles)  # files of ours: each by itself, below
        by_id = own.actions == tuple(map(str, range(len(own.actions))))
        facts = (own.actions, by_id, own.shape, np.dtype(own.dtype), own.features)
        reading = Reading(roles, options, *facts, notes, own=True)
        provenance = own.provenance
    else:
        reading = Survey(log, roles, options, report, notes).reading(order)
        provenance = {"source": log.path.name, "format": log.format, "columns": roles.record()}
        notes += _end_notes(roles, options)
    builder = Builder(log, reading, report, provenance)
    if own is not None and log.logs:  # each file numbers its episodes anew
        apart = partial(_pieces, log, builder, [_order(e, roles).interleaved() for e in log.logs])
        parts = chain.from_iterable(piece.parts for piece in apart())
        return Source(parts, log.total, lambda: sum(e.position() for e in log.logs), notes, apart)
    interleaved = order.interleaved()

    def whole() -> Iterator[Dataset]:
        parts = _parts(log, builder, interleaved)
        if (first := next(parts, None)) is None:
            report.fatal("empty file", "holds no decision; a log needs one row per decision")
        yield first
        yield from parts
        notes.extend(builder.notes())

    def pieces() -> list[Source]:
        begin = set(order.begins.tolist()) if roles.cut == "ids" else set(log.starts)
        apart = interleaved is None and roles.cut != "flags" and set(log.starts) <= begin
        return _pieces(log, builder, [None] * len(log.logs)) if apart else []

    return Source(whole(), log.total, log.position, notes, pieces)


def _order(log: Log, roles: Roles) -> EpisodeOrder:
    """Of a log whose types are known."""
    order = EpisodeOrder()
    for name in roles["episode"]:
        for batch in log.batches([name]):
            order.add(comparable(batch.column(name)))
    return order


def _pieces(log: Log, builder: Builder, interleaved: Sequence[Interleaved | None]) -> list[Source]:
    """The logs that a log consists of, to be read at the same time; notes are of all together."""
    own = [
        replace(builder, log=each, report=builder.report.shifted(start), _steps=set())
        for each, start in zip(log.logs, log.starts, strict=True)
    ]
    left, lock = len(own), Lock()

    def parts(each: Builder, order: Interleaved | None) -> Iterator[Dataset]:
        nonlocal left
        yield from _parts(each.log, each, order)
        with lock:
            left -= 1
            if not left:
                builder.reading.notes.extend(reduce(Builder.merged, own).notes())

    return [
        Source(parts(each, order), each.log.total, each.log.position)
        for each, order in zip(own, interleaved, strict=True)
    ]


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


def _parts(log: Log, builder: Builder, interleaved: Interleaved | None) -> Iterator[Dataset]:
    reading, chunks = builder.reading, Chunks(builder.reading, builder.report)
    obs = reading.dtype.itemsize * max(1, int(np.prod(reading.shape)))
    copies = 2 if reading.roles["next_observation"] else 1
    masks = len(reading.actions) if reading.roles["legal"] else 0
    limit = max(1, PART_BYTES // (copies * (obs + masks) + _ROW_BYTES))  # rows of a part
    rows = (
        (chunk for _, chunk in chunks.read(log))
        if interleaved is None
        else _grouped(log, chunks, interleaved, limit // 4 + 1)
    )
    for table, first, last in _whole_episodes(rows, limit):
        if (part := builder.part(table, first, last)) is not None:
            yield part


def _grouped(log: Log, chunks: Chunks, interleaved: Interleaved, size: int) -> Iterator[Chunk]:
    """Chunks in which the rows of each episode stand together, by way of temporary files.

    From then on the report takes row numbers of the new order.
    """
    roles, report = chunks.roles, chunks.report
    name, (begins, again) = roles.one("episode"), interleaved.rows
    if not roles["time"] and not roles["terminated"]:
        report.fatal(
            "split episode",
            f"{report.place(again)}: episode {_cell(log, name, again)} of column {name!r} begins "
            f"here again, after {report.place(begins)}; if these rows belong together, pass --time "
            "NAME, by which they are ordered",
        )
    rows, example, chunk = 0, "?", Chunk()
    files: dict[str, Any] = {}
    try:
        with ExitStack() as stack:
            for batch, chunk in chunks.read(log):
                _spill(chunk, files, stack)
                if rows <= again < rows + len(batch):
                    example = shown(batch.column(name), again - rows)
                rows += len(batch)
            by = f"by {roles.one('time')!r}" if roles["time"] else "as they stand"
            chunks.reading.notes.append(
                f"rows are grouped by {name!r} and ordered {by}, since those of an episode do not "
                f"stand together: {example} begins in {report.place(begins)} and again in "
                f"{report.place(again)}"
            )
            columns, episode = {}, interleaved.episode[:rows]
            for column, file in files.items():
                file.flush()
                mapped = np.memmap(file, chunk[column].dtype, "r")
                columns[column] = mapped.reshape(-1, *chunk[column].shape[1:])
            # By episode, then by time, rows without one last, else as they stand in the file.
            times = (columns["time"], ~columns["timed"]) if roles["time"] else ()
            order, place = np.lexsort((*times, episode)), report.place
            report.place = lambda row: place(int(order[row]))
            starts = np.append(True, np.diff(episode[order]) != 0)
            for begin in range(0, rows, size):
                some = slice(begin, begin + size)
                table = {name: column[order[some]] for name, column in columns.items()}
                yield table | {"start": starts[some]}
    except OSError as error:
        raise ValueError(
            f"{log.path}: grouping its rows by episode needs room for temporary files in "
            f"{tempfile.gettempdir()} ({error.strerror}); set TMPDIR to a folder with more"
        ) from None


def _spill(chunk: Chunk, files: dict[str, Any], stack: ExitStack) -> None:
    """Append columns to temporary files, one each, which go with the process."""
    for name, column in chunk.items():
        if name not in files:
            files[name] = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        files[name].write(np.ascontiguousarray(column).data)


def _cell(log: Log, name: str, row: int) -> str:
    """Of a log that is refused for it, so that reading on to the row is no pass more."""
    for batch in log.batches([name]):
        if row < len(batch):
            return shown(batch.column(name), row)
        row -= len(batch)
    return "?"


def _whole_episodes(chunks: Iterable[Chunk], limit: int) -> Iterator[_Table]:
    """Tables of about `limit` rows from chunks in which episodes stand together."""
    held: list[Chunk] = []
    first = rows = 0  # number of the first row held, and how many are held
    last_start = 0  # number of the row where the last episode begins
    for chunk in chunks:
        starts = np.flatnonzero(chunk["start"])
        if len(starts):
            last_start = first + rows + int(starts[-1])
        held.append(chunk)
        rows += len(chunk["start"])
        if rows >= limit and last_start > first:
            table = _joined(held)
            stop = last_start - first
            yield {name: column[:stop] for name, column in table.items()}, first, False
            held = [{name: column[stop:].copy() for name, column in table.items()}]
            first, rows = last_start, rows - stop
            del table
    if rows:
        yield _joined(held), first, True


def _joined(held: list[Chunk]) -> Chunk:
    if len(held) == 1:
        return held[0]
    table = {name: np.concatenate([chunk[name] for chunk in held]) for name in held[0]}
    held.clear()
    return table
