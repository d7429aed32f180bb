"""Batches: what an update draws, as transitions or as sequences of steps.

An item is what a draw picks: one transition (transitions.py), or for networks with memory one
sequence (sequences.py). Both have the same two faces:

    Items      static: shapes, and the functions that turn picked items into what a loss reads
    Columns    of one dataset, on the host: how many items there are, and the arrays of some of them

A Table (table.py) holds the columns of all members, and what of them goes to the device.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.readahead import ReadAhead
from rbve.types import Array, Batch, Head, Tree, Views


class Items(Protocol):
    """One kind of item. Frozen and hashable: items of equal shapes compare equal.

    `picked` is a NamedTuple of arrays whose leading axis is the batch, made by `fetch` on the
    device or by `Columns.pick` on the host; only the kind itself looks inside.
    """

    @property
    def obs_shape(self) -> tuple[int, ...]:
        """Of one observation as the network sees it."""

    @property
    def actions(self) -> int: ...

    @property
    def rows(self) -> int:
        """Rows of data in an item."""

    def blank(self, batch_size: int) -> Any:
        """Picked items of zeros, to trace programs with."""

    def fetch(self, store: Tree, index: Array) -> Any:
        """Picked items `index` (B,) of a store on the device."""

    def batch(self, picked: Any, g_scale: Array) -> Batch:
        """What a loss reads of the data."""

    def views(self, online: Any, target: Any, picked: Any, keys: Sequence[Array]) -> Views:
        """What a loss reads of the networks; three keys, for now, next and target."""

    def heads(self, network: Any, picked: Any, key: Array) -> Head:
        """The network's outputs for the states of the Batch alone."""

    @property
    def averaged(self) -> bool:
        """Whether metrics are averaged over a batch at once: some entries may be padding."""


class Columns(Protocol):
    """The items of one dataset; observations are read when items are picked."""

    dataset: Dataset

    @property
    def count(self) -> int:
        """How many items there are."""

    @property
    def decisions(self) -> int:
        """Decisions of an item, at most."""

    @property
    def g(self) -> np.ndarray:
        """V̂ of the decisions trained on."""

    @property
    def nbytes(self) -> int:
        """Of the store, about."""

    def expect(self, ahead: ReadAhead, index: np.ndarray) -> None:
        """Announce that these items will be picked."""

    def pick(self, index: np.ndarray) -> Any:
        """Items (B,) as arrays of the host."""

    def store(self) -> Any:
        """Arrays from which `Items.fetch` takes any of the items."""
