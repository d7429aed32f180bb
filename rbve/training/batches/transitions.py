"""Batches of transitions. Frames are stored once; a transition holds the rows of s and of s'."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from rbve.data.dataset import Dataset
from rbve.data.inputs import first_rows, frame_shape, frames, input_shape
from rbve.data.readahead import ReadAhead
from rbve.data.transitions import Bootstrap, View, transitions
from rbve.training.batches import Packed, Picked, Store, all_rows, has_pixels, row_bytes
from rbve.types import Array, Batch, Head, Views

NUMBERS = Packed(
    row=np.int32,  # of s
    next_row=np.int32,  # of s', the bootstrap state
    first_row=np.int32,  # of the episode: frames are stacked from here on
    action=np.int32,
    next_action=np.int32,
    has_next_action=np.bool_,
    reward=np.float32,
    discount=np.float32,
    g=np.float32,
)


@dataclass(frozen=True)
class TransitionItems:
    """Transitions of one shape (Items)."""

    frame_shape: tuple[int, ...]  # of one frame as the network sees it
    stack: int  # frames per observation, joined along their last axis
    actions: int
    masked: bool
    pixels: bool  # frames are bytes
    evaluates: bool = False  # rows hold what a policy does

    rows = 1
    averaged = False

    @property
    def obs_shape(self) -> tuple[int, ...]:
        if self.stack == 1:
            return self.frame_shape
        *outer, last = self.frame_shape or (1,)
        return (*outer, self.stack * last)

    def blank(self, batch_size: int) -> Picked:
        shape = (batch_size, 2, self.stack, *self.frame_shape)
        return Picked(
            jnp.zeros(shape, jnp.uint8 if self.pixels else jnp.float32),
            jnp.zeros((batch_size, len(NUMBERS)), jnp.int32),
            jnp.ones((batch_size, 2, self.actions), bool) if self.masked else None,
            jnp.zeros((batch_size, self.actions)) if self.evaluates else None,
        )

    def fetch(self, store: Store, index: Array) -> Picked:
        numbers = _taken(store.numbers, index)
        named = NUMBERS.unpack(numbers)
        rows = jnp.stack([named["row"], named["next_row"]], axis=1)
        wanted = rows[..., None] + jnp.arange(1 - self.stack, 1)  # (B, 2, stack)
        if self.stack > 1:
            blank = store.frames.shape[0] - 1
            wanted = jnp.where(wanted < named["first_row"][:, None, None], blank, wanted)
        return Picked(
            _taken(store.frames, wanted),
            numbers,
            None if store.legal is None else _taken(store.legal, rows),
            None if store.policy is None else _taken(store.policy, rows[:, 1]),
        )

    def batch(self, picked: Picked, g_scale: Array) -> Batch:
        named = NUMBERS.unpack(picked.numbers)
        masked = picked.legal is not None
        return Batch(
            **{name: named[name] for name in Batch._fields if name in named},
            g_scale=g_scale,
            weight=jnp.ones_like(named["g"]),
            legal=picked.legal[:, 0] if masked else None,
            next_legal=picked.legal[:, 1] if masked else None,
            next_policy=picked.policy,
        )

    def views(self, online: Any, target: Any, picked: Picked, keys: Sequence[Array]) -> Views:
        now, later, target_draw = keys
        obs, next_obs = self.join(picked.frames[:, 0]), self.join(picked.frames[:, 1])
        return Views(
            now=online(obs, now),
            next=jax.lax.stop_gradient(online)(next_obs, later),
            target=target(next_obs, target_draw),
            target_at_s=Partial(_heads_at, target, obs, target_draw),
        )

    def heads(self, network: Any, picked: Picked, key: Array) -> Head:
        return network(self.join(picked.frames[:, 0]), key)

    def join(self, frames: Array) -> Array:
        """(B, stack, ..., c) to (B, ..., stack · c)."""
        if self.stack > 1:
            frames = jnp.moveaxis(frames.reshape(-1, self.stack, *self.frame_shape), 1, -2)
        return frames.reshape(-1, *self.obs_shape)

    def joined(self, stores: Sequence[Store]) -> Store:
        moved, start = [], 0
        for store in stores:
            rows = NUMBERS.pack(row=start, next_row=start, first_row=start)
            moved.append(store.numbers + rows)
            start += len(store.frames)
        held = [store.frames for store in stores]
        if self.stack > 1:
            held.append(np.zeros((1, *held[0].shape[1:]), held[0].dtype))
        legal = None if not self.masked else np.concatenate([store.legal for store in stores])
        policy = np.concatenate([each.policy for each in stores]) if self.evaluates else None
        return Store(np.concatenate(held), legal, np.concatenate(moved), policy=policy)


def _taken(column: Array, index: Array) -> Array:
    return column.at[index].get(mode="promise_in_bounds")


def _heads_at(target: Any, obs: Array, key: Array) -> Head:
    return target(obs, jax.random.fold_in(key, 1))  # `key` itself draws for s'


@dataclass(frozen=True)
class _TransitionColumns:
    """The transitions of one dataset (Columns)."""

    dataset: Dataset
    numbers: np.ndarray  # (N, len(NUMBERS)) int32
    stack: int

    decisions = 1

    @property
    def count(self) -> int:
        return len(self.numbers)

    @property
    def g(self) -> np.ndarray:
        return NUMBERS.column(self.numbers, "g")

    @property
    def nbytes(self) -> int:
        return row_bytes(self.dataset) * len(self.dataset.action) + self.numbers.nbytes

    def _rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows (B, 2) of s and s', and (B,) the first of their episode."""
        numbers, names = self.numbers[index], ("row", "next_row", "first_row")
        *rows, first = (NUMBERS.column(numbers, name).astype(np.int64) for name in names)
        return np.stack(rows, axis=1), first

    def expect(self, ahead: ReadAhead, index: np.ndarray) -> None:
        rows, first = self._rows(index)
        ahead.expect(np.maximum(rows[:, 0] - self.stack + 1, first), rows[:, 1])

    def pick(self, index: np.ndarray) -> Picked:
        rows, first = self._rows(index)
        held = frames(self.dataset, rows.reshape(-1), np.repeat(first, 2), self.stack)
        legal, policy = self.dataset.legal, self.dataset.policy
        return Picked(
            held.reshape(len(rows), 2, *held.shape[1:]),
            self.numbers[index],
            None if legal is None else legal[rows],
            None if policy is None else policy[rows[:, 1]],
        )

    def store(self) -> Store:
        return Store(*all_rows(self.dataset), self.numbers, policy=self.dataset.policy)


def transition_items(data: Dataset, stack: int) -> TransitionItems:
    if stack > 1 and data.features is not None:
        raise ValueError(
            "stack joins frames, and this data has named columns, of which a policy takes one row "
            "at a time; leave --stack out, or log what came before as columns of its own"
        )
    shape = frame_shape(data) if stack > 1 else input_shape(data, 1)
    masked = data.legal is not None
    evaluates = data.policy is not None
    return TransitionItems(shape, stack, data.num_actions, masked, has_pixels(data), evaluates)


def transition_columns(
    data: Dataset, view: View, bootstrap: Bootstrap, stack: int
) -> _TransitionColumns:
    """The transitions of a dataset that can be trained on."""
    columns = transitions(data, view, bootstrap)
    if len(columns.row) == 0:
        raise ValueError(
            "no transition can be trained on: every episode is a fragment without reward-to-go, or "
            "one truncated step without a next logged action"
        )
    numbers = NUMBERS.pack(**columns._asdict(), first_row=first_rows(data)[columns.row])
    return _TransitionColumns(data, numbers, stack)
