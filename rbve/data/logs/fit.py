"""Whether the types of a log's columns suit their roles."""

from __future__ import annotations

import math
from collections.abc import Callable

import pyarrow as pa

from rbve.data.logs.log import Log, Own, Report
from rbve.data.logs.roles import Roles, is_array
from rbve.data.logs.values import is_category, is_number

AMOUNTS = ("reward", "propensity", "episode_return")
FLAGS = ("terminated", "truncated", "complete")
MOST_NUMBERS = 1 << 31  # of one observation
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


def refuse_other_types(own: Own, types: dict[str, pa.DataType], report: Report) -> None:
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
        fits = is_mask(kinds[0]) and fixed == size <= MOST_NUMBERS
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
