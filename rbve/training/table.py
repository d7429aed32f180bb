"""The rows trained on: packed into one matrix in memory, or left on disk where they are too many.

Members with datasets of different sizes share one matrix, each with its offset and count, so that
sampling a batch is one gather. Rows on disk are picked by a thread (rbve/training/stream.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.inputs import first_rows, frame_shape, frames, input_shape
from rbve.data.readahead import ReadAhead
from rbve.data.transitions import Bootstrap, Transitions, View, transitions
from rbve.training import sequences
from rbve.training.layout import G, Layout, Picked
from rbve.training.sequences import SequenceColumns, SequenceLayout, SequenceRows

MAX_EXACT_ACTION = 1 << 24  # action ids beyond are not exact in float32
# Bytes of packed rows up to which they are held in memory. A packed pixel takes four bytes, and
# again in every observation its frame belongs to; columns hold it once.
IN_MEMORY = 1 << 30
PIXELS_IN_MEMORY = 1 << 24


@dataclass(frozen=True)
class Columns:
    """The transitions of one dataset; observations are read when rows are picked."""

    dataset: Dataset
    row: np.ndarray  # (N,) int64
    next_row: np.ndarray  # (N,) int64
    scalars: np.ndarray  # (N, SCALARS) float32
    starts: np.ndarray  # (R,) int64, first row of each row's episode
    stack: int

    rows_each = 1  # decisions of an item

    @property
    def count(self) -> int:
        return len(self.row)

    def expect(self, ahead: ReadAhead, index: np.ndarray) -> None:
        """Say that these transitions will be picked."""
        row, next_row = self.row[index], self.next_row[index]
        ahead.expect(np.maximum(row - self.stack + 1, self.starts[row]), next_row)

    def pick(self, index: np.ndarray) -> Picked:
        """The transitions (B,) asked for, as arrays of the host."""
        row, next_row = self.row[index], self.next_row[index]
        legal = self.dataset.legal
        return Picked(
            frames(self.dataset, row, self.starts[row], self.stack),
            frames(self.dataset, next_row, self.starts[next_row], self.stack),
            self.scalars[index],
            None if legal is None else np.concatenate([legal[row], legal[next_row]], axis=1),
        )


@dataclass(frozen=True)
class Table:
    """What members draw from: rows, or sequences of them for networks with memory."""

    layout: Layout | SequenceLayout
    # (N, width) float32, all members one after another; None = on disk
    rows: np.ndarray | SequenceRows | None
    columns: tuple[Columns | SequenceColumns, ...]  # one per member
    offset: np.ndarray  # (M,) int32, first row, or sequence, of each member
    count: np.ndarray  # (M,) int32, how many it has
    g_scale: np.ndarray  # (M,) float32


def pack(
    datasets: Sequence[Dataset],
    view: View,
    bootstrap: Bootstrap,
    stack: int = 1,
    in_memory: bool | None = None,
) -> Table:
    """One table for all members; members with the same Dataset object share its rows.

    `in_memory` defaults to whether the packed rows are few enough.
    """
    layout = one_layout([layout_of(data, stack) for data in datasets])
    parts = {id(data): columns_of(data, view, bootstrap, stack) for data in datasets}
    counts = {key: len(part.row) for key, part in parts.items()}
    total = sum(counts.values())
    if in_memory is None:
        most = PIXELS_IN_MEMORY if layout.pixels else IN_MEMORY
        in_memory = total * layout.width * 4 <= most
    members = [id(data) for data in datasets]
    starts = np.cumsum([0, *counts.values()])
    return Table(
        layout=layout,
        rows=pack_rows(list(parts.values()), layout, total) if in_memory else None,
        columns=tuple(parts[key] for key in members),
        offset=offsets(members, list(parts), starts if in_memory else None),
        count=np.array([counts[key] for key in members], np.int32),
        g_scale=scales(members, {key: part.scalars[:, G] for key, part in parts.items()}),
    )


def pack_sequences(
    datasets: Sequence[Dataset],
    view: View,
    bootstrap: Bootstrap,
    sequence: int,
    burn_in: int,
    in_memory: bool | None = None,
) -> Table:
    """The same for networks with memory; rows are held once, however many sequences hold them."""
    plan = sequences.plan_for(datasets, sequence, burn_in, view.n_step)
    layout = one_layout([sequences.layout_of(data, plan) for data in datasets])
    parts = {
        id(data): sequences.columns_of(data, view, bootstrap, sequence, plan) for data in datasets
    }
    if in_memory is None:
        in_memory = sum(part.nbytes for part in parts.values()) <= IN_MEMORY
    members = [id(data) for data in datasets]
    rows, starts = None, None
    if in_memory:
        rows, starts = sequences.join([part.in_memory() for part in parts.values()])
    g = {
        key: part.scalars[part.scalars[:, sequences.WEIGHT] > 0, sequences.G]
        for key, part in parts.items()
    }
    return Table(
        layout=layout,
        rows=rows,
        columns=tuple(parts[key] for key in members),
        offset=offsets(members, list(parts), starts),
        count=np.array([len(parts[key].items) for key in members], np.int32),
        g_scale=scales(members, g),
    )


def offsets(members: Sequence[int], parts: Sequence[int], starts: Any) -> np.ndarray:
    """Where each member's part begins; everywhere 0 where parts stay on disk."""
    if starts is None:
        return np.zeros(len(members), np.int32)
    return np.array([starts[parts.index(key)] for key in members], np.int32)


