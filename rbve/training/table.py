"""Transition columns packed into one float32 matrix, so that sampling a batch is one gather.

    [ observation | bootstrap observation | action reward discount next_action has_next g | masks ]

Members with datasets of different sizes share one matrix, each with its offset and count.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.transitions import Bootstrap, View, transitions
from rbve.types import Array, Batch

SCALARS = 6
MAX_EXACT_ACTION = 1 << 24  # action ids beyond are not exact in float32


@dataclass(frozen=True)
class Layout:
    """Where things stand in a packed row."""

    obs_shape: tuple[int, ...]
    actions: int
    masked: bool  # rows end with legal and next_legal

    @property
    def width(self) -> int:
        return 2 * math.prod(self.obs_shape) + SCALARS + 2 * self.actions * self.masked

    def unpack(self, rows: Array, g_scale: Array) -> tuple[Array, Array, Batch]:
        """Observations, bootstrap observations and the Batch of packed rows (B, width)."""
        size = math.prod(self.obs_shape)
        obs = rows[:, :size].reshape(-1, *self.obs_shape)
        next_obs = rows[:, size : 2 * size].reshape(-1, *self.obs_shape)
        action, reward, discount, next_action, has_next, g = (
            rows[:, 2 * size + k] for k in range(SCALARS)
        )
        masks = rows[:, 2 * size + SCALARS :] > 0
        return (
            obs,
            next_obs,
            Batch(
                action=action.astype(jnp.int32),
                reward=reward,
                discount=discount,
                next_action=next_action.astype(jnp.int32),
                has_next_action=has_next > 0,
                g=g,
                g_scale=g_scale,
                weight=jnp.ones_like(g),
                legal=masks[:, : self.actions] if self.masked else None,
                next_legal=masks[:, self.actions :] if self.masked else None,
            ),
        )


@dataclass(frozen=True)
class Table:
    layout: Layout
    rows: np.ndarray  # (N, width) float32, all members one after another
    offset: np.ndarray  # (M,) int32, first row of each member
    count: np.ndarray  # (M,) int32
    g_scale: np.ndarray  # (M,) float32


def pack(datasets: Sequence[Dataset], view: View, bootstrap: Bootstrap) -> Table:
    """One table for all members; members with the same Dataset object share its rows."""
    layouts = {
        Layout(data.obs_shape, data.num_actions, data.legal is not None) for data in datasets
    }
    if len(layouts) != 1:
        raise ValueError(
            "datasets trained together need equal observations, actions and masks; got "
            + " and ".join(sorted(str(layout) for layout in layouts))
        )
    (layout,) = layouts
    if layout.actions > MAX_EXACT_ACTION:
        raise ValueError(f"{layout.actions} actions; at most {MAX_EXACT_ACTION} are supported")
    parts: dict[int, tuple[int, np.ndarray]] = {}
    total = 0
    for data in datasets:
        if id(data) not in parts:
            rows = pack_one(data, layout, view, bootstrap)
            parts[id(data)] = (total, rows)
            total += len(rows)
    members = [parts[id(data)] for data in datasets]
    # float64: at 10M rows a float32 sum would lose digits.
    g_column = 2 * math.prod(layout.obs_shape) + SCALARS - 1
    scale = np.array([rows[:, g_column].astype(np.float64).std() for _, rows in members])
    if (scale == 0).any():
        warnings.warn(
            "V̂ is the same in every row of a dataset: ranking weights are all 1 there", stacklevel=2
        )
    return Table(
        layout=layout,
        rows=np.concatenate([rows for _, rows in parts.values()]),
        offset=np.array([offset for offset, _ in members], np.int32),
        count=np.array([len(rows) for _, rows in members], np.int32),
        g_scale=scale.astype(np.float32),
    )


def pack_one(data: Dataset, layout: Layout, view: View, bootstrap: Bootstrap) -> np.ndarray:
    columns = transitions(data, view, bootstrap)
    count = len(columns.row)
    if count == 0:
        raise ValueError(
            "no transition can be trained on: every episode is a fragment without reward-to-go, or "
            "one truncated step without a next logged action"
        )
    parts = [
        data.obs[columns.row].reshape(count, -1),
        data.obs[columns.next_row].reshape(count, -1),
        np.stack(
            [
                columns.action,
                columns.reward,
                columns.discount,
                columns.next_action,
                columns.has_next_action,
                columns.g,
            ],
            axis=1,
        ),
    ]
    if data.legal is not None:
        parts += [data.legal[columns.row], data.legal[columns.next_row]]
    return np.concatenate(parts, axis=1, dtype=np.float32)
