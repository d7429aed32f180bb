"""A trained policy's outputs on every row of a dataset, in blocks of one shape."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.inputs import first_rows, frames, input_shape, seen
from rbve.networks.recurrent import Seen
from rbve.policy.network import forward, recall
from rbve.policy.policy import Policy
from rbve.types import Head


class Blocks(NamedTuple):
    """What is computed at once; no further size is compiled."""

    rows: int = 4096
    episodes: int = 64  # side by side, with memory


_BLOCKS = Blocks()


class Outputs(NamedTuple):
    """Of R rows and A actions."""

    scores: np.ndarray  # (R, A) what the policy maximises; very low where illegal
    q: np.ndarray  # (R, A) Q(s, ·); of cloning its logits


def check_fit(policy: Policy, dataset: Dataset) -> None:
    """ValueError where a policy and a log do not speak of the same decisions."""
    if policy.actions != dataset.actions:
        raise ValueError(
            f"the policy knows the actions {_listed(policy.actions)} and the log holds "
            f"{_listed(dataset.actions)}; give the log that the policy was trained on, or one of "
            "the same actions"
        )
    own, theirs = policy.features, dataset.features
    if own is not None and theirs is not None and own.names != theirs.names:
        raise ValueError(
            f"the policy sees the columns {_listed(own.names)} and the log holds "
            f"{_listed(theirs.names)}; convert the log with the same columns"
        )
    if (own is None and theirs is not None) or (own is not None and theirs is None):
        raise ValueError("one of policy and log has named columns and the other has none")
    shape = _input_shape(policy, dataset)
    if shape != policy.obs_shape:
        raise ValueError(
            f"the policy sees observations of shape {policy.obs_shape} and the log holds {shape}"
        )


def _input_shape(policy: Policy, dataset: Dataset) -> tuple[int, ...]:
    if dataset.features is not None:
        return dataset.obs_shape
    return input_shape(dataset, policy.trained.stack)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f", ... ({len(names)})" if len(names) > 6 else "")


def outputs_on(
    policy: Policy,
    dataset: Dataset,
    rows: np.ndarray | None = None,
    blocks: Blocks = _BLOCKS,
) -> Outputs:
    """Scores and values in the `rows`, by default in all, final ones too. Legal actions are the
    log's."""
    check_fit(policy, dataset)
    if policy.memory:
        every = _recurrent(policy, dataset, blocks.episodes)
        return every if rows is None else Outputs(every.scores[rows], every.q[rows])
    chosen = np.arange(len(dataset.action)) if rows is None else rows
    return _feed_forward(policy, dataset, chosen, blocks.rows)


def _feed_forward(policy: Policy, dataset: Dataset, chosen: np.ndarray, size: int) -> Outputs:
    count = len(chosen)
    scores, values = (np.empty((count, dataset.num_actions), np.float32) for _ in range(2))
    firsts = first_rows(dataset)
    for start in range(0, count, size):
        rows = np.arange(start, min(start + size, count))
        padded = chosen[np.pad(rows, (0, size - len(rows)), mode="edge")]
        head = forward(policy.network, jnp.asarray(_obs(policy, dataset, padded, firsts[padded])))
        legal = None if dataset.legal is None else jnp.asarray(dataset.legal[padded])
        block = _read(policy, head, legal)
        scores[rows], values[rows] = (each[: len(rows)] for each in block)
    return Outputs(scores, values)


def _obs(policy: Policy, dataset: Dataset, rows: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    stack = policy.trained.stack
    if policy.features is not None:  # the policy's own encoding, not that of this log
        return np.asarray(policy.features.encode(dataset.obs[rows]), np.float32)
    if stack == 1:
        return seen(dataset, rows)
    stacked = frames(dataset, rows, firsts, stack)  # (N, stack, ..., c)
    if stacked.ndim == 4 and dataset.obs.dtype == np.uint8:  # gray frames without a channel
        stacked = stacked[..., None]
    joined = np.moveaxis(stacked, 1, -2)
    return joined.reshape(len(rows), *policy.obs_shape)


def _recurrent(policy: Policy, dataset: Dataset, size: int) -> Outputs:
    """Episode by episode, the memory fed with what the log did and received."""
    count, longest = len(dataset.action), int(np.diff(dataset.offsets).max())
    scores, values = (np.empty((count, dataset.num_actions), np.float32) for _ in range(2))
    first = first_rows(dataset) == np.arange(count)
    last_action = np.where(first, -1, np.roll(dataset.action, 1)).astype(np.int32)
    last_reward = np.where(first, 0.0, np.roll(dataset.reward, 1)).astype(np.float32)
    for start in range(0, dataset.num_episodes, size):
        episodes = np.arange(start, min(start + size, dataset.num_episodes))
        begin = np.pad(dataset.offsets[episodes], (0, size - len(episodes)), mode="edge")
        length = np.pad(np.diff(dataset.offsets)[episodes], (0, size - len(episodes)))
        step = np.arange(longest)[:, None]
        rows = np.minimum(begin + step, count - 1)  # (T, B)
        obs = _obs(policy, dataset, rows.reshape(-1), np.zeros(rows.size, np.int64))
        steps = Seen(
            jnp.asarray(obs.reshape(*rows.shape, *obs.shape[1:])),
            jnp.asarray(last_action[rows]),
            jnp.asarray(last_reward[rows]),
            jnp.asarray(first[rows]),
        )
        head, _ = recall(policy.network, steps, policy.network.start(size))
        legal = None if dataset.legal is None else jnp.asarray(dataset.legal[rows.reshape(-1)])
        inside = (step < length).reshape(-1)
        block = _read(policy, head, legal)
        scores[rows.reshape(-1)[inside]], values[rows.reshape(-1)[inside]] = (
            each[inside] for each in block
        )
    return Outputs(scores, values)


def _read(policy: Policy, head: Head, legal: Any) -> tuple[np.ndarray, np.ndarray]:
    head = policy.shown(head)  # a softmax of values is one of Q, not of rescaled Q
    scores = policy.algorithm.scores(head, legal, policy.config, policy.options)
    return tuple(map(np.asarray, jax.device_get((scores, head.q))))  # type: ignore
