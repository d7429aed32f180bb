"""Batches of sequences, for networks with memory.

A sequence is a stretch of a dataset's rows: whole episodes, as many as fit into the length of the
longest, each in exactly one sequence; or windows, of which each row is trained on in exactly one,
after up to `burn_in` rows that only warm the memory up. Memory is emptied where an episode begins,
so rows before it do no harm; rows that are not trained on weigh 0.
"""

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
from rbve.training.batches import Packed, Picked, Store, all_rows, has_pixels, row_bytes
from rbve.training.batches.steps import Devices, Steps, remembered, views_of_steps
from rbve.types import Array, Batch, Head, Views

NUMBERS = Packed(
    last_action=np.int32,  # −1 = none
    last_reward=np.float32,
    first=np.bool_,  # an episode begins
    # Of the transition that begins here, zeros where none does:
    action=np.int32,
    reward=np.float32,
    discount=np.float32,
    steps=np.int32,  # rows to its bootstrap state
    next_action=np.int32,
    has_next_action=np.bool_,
    g=np.float32,
    weight=np.float32,  # 1: there is one to train on
)
_WEIGHT = NUMBERS.place("weight")


class SequencePlan(NamedTuple):
    """The shape of sequences; all of them are equally long."""

    burn_in: int  # rows that warm the memory up
    train: int  # rows trained on, or padding
    tail: int  # rows to bootstrap from

    @property
    def rows(self) -> int:
        return self.burn_in + self.train + self.tail


@dataclass(frozen=True)
class SequenceItems:
    """Sequences of one shape (Items). Batches are flat, time before batch."""

    obs_shape: tuple[int, ...]
    actions: int
    masked: bool
    pixels: bool  # frames are bytes
    plan: SequencePlan
    evaluates: bool = False  # rows hold what a policy does
    devices: Devices = ()

    averaged = True

    @property
    def rows(self) -> int:
        return self.plan.rows

    def blank(self, batch_size: int) -> Picked:
        lead = (batch_size, self.rows)
        return Picked(
            jnp.zeros((*lead, *self.obs_shape), jnp.uint8 if self.pixels else jnp.float32),
            jnp.zeros((*lead, len(NUMBERS)), jnp.int32),
            jnp.ones((*lead, self.actions), bool) if self.masked else None,
            jnp.zeros((*lead, self.actions)) if self.evaluates else None,
        )

    def fetch(self, store: Store, index: Array) -> Picked:
        first, low, high = store.items.at[index].get(mode="promise_in_bounds").T
        row = first[:, None] + jnp.arange(self.rows)
        own = (row >= low[:, None]) & (row < high[:, None])

        def slices(column: Array) -> Array:
            return jax.vmap(lambda row: jax.lax.dynamic_slice_in_dim(column, row, self.rows))(first)

        picked = jax.tree.map(
            slices, Picked(store.frames, store.numbers, store.legal, store.policy)
        )
        # Among the numbers, not beside them: XLA sums in an order that depends on what it fuses
        # with the sum, and a weight computed there would change the last bit of losses.
        return picked._replace(numbers=picked.numbers.at[..., _WEIGHT].multiply(own))

    def _trained(self, column: Array) -> Array:
        """Rows of a column (L, B) that are trained on, or padding."""
        return column[self.plan.burn_in : self.plan.burn_in + self.plan.train]

    def _steps(self, picked: Picked) -> tuple[Steps, dict[str, Array]]:
        named = {name: column.T for name, column in NUMBERS.unpack(picked.numbers).items()}
        here = self.plan.burn_in + jnp.arange(self.plan.train)
        # Only rows of no weight, of an episode that did not fit, point beyond the end.
        later = jnp.minimum(here[:, None] + self._trained(named["steps"]), self.rows - 1)
        obs = jnp.moveaxis(picked.frames, 0, 1)
        seen = Seen(obs, named["last_action"], named["last_reward"], named["first"])
        return Steps(seen, later), named

    def batch(self, picked: Picked, g_scale: Array) -> Batch:
        steps, named = self._steps(picked)
        trains = self._trained(named["weight"]) > 0
        goes_on = trains & ~self._trained(named["first"])  # from the step before
        follows = trains & jnp.pad(goes_on[1:], ((0, 1), (0, 0)))
        legal = next_legal = next_policy = None
        if picked.legal is not None:
            masks = jnp.moveaxis(picked.legal, 0, 1)  # (L, B, A)
            legal = self._trained(masks).reshape(-1, self.actions)
            next_legal = self._bootstrap_rows(masks, steps)
        if picked.policy is not None:
            next_policy = self._bootstrap_rows(jnp.moveaxis(picked.policy, 0, 1), steps)
        known = [name for name in Batch._fields if name in named]
        return Batch(
            **{name: self._trained(named[name]).reshape(-1) for name in known},
            g_scale=g_scale,
            legal=legal,
            next_legal=next_legal,
            next_policy=next_policy,
            follows=follows,
        )

    def _bootstrap_rows(self, column: Array, steps: Steps) -> Array:
        """Of a column (L, B, A) those of the bootstrap steps, flat (T · B, A)."""
        later = jnp.take_along_axis(column, steps.later[..., None], axis=0)
        return later.reshape(-1, self.actions)

    def views(self, online: Any, target: Any, picked: Picked, keys: Sequence[Array]) -> Views:
        steps = self._steps(picked)[0]
        return views_of_steps(online, target, steps, self.plan.burn_in, keys, devices=self.devices)

    def heads(self, network: Any, picked: Picked, key: Array) -> Head:
        seen, later = self._steps(picked)[0]
        return network.heads(remembered(network, seen, self.plan.burn_in)[: len(later)], key)

    def joined(self, stores: Sequence[Store]) -> Store:
        moved, start = [], 0
        for store in stores:
            moved.append(store._replace(items=store.items + np.int32(start)))
            start += len(store.numbers)
        return jax.tree.map(lambda *columns: np.concatenate(columns), *moved)


