"""A log, once its file is open, to a Source."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rbve.data.logs.episodes import parts
from rbve.data.logs.fit import refuse_other_types, refuse_unfit
from rbve.data.logs.log import Log, Own, Report
from rbve.data.logs.options import Options
from rbve.data.logs.roles import Resolver, Roles
from rbve.data.logs.survey import Plan, Survey
from rbve.data.source import Source


def read_log(log: Log, options: Options, report: Report) -> Source:
    resolver = Resolver(log, options, report)
    roles = resolver.roles()
    notes = resolver.notes
    notes += log.settle(roles, options)
    refuse_unfit(log, roles, report)
    if log.own is not None:
        refuse_other_types(log.own, log.types, report)
        plan = own_plan(log.own, roles, options)
        provenance = log.own.provenance
    else:
        plan = Survey(log, roles, options, report).plan()
        notes += plan.notes
        provenance = {
            "source": log.path.name,
            "format": log.format,
            "columns": used(roles),
        }
        notes += end_notes(roles, options)
    plan = replace(plan, notes=notes)
    return Source(parts(log, plan, report, provenance), log.total, log.position, notes)


def used(roles: Roles) -> dict[str, Any]:
    """Roles and their columns, for the record."""
    found = {
        name: value for name, value in vars(roles).items() if value and name in vars(Options())
    }
    return {name: list(value) if type(value) is tuple else value for name, value in found.items()}


def own_plan(own: Own, roles: Roles, options: Options) -> Plan:
    return Plan(
        roles=roles,
        options=options,
        actions=own.actions,
        by_id=own.actions == tuple(map(str, range(len(own.actions)))),
        shape=own.shape,
        dtype=np.dtype(own.dtype),
        features=own.features,
        own=True,
    )


def end_notes(roles: Roles, options: Options) -> list[str]:
    """What was assumed about the ends of episodes; it decides whether values end there, too."""
    if (
        options.ends is None
        and roles.cut == "rows"
        and roles.terminated is None
        and roles.truncated is None
    ):
        return ["no end flags: every transition goes on; pass --terminated NAME if some end"]
    if roles.terminated is not None or options.ends is not None:
        return []
    ends = options.unflagged_ends
    other = "truncated" if ends == "terminated" else "terminated"
    meaning = (
        "nothing is earned after their last decision"
        if ends == "terminated"
        else "the future after their last decision counts and is unknown"
    )
    which = "episodes without that flag" if roles.truncated else "no end flags: all episodes"
    return [f"{which} count as {ends}, so {meaning}; pass --ends {other} if that is wrong"]
