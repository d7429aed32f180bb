"""Values by subgroup: of the levels of a column, or of quarters of its range."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from rbve.off_policy.log import DecisionLog
from rbve.registry import did_you_mean

_LEVELS = 12  # of a category; the rarest are put together
_FEW = 30  # episodes, below which a group says nothing


@dataclass(frozen=True)
class Subgroup:
    """The episodes that begin with a value of the column."""

    name: str
    episodes: int
    behaviour: float
    behaviour_interval: tuple[float, float]
    values: dict[str, tuple[float, tuple[float, float]]]  # policy -> value, interval


def groups_by(
    log: DecisionLog,
    column: str,
    returns: np.ndarray,
    influence: Mapping[str, np.ndarray],
    interval: Callable[[np.ndarray], tuple[float, float]],
) -> tuple[Subgroup, ...]:
    """Values in each group.

    Args:
        log: The episodes that judge.
        column: By which they are grouped, as it is when an episode begins.
        returns: (E,) of the behaviour.
        influence: (E,) influence values of policies by name.
        interval: Of a mean over episodes.

    Raises:
        ValueError: There is no such column.
    """
    groups = []
    for name, members in members_by(log, column):
        if members.sum() < _FEW:
            continue
        values = {}
        for policy, every in influence.items():
            own = every[members]
            values[policy] = float(own.mean()), interval(own)
        mine = returns[members]
        groups.append(
            Subgroup(name, int(members.sum()), float(mine.mean()), interval(mine), values)
        )
    return tuple(groups)


def check_column(log: DecisionLog, column: str) -> int:
    """Its place among the named columns.

    Raises:
        ValueError: There is no such column.
    """
    features = log.dataset.features
    names = list(features.names) if features is not None else []
    if column not in names:
        hint = " The log has no named columns."
        if names:
            hint = did_you_mean(column, names) or f" The log has {', '.join(names[:8])}."
        raise ValueError(f"no column {column!r} to group by.{hint}")
    return names.index(column)


def members_by(log: DecisionLog, column: str) -> list[tuple[str, np.ndarray]]:
    """Names of groups, and (E,) bool which episodes begin so."""
    place, features = check_column(log, column), log.dataset.features
    first = np.asarray(log.dataset.obs[log.dataset.offsets[:-1]])[:, place].astype(np.float64)
    known = ~np.isnan(first)
    feature = features.columns[place]  # type: ignore[union-attr]
    if feature.kind == "category":
        counts = np.bincount(first[known].astype(int), minlength=len(feature.categories))
        frequent = np.argsort(-counts, kind="stable")[:_LEVELS]
        found = [(feature.categories[k], known & (first == k)) for k in frequent if counts[k]]
        rest = known & ~np.isin(first, frequent)
    else:
        edges: np.ndarray = (
            np.unique(np.quantile(first[known], [0, 0.25, 0.5, 0.75, 1]))
            if known.any()
            else np.zeros(0)
        )
        found, rest = [], np.zeros(len(first), bool)
        for low, high in itertools.pairwise(edges):
            last = high == edges[-1]
            inside = known & (first >= low) & ((first <= high) if last else (first < high))
            found.append((f"{low:.4g} to {high:.4g}", inside))
        if len(edges) == 1:
            found = [(f"{edges[0]:.4g}", known)]
    for words, members in (("others", rest), ("missing", ~known)):
        if members.any():
            found.append((words, members))
    return found
