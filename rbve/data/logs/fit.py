"""Whether the types of a log's columns suit their roles."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from rbve.data.logs.log import Log, Report
from rbve.data.logs.roles import Roles, is_array
from rbve.data.logs.values import is_category, is_number

AMOUNTS = ("reward", "propensity", "episode_return")
FLAGS = ("terminated", "truncated", "complete")
DECISIONS = ("action", "executed", "next_action")


def refuse_unfit(log: Log, roles: Roles, report: Report) -> None:
    """Refuse types no value of which could be meant; values are checked row by row."""

    def check(column: str | None, fits: Callable[[pa.DataType], bool], needed: str) -> None:
        if column is not None and not fits(bare(log.types[column])):
            report.fatal(
                "mixed types",
                f"column {column!r} holds {log.types[column]}, and needs {needed}; convert it or "
                "name another column",
            )

    check(roles.episode, is_id, "one id in each row")
    check(roles.time, lambda kind: is_number(kind) or is_moment(kind), "numbers or times")
    for role in AMOUNTS:
        check(getattr(roles, role), is_number, "numbers")
    for role in FLAGS:
        check(getattr(roles, role), is_flag, "0 and 1, or true and false")
    for role in DECISIONS:
        check(getattr(roles, role), is_flag, "ids or names of actions")
    for names, suffixes in (
        (roles.legal, roles.suffixes),
        (roles.next_legal, roles.next_suffixes),
    ):
        for name in names:
            if suffixes:
                check(name, is_flag, "0 and 1, or true and false")
            else:
                check(name, is_mask, "arrays of 0 and 1, or a prefix such as 'legal_*' instead")


def bare(kind: pa.DataType) -> pa.DataType:
    return bare(kind.value_type) if pa.types.is_dictionary(kind) else kind


def is_id(kind: pa.DataType) -> bool:
    return is_flag(kind) or is_moment(kind)


def is_moment(kind: pa.DataType) -> bool:
    return pa.types.is_temporal(kind) and not pa.types.is_interval(kind)


def is_flag(kind: pa.DataType) -> bool:
    return is_number(kind) or is_category(kind)


def is_mask(kind: pa.DataType) -> bool:
    inner = kind.value_type if is_array(kind) else None
    return inner is not None and (is_number(inner) or pa.types.is_boolean(inner))
