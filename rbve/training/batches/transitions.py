"""Batches of transitions. Frames are stored once; a transition holds the rows of s and of s'."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from rbve.data.dataset import Dataset
from rbve.data.inputs import first_rows, frame_shape, frames, input_shape, seen
from rbve.data.readahead import ReadAhead
from rbve.data.transitions import Bootstrap, View, transitions
from rbve.training.batches.packed import Packed
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


class PickedTransitions(NamedTuple):
    """Some transitions, on the host or the device; (B,) or (K, B) leads."""

    frames: Any  # (B, 2, stack, ...) uint8 or float32, of s and s'
    numbers: Any  # (B, len(NUMBERS)) int32
    legal: Any  # (B, 2, A) bool; None without masks


class TransitionStore(NamedTuple):
    """What transitions are fetched from."""

    frames: Any  # (R, ...); with stacking a frame of zeros comes last
    legal: Any  # (R, A) bool; None without masks
    numbers: Any  # (N, len(NUMBERS)) int32


@dataclass(frozen=True)
class TransitionItems:
    """Transitions of one shape (the Items protocol)."""

    frame_shape: tuple[int, ...]  # of one frame as the network sees it
    stack: int  # frames per observation, joined along their last axis
    actions: int
    masked: bool
    pixels: bool  # frames are bytes

    rows = 1
    averaged = False

    @property
    def obs_shape(self) -> tuple[int, ...]:
        if self.stack == 1:
            return self.frame_shape
        *outer, last = self.frame_shape or (1,)
        return (*outer, self.stack * last)

    def blank(self, batch_size: int) -> PickedTransitions:
        shape = (batch_size, 2, self.stack, *self.frame_shape)
        return PickedTransitions(
            jnp.zeros(shape, jnp.uint8 if self.pixels else jnp.float32),
            jnp.zeros((batch_size, len(NUMBERS)), jnp.int32),
            jnp.ones((batch_size, 2, self.actions), bool) if self.masked else None,
        )

    def fetch(self, store: TransitionStore, index: Array) -> PickedTransitions:
        numbers = _taken(store.numbers, index)
        named = NUMBERS.unpack(numbers)
        rows = jnp.stack([named["row"], named["next_row"]], axis=1)
        wanted = rows[..., None] + jnp.arange(1 - self.stack, 1)  # (B, 2, stack)
        if self.stack > 1:
            blank = store.frames.shape[0] - 1
            wanted = jnp.where(wanted < named["first_row"][:, None, None], blank, wanted)
        return PickedTransitions(
            _taken(store.frames, wanted),
            numbers,
            None if store.legal is None else _taken(store.legal, rows),
        )

    def batch(self, picked: PickedTransitions, g_scale: Array) -> Batch:
        named = NUMBERS.unpack(picked.numbers)
        legal, next_legal = (None, None) if picked.legal is None else _pair(picked.legal)
        return Batch(
            **{name: named[name] for name in Batch._fields if name in named},
            g_scale=g_scale,
            weight=jnp.ones_like(named["g"]),
            legal=legal,
            next_legal=next_legal,
        )

    def views(
        self, online: Any, target: Any, picked: PickedTransitions, keys: Sequence[Array]
    ) -> Views:
        now, later, target_draw = keys
        obs, next_obs = map(self.join, _pair(picked.frames))
        return Views(
            now=online(obs, now),
            next=jax.lax.stop_gradient(online)(next_obs, later),
            target=target(next_obs, target_draw),
            target_at_s=Partial(_heads_at, target, obs, target_draw),
        )

    def heads(self, network: Any, picked: PickedTransitions, key: Array) -> Head:
        return network(self.join(_pair(picked.frames)[0]), key)

    def join(self, frames: Array) -> Array:
        """(B, stack, ..., c) to (B, ..., stack · c)."""
        if self.stack > 1:
            frames = jnp.moveaxis(frames.reshape(-1, self.stack, *self.frame_shape), 1, -2)
        return frames.reshape(-1, *self.obs_shape)

    def joined(self, stores: Sequence[TransitionStore]) -> TransitionStore:
        """Stores of several datasets as one, their items one after another."""
        moved, start = [], 0
        for store in stores:
            rows = NUMBERS.pack(row=start, next_row=start, first_row=start)
            moved.append(store.numbers + rows)
            start += len(store.frames)
        held = [store.frames for store in stores]
        if self.stack > 1:
            held.append(np.zeros((1, *held[0].shape[1:]), held[0].dtype))
        legal = None if not self.masked else np.concatenate([store.legal for store in stores])
        return TransitionStore(np.concatenate(held), legal, np.concatenate(moved))


def _taken(column: Array, index: Array) -> Array:
    return column.at[index].get(mode="promise_in_bounds")


def _pair(column: Any) -> tuple[Any, Any]:
    """Of s and of s'."""
    return column[:, 0], column[:, 1]