def scales(members: Sequence[int], g: dict[int, np.ndarray]) -> np.ndarray:
    """Deviation of V̂ over the rows each member trains on."""
    # float64: at 10M rows a float32 sum would lose digits. NaN: V̂ is known in no row.
    known = {key: values[~np.isnan(values)].astype(np.float64) for key, values in g.items()}
    found = {key: values.std() if len(values) else np.nan for key, values in known.items()}
    return np.array([found[key] for key in members], np.float32)


def layout_of(data: Dataset, stack: int) -> Layout:
    if stack > 1 and data.features is not None:
        raise ValueError(
            "stack joins frames, and this data has named columns, of which a policy takes one row "
            "at a time; leave --stack out, or log what came before as columns of its own"
        )
    return Layout(
        frame_shape=frame_shape(data) if stack > 1 else input_shape(data, 1),
        stack=stack,
        actions=data.num_actions,
        masked=data.legal is not None,
        pixels=data.obs.dtype == np.uint8 and data.features is None,
    )


def one_layout(layouts: Sequence[Any]) -> Any:
    different = set(layouts)
    if len(different) != 1:
        raise ValueError(
            "datasets trained together need equal observations, actions and masks; got "
            + " and ".join(sorted(str(layout) for layout in different))
        )
    if layouts[0].actions > MAX_EXACT_ACTION:
        raise ValueError(f"{layouts[0].actions} actions; at most {MAX_EXACT_ACTION} are supported")
    return layouts[0]


def columns_of(data: Dataset, view: View, bootstrap: Bootstrap, stack: int) -> Columns:
    found = transitions(data, view, bootstrap)
    if len(found.row) == 0:
        raise ValueError(
            "no transition can be trained on: every episode is a fragment without reward-to-go, or "
            "one truncated step without a next logged action"
        )
    return Columns(data, found.row, found.next_row, scalars(found), first_rows(data), stack)


def scalars(found: Transitions) -> np.ndarray:
    """(N, SCALARS) in the order Layout.batch() reads them."""
    return np.stack(
        [
            found.action,
            found.reward,
            found.discount,
            found.next_action,
            found.has_next_action,
            found.g,
        ],
        axis=1,
        dtype=np.float32,
    )


def pack_rows(parts: Sequence[Columns], layout: Layout, total: int) -> np.ndarray:
    rows = np.empty((total, layout.width), np.float32)
    start = 0
    for part in parts:
        picked = part.pick(np.arange(len(part.row)))
        column = 0
        for values in picked:
            if values is not None:
                flat = np.asarray(values).reshape(len(part.row), -1)
                rows[start : start + len(flat), column : column + flat.shape[1]] = flat
                column += flat.shape[1]
        start += len(part.row)
    return rows
