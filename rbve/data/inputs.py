"""What a network sees of a row: raw columns encoded, frames stacked, pixels left as bytes."""

import numpy as np

from rbve.data.dataset import Dataset


def input_shape(dataset: Dataset, stack: int) -> tuple[int, ...]:
    """Of one observation as the network sees it. Frames are joined along their last axis."""
    if dataset.features is not None:
        return (dataset.features.size,)
    if stack == 1:
        return dataset.obs_shape
    *outer, last = frame_shape(dataset) or (1,)
    return (*outer, last * stack)


def frame_shape(dataset: Dataset) -> tuple[int, ...]:
    """Of one frame to be stacked; gray images have a channel, though the data may leave it out."""
    if dataset.obs.dtype == np.uint8 and len(dataset.obs_shape) == 2:
        return (*dataset.obs_shape, 1)
    return dataset.obs_shape


def network_input(obs: np.ndarray) -> np.ndarray:
    """Bytes stay bytes, which networks read as pixels; every other number is a float32."""
    return obs if obs.dtype == np.uint8 else np.asarray(obs, np.float32)


def first_rows(dataset: Dataset) -> np.ndarray:
    """(R,) int64, the first row of every row's episode."""
    return np.repeat(dataset.offsets[:-1], np.diff(dataset.offsets))


def frames(dataset: Dataset, rows: np.ndarray, starts: np.ndarray, stack: int) -> np.ndarray:
    """(N, stack, ...) of the rows, own frame last; zeros before `starts`, their episodes' first."""
    if stack == 1:
        return seen(dataset, rows)[:, None]
    chosen = rows[:, None] + np.arange(1 - stack, 1)
    missing = chosen < starts[:, None]
    stacked = seen(dataset, np.maximum(chosen, starts[:, None]).reshape(-1))
    stacked = stacked.reshape(len(rows), stack, *stacked.shape[1:])
    stacked[missing] = 0
    return stacked


def seen(dataset: Dataset, rows: np.ndarray) -> np.ndarray:
    obs = dataset.obs[rows]
    return network_input(obs if dataset.features is None else dataset.features.encode(obs))
