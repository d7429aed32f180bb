"""Which observations an audit reads: in chunks, or a sample; and decisions as a few numbers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from rbve.data.dataset import Dataset

_SCAN_BYTES = 1 << 30  # observations read in full up to here: seconds from any disk
CHUNK_BYTES = 1 << 24  # of observations held at once
STRETCHES = 64  # of a sample: long reads from disk, yet spread over the whole log
SAMPLE_ROWS = 200_000  # decisions looked at for cells and regressions
SAMPLE_BYTES = 1 << 28  # of observations behind them
_FIT_ROWS = 20_000  # from which scales are taken
_NUMBERS = 64  # per state; more are projected at random onto so many
_SIDE = 12  # pictures are averaged down to about this many blocks a side

Encoder = Callable[[np.ndarray], np.ndarray]  # raw observations -> (n, ≤ NUMBERS) float64


@dataclass(frozen=True)
class Reach:
    """The episodes whose observations are read."""

    episodes: np.ndarray  # (N,) ascending
    whole: bool  # all of them
    rows: np.ndarray  # (M,) their rows
    offsets: np.ndarray  # (N+1,) first row of each episode among those read


@dataclass(frozen=True)
class Sample:
    rows: np.ndarray  # (N,) decisions, ascending
    states: np.ndarray  # (N, D) standardised
    whole: bool  # every decision of the dataset is in it


def row_bytes(dataset: Dataset) -> int:
    return dataset.obs.dtype.itemsize * max(1, int(np.prod(dataset.obs_shape)))


def reach(dataset: Dataset, seed: int, limit: int = _SCAN_BYTES) -> Reach:
    """All episodes if their observations fit the limit, else random stretches of episodes."""
    allowed = max(1, limit // row_bytes(dataset))
    whole = len(dataset.action) <= allowed
    chosen, held = np.full(dataset.num_episodes, whole), 0
    order = np.random.default_rng([seed, 0]).permutation(dataset.num_episodes)
    for start in [] if whole else order:
        goal = dataset.offsets[start] + max(1, allowed // STRETCHES)
        stop = max(int(dataset.offsets.searchsorted(goal, side="right")) - 1, start + 1)
        fresh = np.flatnonzero(~chosen[start:stop]) + start
        held += int((dataset.offsets[fresh + 1] - dataset.offsets[fresh]).sum())
        if held > allowed and chosen.any():
            break
        chosen[fresh] = True
    lengths = np.diff(dataset.offsets)
    offsets = np.concatenate([[0], np.cumsum(lengths[chosen])])
    return Reach(np.flatnonzero(chosen), whole, np.flatnonzero(np.repeat(chosen, lengths)), offsets)


def chunks(dataset: Dataset, rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(row numbers, observations) of these rows, a chunk at a time."""
    size = max(1, CHUNK_BYTES // row_bytes(dataset))
    for start in range(0, max(len(rows), 1), size):
        part = rows[start : start + size]
        yield part, np.asarray(dataset.obs[part])


def without_observations(dataset: Dataset) -> Dataset:
    """The same log with one zero for every observation, so that nothing reads them by accident."""
    nothing = np.broadcast_to(np.uint8(0), (len(dataset.action), 1))
    return replace(dataset, obs=nothing, features=None)


def place(dataset: Dataset, row: int) -> str:
    """Where a row is, in words."""
    episode = int(np.searchsorted(dataset.offsets, row, side="right")) - 1
    return f"episode {episode}, step {row - int(dataset.offsets[episode])}"


def rows_at(count: int, *rows: np.ndarray) -> np.ndarray:
    """(count,) bool, true at these rows."""
    mask = np.zeros(count, bool)
    for each in rows:
        mask[each] = True
    return mask


def _decisions(
    dataset: Dataset, within: Reach, limit: int, rng: np.random.Generator
) -> tuple[np.ndarray, bool]:
    """Rows in reach that hold a decision, and whether these are all; at random if too many."""
    rows = within.rows
    final = rows_at(len(rows), within.offsets[1:] - 1)
    rows = rows[~final & (np.asarray(dataset.action[rows]) >= 0)]
    if len(rows) <= limit:
        return rows, within.whole
    return np.sort(rng.choice(rows, limit, replace=False)), False


def draw(dataset: Dataset, within: Reach, encode: Encoder, seed: int) -> Sample:
    limit = max(1, min(SAMPLE_ROWS, SAMPLE_BYTES // row_bytes(dataset)))
    rows, whole = _decisions(dataset, within, limit, np.random.default_rng([seed, 1]))
    return Sample(rows, encoded(dataset, rows, encode), whole)


def encoded(dataset: Dataset, rows: np.ndarray, encode: Encoder) -> np.ndarray:
    return np.concatenate([encode(raw) for _, raw in chunks(dataset, rows)])


def fit_encoder(dataset: Dataset, within: Reach, seed: int) -> Encoder:
    """Standardised inputs of the network; wide ones at random onto fewer numbers."""
    rng = np.random.default_rng([seed, 2])
    limit = max(1, min(_FIT_ROWS, CHUNK_BYTES // row_bytes(dataset)))
    rows, _ = _decisions(dataset, within, limit, rng)
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
    features = dataset.features
    values = smaller(raw.astype(np.float64)) if features is None else features.encode(raw)
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
