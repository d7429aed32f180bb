"""A Source: a dataset read part by part, so that none has to fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from rbve.data.dataset import Dataset

PART_BYTES = 1 << 26  # of a part, about


class Fault(NamedTuple):
    """Something wrong with the data that a reader met."""

    kind: str  # short, the same words each time: "unsorted time"
    text: str  # file, row or episode, what is wrong and what to do


OnFault = Callable[[Fault], None]


def refuse(fault: Fault) -> None:
    """What readers do by default. An audit collects faults instead and reads on."""
    raise ValueError(fault.text)


@dataclass
class Source:
    parts: Iterator[Dataset]  # whole episodes, in order; equal columns, actions and features
    total: int = 0  # size of the input, in what `position` counts; 0 = unknown
    position: Callable[[], int] = lambda: 0  # how much of it was read
    notes: list[str] = field(default_factory=list)  # what the user should know, not wrong in itself


def parts_of(dataset: Dataset, part_bytes: int = PART_BYTES) -> Source:
    """A Source of a dataset at hand; columns mapped from disk are read as parts are used."""
    row = sum(
        column.dtype.itemsize * max(1, column[:1].size)
        for column in (dataset.obs, dataset.legal)
        if column is not None
    )
    rows_at_once = max(1, part_bytes // row)
    read = 0

    def parts() -> Iterator[Dataset]:
        nonlocal read
        start = 0
        while start < dataset.num_episodes:
            limit = dataset.offsets[start] + rows_at_once
            stop = int(dataset.offsets.searchsorted(limit, side="right")) - 1
            stop = min(max(stop, start + 1), dataset.num_episodes)
            yield dataset.part(start, stop)
            read = int(dataset.offsets[stop])
            start = stop

    return Source(parts(), len(dataset.action), lambda: read)
