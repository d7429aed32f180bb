"""A log, once its file is open, to a Source: roles, survey, then the episodes part by part."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa

from rbve.data.logs.episodes import parts
from rbve.data.logs.options import LogOptions
from rbve.data.logs.order import EpisodeOrder
from rbve.data.logs.resolve import Resolver, refuse_unfit
from rbve.data.logs.roles import Roles
from rbve.data.logs.survey import Reading, Survey
from rbve.data.logs.table import Log, Own, TextLog
from rbve.data.logs.values import bare, comparable, is_array, is_category, is_mask, is_number
from rbve.data.source import Report, Source

_MOST_NUMBERS = 1 << 31  # of one observation


def read_log(log: Log, options: LogOptions, report: Report) -> Source:
    """The episodes of a log.

    Args:
        log: The open file.
        options: Which column is what.
        report: Takes the faults.

    Returns:
        A Source, whose notes grow as its parts are read.

    Raises:
        ValueError: Roles or types cannot be settled. Faults of rows are raised by the parts.
    """
    resolver = Resolver(log, options, report)
    roles = resolver.roles()
    notes = resolver.notes + (log.notes if isinstance(log, TextLog) else [])
    if log.own is not None:
        refuse_unfit(log, roles, report)
        _refuse_other_types(log.own, log.types, report)
        reading = _own_reading(log, log.own, roles, options)
        provenance = log.own.provenance
    else:
        reading = Survey(log, roles, options, report).reading()
        provenance = {"source": log.path.name, "format": log.format, "columns": roles.record()}
        notes += reading.notes + _end_notes(roles, options)
    reading = replace(reading, notes=notes)
    return Source(parts(log, reading, report, provenance), log.total, log.position, notes)


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


def _refuse_other_types(own: Own, types: dict[str, pa.DataType], report: Report) -> None:
    """Refuse a file of our own whose columns no longer hold what its metadata says."""
    kinds = [bare(types[name]) for name in own.observation]
    if own.features is not None:
        fits = all(
            is_category(kind) if feature.kind == "category" else is_number(kind)
            for kind, feature in zip(kinds, own.features.columns, strict=True)
        )
    elif is_array(kinds[0]):
        size = math.prod(own.shape)
        fixed = kinds[0].list_size if pa.types.is_fixed_size_list(kinds[0]) else size
        fits = is_mask(kinds[0]) and fixed == size <= _MOST_NUMBERS
    else:
        fits = not own.shape and (is_number(kinds[0]) or pa.types.is_boolean(kinds[0]))
    action = types.get("action")
    if action is not None and own.actions == tuple(map(str, range(len(own.actions)))):
        fits = fits and is_number(bare(action))
    if not fits:
        report.fatal(
            "damaged file",
            "its columns do not hold what its 'rbve' metadata says; export it again, or remove "
            "the metadata and name the columns",
        )


def _end_notes(roles: Roles, options: LogOptions) -> list[str]:
    """What was assumed about the ends of episodes; it decides whether values end there, too."""
    if options.ends is not None or roles["terminated"]:
        return []
    if roles.cut == "rows" and not roles["truncated"]:
        return ["no end flags: every transition goes on; pass --terminated NAME if some end"]
    ends = options.unflagged_ends
    other = "truncated" if ends == "terminated" else "terminated"
    meaning = (
        "nothing is earned after their last decision"
        if ends == "terminated"
        else "the future after their last decision counts and is unknown"
    )
    which = "episodes without that flag" if roles["truncated"] else "no end flags: all episodes"
    return [f"{which} count as {ends}, so {meaning}; pass --ends {other} if that is wrong"]
