"""Which observations an audit reads: in chunks, or a sample; and decisions as a few numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from rbve.data.dataset import Dataset

_SCAN_BYTES = 1 << 30  # observations read in full up to here: seconds from any disk
CHUNK_BYTES = 1 << 24  # of observations held at once
STRETCHES = 64  # of a sample: long reads from disk, yet spread over the whole log
_FLAT_COLUMNS = 4096  # more numbers than this are not columns a person named
SAMPLE_ROWS = 200_000  # decisions looked at for cells and regressions
SAMPLE_BYTES = 1 << 28  # of observations behind them
FIT_ROWS = 20_000  # from which scales are taken
_NUMBERS = 64  # per state; more are projected at random onto so many
_SIDE = 12  # pictures are averaged down to about this many blocks a side

Encoder = Callable[[np.ndarray], np.ndarray]  # raw observations -> (n, ≤ NUMBERS) float64


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


@dataclass(frozen=True)
class Sample:
    rows: np.ndarray  # (N,) decisions, ascending
    states: np.ndarray  # (N, D) standardised
    whole: bool  # every decision of the dataset is in it


def decisions(dataset: Dataset, within: Reach) -> np.ndarray:
    """Rows in reach that hold a decision."""
    rows = np.arange(len(dataset.action)) if within.rows is None else within.rows
    final = np.zeros(len(rows), bool)
    final[within.offsets[1:] - 1] = True
    return rows[~final & (np.asarray(dataset.action[rows]) >= 0)]


def draw(dataset: Dataset, within: Reach, encode: Encoder, seed: int) -> Sample:
    rows = decisions(dataset, within)
    limit = max(1, min(SAMPLE_ROWS, SAMPLE_BYTES // row_bytes(dataset)))
    whole = within.whole and len(rows) <= limit
    if len(rows) > limit:
        rng = np.random.default_rng([seed, 1])
        rows = np.sort(rng.choice(rows, limit, replace=False))
    return Sample(rows, encoded(dataset, rows, encode), whole)


def encoded(dataset: Dataset, rows: np.ndarray, encode: Encoder) -> np.ndarray:
    size = max(1, CHUNK_BYTES // row_bytes(dataset))
    parts = [
        encode(np.asarray(dataset.obs[rows[start : start + size]]))
        for start in range(0, max(len(rows), 1), size)
    ]
    return np.concatenate(parts)


def fit_encoder(dataset: Dataset, within: Reach, seed: int) -> Encoder:
    """Standardised inputs of the network; wide ones at random onto fewer numbers."""
    rng = np.random.default_rng([seed, 2])
    rows = decisions(dataset, within)
    limit = max(1, min(FIT_ROWS, CHUNK_BYTES // row_bytes(dataset)))
    if len(rows) > limit:
        rows = np.sort(rng.choice(rows, limit, replace=False))
    seen = _inputs(dataset, np.asarray(dataset.obs[rows]))
    mean, deviation = seen.mean(axis=0), seen.std(axis=0)
    kept = deviation > 1e-9 * np.maximum(1, np.abs(mean))
    if not kept.any():
        kept[0] = True
    scale = np.where(deviation > 0, deviation, 1)[kept]
    mix = None
    if kept.sum() > _NUMBERS:
        mix = rng.normal(size=(int(kept.sum()), _NUMBERS)) / np.sqrt(_NUMBERS)

    def encode(raw: np.ndarray) -> np.ndarray:
        numbers = (_inputs(dataset, raw)[:, kept] - mean[kept]) / scale
        return numbers if mix is None else numbers @ mix

    return encode


def _inputs(dataset: Dataset, raw: np.ndarray) -> np.ndarray:
    """(n, D) float64; pictures averaged down, categories one-hot, what 32 bits do not hold 0."""
    if dataset.features is not None:
        values = dataset.features.encode(raw)
    else:
        values = smaller(raw.astype(np.float64))
    values = values.reshape(len(raw), -1).astype(np.float64)
    return np.where(np.abs(values) <= np.finfo(np.float32).max, values, 0.0)


def smaller(pictures: np.ndarray) -> np.ndarray:
    """Means over blocks of the two largest sides of pictures; other shapes as they are."""
    if pictures.ndim < 3:
        return pictures
    for axis in np.argsort(pictures.shape[1:], kind="stable")[-2:] + 1:
        block = pictures.shape[axis] // _SIDE
        if block > 1:
            length = pictures.shape[axis] // block * block
            cut = np.moveaxis(pictures, axis, -1)[..., :length]
            means = cut.reshape(*cut.shape[:-1], -1, block).mean(axis=-1)
            pictures = np.moveaxis(means, -1, axis)
    return pictures
