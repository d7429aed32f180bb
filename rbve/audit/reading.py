"""Which observations an audit reads, and how: in chunks, and a sample beyond a gigabyte."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rbve.data.dataset import Dataset

_SCAN_BYTES = 1 << 30  # observations read in full up to here: seconds from any disk
CHUNK_BYTES = 1 << 24  # of observations held at once
STRETCHES = 64  # of a sample: long reads from disk, yet spread over the whole log
_FLAT_COLUMNS = 4096  # more numbers than this are not columns a person named


@dataclass(frozen=True)
class Reach:
    """The episodes whose observations are read."""

    episodes: np.ndarray  # (N,) ascending
    whole: bool  # all of them
    rows: np.ndarray | None  # (M,) their rows; None = all
    offsets: np.ndarray  # (N+1,) first row of each episode among those read


def row_bytes(dataset: Dataset) -> int:
    return dataset.obs.dtype.itemsize * max(1, int(np.prod(dataset.obs_shape)))


def reach(dataset: Dataset, seed: int, limit: int = _SCAN_BYTES) -> Reach:
    """All episodes if their observations fit the limit, else random stretches of episodes."""
    allowed = max(1, limit // row_bytes(dataset))
    total = len(dataset.action)
    if total <= allowed:
        return Reach(np.arange(dataset.num_episodes), True, None, np.asarray(dataset.offsets))
    rng = np.random.default_rng([seed, 0])
    chosen = np.zeros(dataset.num_episodes, bool)
    held = 0
    for start in rng.permutation(dataset.num_episodes):
        goal = dataset.offsets[start] + max(1, allowed // STRETCHES)
        stop = max(int(dataset.offsets.searchsorted(goal, side="right")) - 1, start + 1)
        fresh = np.flatnonzero(~chosen[start:stop]) + start
        held += int((dataset.offsets[fresh + 1] - dataset.offsets[fresh]).sum())
        if held > allowed and chosen.any():
            break
        chosen[fresh] = True
    episodes = np.flatnonzero(chosen)
    lengths = np.diff(dataset.offsets)[episodes]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.repeat(dataset.offsets[:-1][episodes] - offsets[:-1], lengths) + np.arange(
        offsets[-1]
    )
    return Reach(episodes, False, rows, offsets)


def chunks(dataset: Dataset, within: Reach) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(row numbers, observations) of the rows in reach, a chunk at a time."""
    count = int(within.offsets[-1])
    size = max(1, CHUNK_BYTES // row_bytes(dataset))
    for start in range(0, count, size):
        stop = min(start + size, count)
        if within.rows is None:
            yield np.arange(start, stop), np.asarray(dataset.obs[start:stop])
        else:
            rows = within.rows[start:stop]
            yield rows, np.asarray(dataset.obs[rows])


def without_observations(dataset: Dataset) -> Dataset:
    """The same log with one zero for every observation, so that nothing reads them by accident."""
    nothing = np.broadcast_to(np.uint8(0), (len(dataset.action), 1))
    return replace(dataset, obs=nothing, features=None)


def is_flat(dataset: Dataset) -> bool:
    """Columns with meanings of their own, as opposed to a board or a picture."""
    shape = dataset.obs_shape
    size = int(np.prod(shape))
    return size <= _FLAT_COLUMNS and sum(side > 1 for side in shape) <= 1


def column_names(dataset: Dataset) -> list[str]:
    if dataset.features is not None:
        return dataset.features.names
    return [f"column {index}" for index in range(int(np.prod(dataset.obs_shape)))]


def place(dataset: Dataset, row: int) -> str:
    """Where a row is, in words."""
    episode = int(np.searchsorted(dataset.offsets, row, side="right")) - 1
    return f"episode {episode}, step {row - int(dataset.offsets[episode])}"
