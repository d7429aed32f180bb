"""Sequences for networks with memory: which rows they hold, and how a batch of them is made.

The rows of a dataset are one long line of episodes, and a sequence is a stretch of it. Whole
episodes: as many as fit into the length of the dataset's longest one, each in exactly one sequence.
Windows: every row is trained on in exactly one window, after up to `burn_in` rows that only warm
the memory.
Memory is emptied where an episode begins, so what lies before it in a stretch does no harm; rows
that are not trained on weigh 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.inputs import first_rows, input_shape, seen
from rbve.data.readahead import ReadAhead
from rbve.data.transitions import Bootstrap, View, transitions
from rbve.networks.recurrent import Seen
from rbve.training.views import Sequences
from rbve.types import Array, Batch


class Scalars(NamedTuple):
    """Numbers of a row, side by side in one array in this order."""

    last_action: Any  # −1 = none
    last_reward: Any
    first: Any  # an episode begins
    # Of the transition that begins here, zeros where none does:
    action: Any
    reward: Any
    discount: Any
    steps: Any  # rows to where it bootstraps from
    next_action: Any
    has_next_action: Any
    g: Any
    weight: Any  # 1 where it is trained on


SCALARS = len(Scalars._fields)
G, WEIGHT = map(Scalars._fields.index, ("g", "weight"))


class Plan(NamedTuple):
    """The shape of sequences; all of them are equally long."""

    burn_in: int  # rows that warm the memory
    train: int  # rows trained on, or padding
    tail: int  # rows to bootstrap from

    @property
    def rows(self) -> int:
        return self.burn_in + self.train + self.tail


class SequencePicked(NamedTuple):
    """Rows of sequences, on the host or the device; (B, L) or (K, B, L) leads."""

    frames: Any  # (B, L, ...) uint8 or float32
    scalars: Any  # (B, L, SCALARS) float32
    masks: Any  # (B, L, A) bool; None without masks


class SequenceRows(NamedTuple):
    """A dataset's rows in memory, with what pads their ends, and where sequences lie in them."""

    frames: Any  # (R, ...)
    scalars: Any  # (R, SCALARS)
    masks: Any  # (R, A); None without masks
    items: Any  # (N, 3) int32: first row, first row trained on, row after the last trained on


@dataclass(frozen=True)
class SequenceLayout:
    obs_shape: tuple[int, ...]  # as the network sees it
    actions: int
    masked: bool
    pixels: bool  # frames are bytes
    plan: Plan

    @property
    def rows_each(self) -> int:
        """Of a sequence."""
        return self.plan.rows

    def blank(self, batch_size: int) -> SequencePicked:
        lead = (batch_size, self.plan.rows)
        return SequencePicked(
            jnp.zeros((*lead, *self.obs_shape), jnp.uint8 if self.pixels else jnp.float32),
            jnp.zeros((*lead, SCALARS)),
            jnp.ones((*lead, self.actions), bool) if self.masked else None,
        )

    def fetch(self, rows: SequenceRows, index: Array) -> SequencePicked:
        """Sequences (B,) of rows in memory."""

        def stretch(column: Array, first: Array) -> Array:
            return jax.lax.dynamic_slice_in_dim(column, first, self.plan.rows)

        first, low, high = rows.items.at[index].get(mode="promise_in_bounds").T
        picked = SequencePicked(
            *jax.tree.map(lambda column: jax.vmap(stretch, (None, 0))(column, first), rows[:3])
        )
        row = first[:, None] + jnp.arange(self.plan.rows)
        inside = (row >= low[:, None]) & (row < high[:, None])
        return picked._replace(scalars=picked.scalars.at[..., WEIGHT].multiply(inside))

    def batch(self, picked: SequencePicked, g_scale: Array) -> tuple[Sequences, Batch]:
        """What networks see, and the Batch of train · B steps, time before batch."""
        plan = self.plan
        columns = jnp.moveaxis(picked.scalars, (0, 1, 2), (2, 1, 0))  # (SCALARS, L, B)
        seen = Scalars(*columns)
        trained = Scalars(*columns[:, plan.burn_in : plan.burn_in + plan.train])
        here = plan.burn_in + jnp.arange(plan.train)
        # Beyond the end point only rows of no weight, of an episode that did not fit.
        later = jnp.minimum(here[:, None] + trained.steps.astype(jnp.int32), plan.rows - 1)
        masks = None if picked.masks is None else jnp.moveaxis(picked.masks, 0, 1)  # (L, B, A)
        flat = jnp.reshape
        return (
            Sequences(
                Seen(
                    jnp.moveaxis(picked.frames, 0, 1),
                    seen.last_action.astype(jnp.int32),
                    seen.last_reward,
                    seen.first > 0,
                ),
                later,
            ),
            Batch(
                action=flat(trained.action, -1).astype(jnp.int32),
                reward=flat(trained.reward, -1),
                discount=flat(trained.discount, -1),
                next_action=flat(trained.next_action, -1).astype(jnp.int32),
                has_next_action=flat(trained.has_next_action, -1) > 0,
                g=flat(trained.g, -1),
                g_scale=g_scale,
                weight=flat(trained.weight, -1),
                legal=None if masks is None else flat(masks[here], (-1, self.actions)),
                next_legal=None
                if masks is None
                else flat(jnp.take_along_axis(masks, later[..., None], axis=0), (-1, self.actions)),
            ),
        )


