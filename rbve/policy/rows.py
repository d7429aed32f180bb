"""Observations given to a policy, as the dataset holds them; what does not fit is named by row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rbve.data.features import Features


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
        return features.rows(observation), isinstance(observation, Mapping)
    refuse_ragged(observation)
    obs = np.asarray(observation)
    if obs.dtype.kind not in "biuf":
        raise ValueError(f"an observation holds numbers; got {obs.dtype}")
    single = obs.shape == shape
    if not single and (obs.shape[1:] != shape or obs.ndim == 0):
        raise ValueError(
            f"an observation has shape {shape} ({math.prod(shape)} numbers); got {obs.shape}"
        )
    obs = obs[None] if single else obs
    refuse_gaps(obs, features)
    return obs, single


def is_named(observation: Any) -> bool:
    return isinstance(observation, Mapping) or (
        isinstance(observation, list) and any(isinstance(row, Mapping) for row in observation)
    )


def refuse_ragged(observation: Any) -> None:
    """Rows of different shapes, of which NumPy would not say where they are."""
    if not isinstance(observation, list | tuple):
        return
    try:
        np.asarray(observation)
    except ValueError:
        shapes = [shape_of(row) for row in observation]
        for row, shape in enumerate(shapes):
            if shape is None or shape != shapes[0]:
                what = "is ragged" if shape is None else f"has shape {shape}, row 0 {shapes[0]}"
                raise ValueError(f"row {row} {what}; observations have equal shapes") from None
        raise


def shape_of(row: Any) -> tuple[int, ...] | None:
    try:
        return np.shape(row)
    except ValueError:
        return None


def refuse_gaps(obs: np.ndarray, features: Features | None) -> None:
    """Refuse what is not finite, unless it is a value that may be missing."""
    if obs.dtype.kind != "f":
        return
    flat = obs.reshape(len(obs), -1)
    good = np.isfinite(flat) if features is None else features.accepts(flat)
    if not good.all():
        row, column = np.argwhere(~good)[0]
        where = f"column {features.names[column]!r}" if features else f"number {column}"
        raise ValueError(
            f"row {row}, {where}: an observation must consist of finite numbers; got nan or inf"
        )