@dataclass(frozen=True)
class _SequenceColumns:
    dataset: Dataset
    items: np.ndarray  # (N, 3) int64, as in a Store; the first row may lie before the data
    numbers: np.ndarray  # (R, len(NUMBERS)) int32
    plan: SequencePlan

    @property
    def decisions(self) -> int:
        return self.plan.train

    @property
    def count(self) -> int:
        return len(self.items)

    @property
    def g(self) -> np.ndarray:
        return NUMBERS.column(self.numbers, "g")[NUMBERS.column(self.numbers, "weight") > 0]

    @property
    def nbytes(self) -> int:
        one = row_bytes(self.dataset) + self.numbers.itemsize * len(NUMBERS)
        return one * (len(self.numbers) + self.plan.rows)

    def rows_of(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows (B, L) of sequences, kept within the data, and whether each may be trained on."""
        first, low, high = (column[:, None] for column in self.items[index].T)
        row = first + np.arange(self.plan.rows)
        return np.clip(row, 0, len(self.numbers) - 1), (row >= low) & (row < high)

    def expect(self, ahead: ReadAhead, index: np.ndarray) -> None:
        rows = self.rows_of(index)[0]
        ahead.expect(rows[:, 0], rows[:, -1])

    def pick(self, index: np.ndarray) -> Picked:
        rows, own = self.rows_of(index)
        frames = seen(self.dataset, rows.reshape(-1))
        legal, policy = self.dataset.legal, self.dataset.policy
        numbers = self.numbers[rows]
        numbers[..., _WEIGHT] *= own
        return Picked(
            frames.reshape(*rows.shape, *frames.shape[1:]),
            numbers,
            None if legal is None else legal[rows],
            None if policy is None else policy[rows],
        )

    def store(self) -> Store:
        """All rows, padded so that no sequence reaches beyond them."""
        before, after = self.plan.burn_in, self.plan.rows

        def padded(column: np.ndarray) -> np.ndarray:
            return np.pad(column, [(before, after), *[(0, 0)] * (column.ndim - 1)], mode="edge")

        columns = (*all_rows(self.dataset), self.numbers, self.dataset.policy)
        frames, legal, numbers, policy = jax.tree.map(padded, columns)
        return Store(frames, legal, numbers, (self.items + before).astype(np.int32), policy)


def sequence_plan(
    datasets: Sequence[Dataset], sequence: int, burn_in: int, n_step: int
) -> SequencePlan:
    """`sequence` rows a window, or with 0 whole episodes: the longest decides."""
    if not sequence:
        return SequencePlan(0, max(map(longest_episode, datasets)), 0)
    rows = max(len(data.action) for data in datasets)
    if max(sequence, burn_in) > rows:
        raise ValueError(
            f"windows of {sequence:,} steps after {burn_in:,} to warm up do not fit the data, "
            f"{rows:,} rows in all; give less, or leave --sequence out for whole episodes"
        )
    return SequencePlan(burn_in, sequence, n_step)


def longest_episode(data: Dataset) -> int:
    """In rows."""
    return int(np.diff(data.offsets).max())


def sequence_items(data: Dataset, plan: SequencePlan) -> SequenceItems:
    if not data.complete.all():
        raise ValueError(
            "a network with memory learns from whole episodes, and this data holds fragments of "
            "episodes; train without memory"
        )
    masked, evaluates = data.legal is not None, data.policy is not None
    shape, pixels = input_shape(data, 1), has_pixels(data)
    return SequenceItems(shape, data.num_actions, masked, pixels, plan, evaluates)


def sequence_columns(
    data: Dataset, view: View, bootstrap: Bootstrap, sequence: int, plan: SequencePlan
) -> _SequenceColumns:
    """The sequences of a dataset that hold something to train on."""
    first = first_rows(data) == np.arange(len(data.action))
    columns = transitions(data, view, bootstrap)._asdict()
    row, next_row = columns.pop("row"), columns.pop("next_row")
    numbers = NUMBERS.pack(
        last_action=np.where(first, -1, np.roll(data.action, 1)),
        last_reward=np.where(first, 0, np.roll(data.reward, 1)),
        first=first,
    )
    numbers[row] += NUMBERS.pack(**columns, steps=next_row - row, weight=1)
    trains = NUMBERS.column(numbers, "weight") > 0
    if not trains.any():
        raise ValueError(
            "no transition can be trained on: every episode is one truncated step without a next "
            "logged action"
        )
    if sequence:
        low = np.arange(0, len(numbers), plan.train)
        high = np.minimum(low + plan.train, len(numbers))
        items = np.stack([low - plan.burn_in, low, high], axis=1)
    else:  # by its own longest episode: beside data with a longer one, they stay the same
        items = packs(data.offsets, longest_episode(data))
    # A stretch whose every row weighs nothing would make an empty batch.
    total = np.concatenate([[0], np.cumsum(trains, dtype=np.int64)])
    return _SequenceColumns(data, items[total[items[:, 2]] > total[items[:, 1]]], numbers, plan)


def packs(offsets: np.ndarray, longest: int) -> np.ndarray:
    """Items (N, 3) of neighbouring episodes, as many together as fit."""
    items = []
    first = int(offsets[0])
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        if stop - first > longest:
            items.append((first, first, start))
            first = start
    return np.array([*items, (first, first, int(offsets[-1]))], np.int64)