@dataclass(frozen=True)
class SequenceColumns:
    """The sequences of one dataset; observations are read when sequences are picked."""

    dataset: Dataset
    items: np.ndarray  # (N, 3) int64, as in SequenceRows; the first row may lie before the data
    scalars: np.ndarray  # (R, SCALARS) float32
    plan: Plan

    @property
    def rows_each(self) -> int:
        """Decisions of a sequence, at most."""
        return self.plan.train

    @property
    def count(self) -> int:
        return len(self.items)

    def rows_of(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows (B, L) of sequences, kept within the data, and whether each is trained on."""
        first, low, high = (column[:, None] for column in self.items[index].T)
        row = first + np.arange(self.plan.rows)
        return np.clip(row, 0, len(self.scalars) - 1), (row >= low) & (row < high)

    def expect(self, ahead: ReadAhead, index: np.ndarray) -> None:
        """Say that these sequences will be picked."""
        rows = self.rows_of(index)[0]
        ahead.expect(rows[:, 0], rows[:, -1])

    def pick(self, index: np.ndarray) -> SequencePicked:
        rows, inside = self.rows_of(index)
        scalars = self.scalars[rows]
        scalars[..., WEIGHT] *= inside
        frames = seen(self.dataset, rows.reshape(-1))
        legal = self.dataset.legal
        return SequencePicked(
            frames.reshape(*rows.shape, *frames.shape[1:]),
            scalars,
            None if legal is None else legal[rows],
        )

    def in_memory(self) -> SequenceRows:
        """All rows, so padded that no sequence reaches beyond them."""
        before, after = self.plan.burn_in, self.plan.rows

        def padded(column: np.ndarray) -> np.ndarray:
            column = np.asarray(column)
            return np.pad(column, [(before, after), *[(0, 0)] * (column.ndim - 1)], mode="edge")

        legal = self.dataset.legal
        return SequenceRows(
            padded(seen(self.dataset, np.arange(len(self.scalars)))),
            padded(self.scalars),
            None if legal is None else padded(legal),
            (self.items + before).astype(np.int32),
        )

    @property
    def nbytes(self) -> int:
        """Of in_memory(), about."""
        one = sum(v.nbytes for v in self.pick(np.zeros(1, np.int64)) if v is not None)
        return one // self.plan.rows * (len(self.scalars) + self.plan.rows)


def join(parts: list[SequenceRows]) -> tuple[SequenceRows, list[int]]:
    """Rows of several datasets one after another, and where each one's sequences begin."""
    starts = np.cumsum([0, *(len(part.scalars) for part in parts)])
    moved = [part.items + start for part, start in zip(parts, starts, strict=False)]
    held = jax.tree.map(lambda *columns: np.concatenate(columns), *parts)
    offsets = np.cumsum([0, *map(len, moved)]).tolist()
    return held._replace(items=np.concatenate(moved).astype(np.int32)), offsets


def plan_for(datasets: Sequence[Dataset], sequence: int, burn_in: int, n_step: int) -> Plan:
    """`sequence` rows a window, or with 0 whole episodes: the longest decides."""
    if sequence:
        rows = max(len(data.action) for data in datasets)
        if max(sequence, burn_in) > rows:
            raise ValueError(
                f"windows of {sequence:,} steps after {burn_in:,} to warm up do not fit the data, "
                f"{rows:,} rows in all; give less, or leave --sequence out for whole episodes"
            )
        return Plan(burn_in, sequence, n_step)
    return Plan(0, max(map(longest_episode, datasets)), 0)


def longest_episode(data: Dataset) -> int:
    """In rows."""
    return int(np.diff(data.offsets).max())


def layout_of(data: Dataset, plan: Plan) -> SequenceLayout:
    if not data.complete.all():
        raise ValueError(
            "a network with memory learns from whole episodes, and this data holds fragments of "
            "episodes; train without memory"
        )
    return SequenceLayout(
        obs_shape=input_shape(data, 1),
        actions=data.num_actions,
        masked=data.legal is not None,
        pixels=data.obs.dtype == np.uint8 and data.features is None,
        plan=plan,
    )


def columns_of(
    data: Dataset, view: View, bootstrap: Bootstrap, sequence: int, plan: Plan
) -> SequenceColumns:
    scalars = row_scalars(data, view, bootstrap)
    if not scalars[:, WEIGHT].any():
        raise ValueError(
            "no transition can be trained on: every episode is one truncated step without a next "
            "logged action"
        )
    # By its own longest episode: beside data with a longer one, its sequences stay the same.
    items = windows(len(scalars), plan) if sequence else packs(data.offsets, longest_episode(data))
    # A stretch whose every row weighs nothing would make a batch of nothing.
    total = np.concatenate([[0], np.cumsum(scalars[:, WEIGHT], dtype=np.int64)])
    return SequenceColumns(data, items[total[items[:, 2]] > total[items[:, 1]]], scalars, plan)


def windows(rows: int, plan: Plan) -> np.ndarray:
    low = np.arange(0, rows, plan.train)
    return np.stack([low - plan.burn_in, low, np.minimum(low + plan.train, rows)], axis=1)


def packs(offsets: np.ndarray, longest: int) -> np.ndarray:
    """Neighbouring episodes together, as many as fit."""
    items = []
    first = int(offsets[0])
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        if stop - first > longest:
            items.append((first, first, start))
            first = start
    return np.array([*items, (first, first, int(offsets[-1]))], np.int64)


def row_scalars(data: Dataset, view: View, bootstrap: Bootstrap) -> np.ndarray:
    """(R, SCALARS) float32 of all rows."""
    first = first_rows(data) == np.arange(len(data.action))
    found = transitions(data, view, bootstrap)

    def placed(values: Any) -> np.ndarray:
        column = np.zeros(len(first), np.float32)
        column[found.row] = values
        return column

    columns = Scalars(
        last_action=np.where(first, -1, np.roll(data.action, 1)),
        last_reward=np.where(first, 0, np.roll(data.reward, 1)),
        first=first,
        action=placed(found.action),
        reward=placed(found.reward),
        discount=placed(found.discount),
        steps=placed(found.next_row - found.row),
        next_action=placed(found.next_action),
        has_next_action=placed(found.has_next_action),
        g=placed(found.g),
        weight=placed(1.0),
    )
    return np.stack(columns, axis=1, dtype=np.float32)
