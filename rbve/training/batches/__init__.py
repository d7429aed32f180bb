"""Batches: what an update draws, as transitions or as sequences of steps.

An item is what a draw picks: one transition (transitions.py), or for networks with memory one
sequence (sequences.py). Both have the same two faces. Items are static, frozen and hashable, so
that those of equal shapes compare equal; they have

    obs_shape, actions     the shape of an observation as the network sees it, how many actions
    rows                   of data in an item
    averaged               whether metrics are averaged over a batch: some entries may be padding
    blank(batch_size)      picked items of zeros, to trace programs with
    fetch(store, index)    picked items `index` (B,) of a store on the device
    batch(picked, g_scale)                 what a loss reads of the data
    views(online, target, picked, keys)    and of the networks; keys for now, next and target
    heads(network, picked, key)            the network's outputs for the states of the Batch alone
    joined(stores)         stores of several datasets as one, their items one after another

Columns are the items of one `dataset`, on the host; observations are read when items are picked:

    count, decisions       how many items there are, and decisions of an item, at most
    g                      V̂ of the decisions trained on
    nbytes                 of the store, about
    expect(ahead, index)   announce to a ReadAhead that these items will be picked
    pick(index)            items (B,) as arrays of the host
    store()                arrays from which `fetch` takes any of the items

A Table (table.py) holds the columns of all members, and what of them goes to the device.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.inputs import seen
from rbve.types import Array


class Picked(NamedTuple):
    """Some items, on the host or the device; (B,) or (K, B) leads."""

    frames: Any  # uint8 or float32: (B, 2, stack, ...) of s and s', of sequences (B, L, ...)
    numbers: Any  # (B, ...) int32, Packed
    legal: Any  # (B, 2, A) bool, of sequences (B, L, A); None without masks
    policy: Any = None  # (B, A) float32 at s', of sequences (B, L, A); None if none is evaluated


class Store(NamedTuple):
    """What items are fetched from."""

    frames: Any  # (R, ...); of stacked transitions a frame of zeros comes last
    legal: Any  # (R, A) bool; None without masks
    numbers: Any  # int32, Packed: of each transition, of each row of sequences
    items: Any = None  # of sequences (N, 3) int32: first row, first trained on, after the last
    policy: Any = None  # (R, A) float32; None if none is evaluated


class Packed:
    """Numbers by name, side by side in one array, so that drawing rows is one gather.

    Columns are int32, float32 or bool. The array holds 32-bit words: integers as they are, floats
    by their bits, so both are exact.
    """

    def __init__(self, **types: type) -> None:
        self._types = {name: np.dtype(each) for name, each in types.items()}

    def __len__(self) -> int:
        return len(self._types)

    def place(self, name: str) -> int:
        """Of a column in the array."""
        return list(self._types).index(name)

    def pack(self, **columns: Any) -> np.ndarray:
        """(N,) arrays or single numbers to (N, len) int32; columns left out are 0."""
        if unknown := columns.keys() - self._types.keys():
            raise KeyError(f"no such columns: {sorted(unknown)}")
        count = max(np.size(column) for column in columns.values())
        packed = np.zeros((count, len(self)), np.int32)
        for place, (name, kind) in enumerate(self._types.items()):
            values = np.asarray(columns.get(name, 0)).astype(kind)
            packed[:, place] = values.view(np.int32) if kind == np.float32 else values
        return packed

    def unpack(self, packed: Array) -> dict[str, Array]:
        """(..., len) to arrays (...) by name."""
        columns: dict[str, Array] = {}
        for place, (name, kind) in enumerate(self._types.items()):
            words = packed[..., place]
            if kind == np.float32:
                words = jax.lax.bitcast_convert_type(words, jnp.float32)
            columns[name] = words != 0 if kind == np.bool_ else words
        return columns

    def column(self, packed: np.ndarray, name: str) -> np.ndarray:
        """One column (...) on the host."""
        place, kind = self.place(name), self._types[name]
        values = np.ascontiguousarray(packed[..., place])
        return values.view(np.float32) if kind == np.float32 else values.astype(kind)


def row_bytes(data: Dataset) -> int:
    """Of one row as it is stored on a device: its frame, and its mask."""
    masks = 0 if data.legal is None else data.num_actions
    policy = 0 if data.policy is None else 4 * data.num_actions
    return seen(data, np.zeros(1, np.int64)).nbytes + masks + policy


def all_rows(data: Dataset) -> tuple[np.ndarray, np.ndarray | None]:
    """Frames of all rows as a network sees them, and their masks."""
    rows = np.arange(len(data.action))
    return seen(data, rows), None if data.legal is None else data.legal[rows]


def has_pixels(data: Dataset) -> bool:
    """Whether observations are bytes, which networks read as 0 to 1."""
    return data.obs.dtype == np.uint8 and data.features is None
