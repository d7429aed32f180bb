"""What a caller gives a policy: observations, as the dataset holds them, and legal actions.

What does not fit is named by row. Which actions may be taken is said by a mask, ids, names or
"all": booleans are a mask, and so are numbers that are all 0 or 1 and as many as there are actions,
since Gymnasium's masks are of int8. Other whole numbers are ids. Text is names.
"""

import contextlib
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rbve.data.features import Features
from rbve.registry import did_you_mean

ALL = "all"
_STREAM = "__arrow_c_stream__"  # what data frames offer


def read_rows(
    observation: Any, shape: tuple[int, ...], features: Features | None
) -> tuple[np.ndarray, bool]:
    """Observations (B, ...), and whether one alone was given."""
    if is_named(observation):
        if features is None:
            raise ValueError(
                "the data this policy learned from had no named columns; give numbers of shape "
                f"{shape}"
            )
        if hasattr(observation, _STREAM):
            from rbve.runtime.arrow import frame_rows  # Arrow takes longer than a decision

            return frame_rows(features, observation), False
        return features.rows(observation), isinstance(observation, Mapping)
    try:
        obs = np.asarray(observation)
    except ValueError:
        if isinstance(observation, list | tuple):
            _refuse_ragged(observation)
        raise
    if obs.dtype.kind not in "biuf":
        raise ValueError(f"an observation holds numbers; got {obs.dtype}")
    single = obs.shape == shape
    if not single and (obs.shape[1:] != shape or obs.ndim == 0):
        raise ValueError(
            f"an observation has shape {shape} ({math.prod(shape)} numbers); got {obs.shape}"
        )
    obs = obs[None] if single else obs
    if obs.dtype.kind == "f":  # what is not finite, unless it is a value that may be missing
        flat = obs.reshape(len(obs), -1)
        good = np.isfinite(flat) if features is None else features.accepts(flat)
        if not good.all():
            row, column = np.argwhere(~good)[0]
            where = f"column {features.names[column]!r}" if features else f"number {column}"
            raise ValueError(
                f"row {row}, {where}: an observation must consist of finite numbers; got nan or inf"
            )
    return obs, single


def is_named(observation: Any) -> bool:
    if isinstance(observation, dict | np.ndarray):
        return isinstance(observation, dict)
    if hasattr(observation, _STREAM):
        return True
    return isinstance(observation, Mapping) or (
        isinstance(observation, list) and any(isinstance(row, Mapping) for row in observation)
    )


def _refuse_ragged(observation: Sequence[Any]) -> None:
    """Rows of different shapes, of which NumPy would not say where they are."""
    for row, values in enumerate(observation):
        try:
            shape = np.shape(values)
        except ValueError:
            raise ValueError(f"row {row} is ragged; observations have equal shapes") from None
        if shape != (first := np.shape(observation[0])):
            what = f"has shape {shape}, row 0 {first}"
            raise ValueError(f"row {row} {what}; observations have equal shapes") from None


def read_legal(
    legal: Any, actions: Sequence[str], count: int, needed: bool = False
) -> np.ndarray | None:
    """A mask (count, A) for as many observations; None = every action is legal."""
    if legal is None and needed:
        raise ValueError(
            f"the data of this policy says which actions are legal, so decisions need legal=: "
            f"{forms(actions)}; or legal='all' where all of them are"
        )
    if legal is None or (isinstance(legal, str) and legal == ALL):
        return None
    mask = _as_mask(legal, actions)
    if mask.ndim == 1:
        mask = mask[None]
    if mask.shape not in ((1, len(actions)), (count, len(actions))):
        raise ValueError(
            f"legal needs {forms(actions)}, once or for each observation; got the shape "
            f"{np.shape(legal) if mask.shape[1:] != (len(actions),) else mask.shape}"
        )
    empty = np.flatnonzero(~mask.any(axis=-1))
    if len(empty):
        where = f"row {empty[0]}: " if len(mask) > 1 else ""
        raise ValueError(f"{where}legal allows no action; a decision needs at least one")
    return np.broadcast_to(mask, (count, len(actions)))


def forms(actions: Sequence[str]) -> str:
    some = ", ".join(map(repr, actions[:2]))
    return f"True or False for each of {len(actions)} actions, or a list of ids or names ({some})"


def _as_mask(legal: Any, actions: Sequence[str]) -> np.ndarray:
    """Also from ids or names, in one list or in one list per observation."""
    with contextlib.suppress(ValueError):  # lists of different lengths are ids or names
        values = np.asarray(legal)
        if values.dtype.kind == "b":
            return values
        numbers = values.dtype.kind in "iuf"
        if numbers and values.shape[-1:] == (len(actions),) and np.isin(values, (0, 1)).all():
            return values != 0
    if isinstance(legal, str) or not isinstance(legal, Iterable):
        raise ValueError(f"legal needs {forms(actions)}; got {legal!r}")
    each = list(legal)
    if not each or any(not isinstance(one, Iterable) or isinstance(one, str) for one in each):
        return _of_row(each, actions)
    return np.stack([_of_row(list(one), actions, f"row {row}: ") for row, one in enumerate(each)])


def _of_row(chosen: list[Any], actions: Sequence[str], where: str = "") -> np.ndarray:
    mask = np.zeros(len(actions), np.bool_)
    for action in chosen:
        try:
            index = action_id(action, actions)
        except ValueError as error:
            raise ValueError(f"{where}{error}") from None
        if mask[index]:  # or a mask of another length
            raise ValueError(
                f"{where}legal names action {action!r} twice; it needs {forms(actions)}"
            )
        mask[index] = True
    return mask


def action_id(action: Any, actions: Sequence[str]) -> int:
    if isinstance(action, str):
        if action in actions:
            return actions.index(action)
        hint = did_you_mean(action, actions)
        raise ValueError(f"unknown action {action!r}.{hint} Known: {', '.join(actions[:20])}")
    try:
        index = -1 if isinstance(action, bool | np.bool_) else operator.index(action)
    except TypeError:
        index = -1
    if not 0 <= index < len(actions):
        raise ValueError(
            f"an action is an id in [0, {len(actions) - 1}] or a name ({', '.join(actions[:20])}); "
            f"got {action!r}"
        )
    if actions[index] != str(index) and str(index) in actions:
        raise ValueError(
            f"{index} may be the id of action {actions[index]!r} or the name of another; give names"
        )
    return index
