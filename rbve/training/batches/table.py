"""The items all members draw from: on the device, or left on disk where they are too large.

Members with datasets of different sizes share one store, each with its offset and count. Items on
disk are picked by a thread (rbve/training/stream.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.transitions import Bootstrap, View
from rbve.training.batches.sequences import sequence_columns, sequence_items, sequence_plan
from rbve.training.batches.transitions import transition_columns, transition_items

IN_MEMORY = 1 << 30  # bytes of a store; larger ones stay on disk


@dataclass(frozen=True)
class Table:
    items: Any  # Items
    store: Any  # of all members' items, one after another; None = they stay on disk
    columns: tuple[Any, ...]  # Columns, one per member
    offset: np.ndarray  # (M,) int32, first item of each member
    count: np.ndarray  # (M,) int32, how many it has
    g_scale: np.ndarray  # (M,) float32, deviation of V̂ over the rows it trains on


def transition_table(
    datasets: Sequence[Dataset],
    view: View,
    bootstrap: Bootstrap,
    stack: int = 1,
    in_memory: bool | None = None,
) -> Table:
    """One table of transitions for all members; those with the same Dataset object share its rows.
    `in_memory` says whether the device holds the rows; None = if they take at most 1 GiB."""
    kinds = [transition_items(data, stack) for data in datasets]
    columns = partial(transition_columns, view=view, bootstrap=bootstrap, stack=stack)
    return _table(datasets, kinds, columns, in_memory)


def sequence_table(
    datasets: Sequence[Dataset],
    view: View,
    bootstrap: Bootstrap,
    sequence: int,
    burn_in: int,
    in_memory: bool | None = None,
) -> Table:
    """The same of sequences: windows of `sequence` steps, or with 0 whole episodes."""
    plan = sequence_plan(datasets, sequence, burn_in, view.n_step)
    kinds = [sequence_items(data, plan) for data in datasets]
    shape: dict[str, Any] = {"sequence": sequence, "plan": plan}
    columns = partial(sequence_columns, view=view, bootstrap=bootstrap, **shape)
    return _table(datasets, kinds, columns, in_memory)


def _table(
    datasets: Sequence[Dataset], kinds: Sequence[Any], columns: Any, in_memory: bool | None
) -> Table:
    if len(different := set(kinds)) != 1:
        raise ValueError(
            "datasets trained together need equal observations, actions and masks; got "
            + " and ".join(sorted(str(kind) for kind in different))
        )
    parts = {id(data): columns(data) for data in datasets}
    if in_memory is None:
        in_memory = sum(part.nbytes for part in parts.values()) <= IN_MEMORY
    starts = np.cumsum([0, *(part.count for part in parts.values())]).tolist()
    offset = dict(zip(parts, starts if in_memory else [0] * len(parts), strict=False))
    scale = {}  # NaN where no V̂ is known; float64: at 10M rows a float32 sum would lose digits
    for key, part in parts.items():
        known = part.g[~np.isnan(part.g)].astype(np.float64)
        scale[key] = float(known.std()) if len(known) else np.nan
    members = [id(data) for data in datasets]
    return Table(
        items=kinds[0],
        store=kinds[0].joined([part.store() for part in parts.values()]) if in_memory else None,
        columns=tuple(parts[key] for key in members),
        offset=np.array([offset[key] for key in members], np.int32),
        count=np.array([parts[key].count for key in members], np.int32),
        g_scale=np.array([scale[key] for key in members], np.float32),
    )