def _heads_at(target: Any, obs: Array, key: Array) -> Head:
    return target(obs, jax.random.fold_in(key, 1))  # `key` itself draws for s'


@dataclass(frozen=True)
class TransitionColumns:
    """The transitions of one dataset (the Columns protocol)."""

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
        numbers = self.numbers[index]
        row, next_row, first = (
            NUMBERS.column(numbers, name).astype(np.int64)
            for name in ("row", "next_row", "first_row")
        )
        return np.stack([row, next_row], axis=1), first

    def expect(self, ahead: ReadAhead, index: np.ndarray) -> None:
        rows, first = self._rows(index)
        ahead.expect(np.maximum(rows[:, 0] - self.stack + 1, first), rows[:, 1])

    def pick(self, index: np.ndarray) -> PickedTransitions:
        rows, first = self._rows(index)
        held = frames(self.dataset, rows.reshape(-1), np.repeat(first, 2), self.stack)
        legal = self.dataset.legal
        return PickedTransitions(
            held.reshape(len(rows), 2, *held.shape[1:]),
            self.numbers[index],
            None if legal is None else legal[rows],
        )

    def store(self) -> TransitionStore:
        return TransitionStore(*all_rows(self.dataset), self.numbers)


def row_bytes(data: Dataset) -> int:
    """Of one row as it is stored on a device: its frame, and its mask."""
    masks = 0 if data.legal is None else data.num_actions
    return seen(data, np.zeros(1, np.int64)).nbytes + masks


def all_rows(data: Dataset) -> tuple[np.ndarray, np.ndarray | None]:
    """Frames of all rows as a network sees them, and their masks."""
    rows = np.arange(len(data.action))
    return seen(data, rows), None if data.legal is None else data.legal[rows]


def transition_items(data: Dataset, stack: int) -> TransitionItems:
    """What a transition of this dataset is made of."""
    if stack > 1 and data.features is not None:
        raise ValueError(
            "stack joins frames, and this data has named columns, of which a policy takes one row "
            "at a time; leave --stack out, or log what came before as columns of its own"
        )
    return TransitionItems(
        frame_shape=frame_shape(data) if stack > 1 else input_shape(data, 1),
        stack=stack,
        actions=data.num_actions,
        masked=data.legal is not None,
        pixels=has_pixels(data),
    )


def has_pixels(data: Dataset) -> bool:
    """Whether observations are bytes, which networks read as 0 to 1."""
    return data.obs.dtype == np.uint8 and data.features is None


def transition_columns(
    data: Dataset, view: View, bootstrap: Bootstrap, stack: int
) -> TransitionColumns:
    """The transitions of a dataset that can be trained on."""
    found = transitions(data, view, bootstrap)
    if len(found.row) == 0:
        raise ValueError(
            "no transition can be trained on: every episode is a fragment without reward-to-go, or "
            "one truncated step without a next logged action"
        )
    numbers = NUMBERS.pack(**found._asdict(), first_row=first_rows(data)[found.row])
    return TransitionColumns(data, numbers, stack)
