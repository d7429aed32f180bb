"""A policy on episodes that did not train it: what metrics of held-out data are computed from."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rbve.audit.support import Regions
from rbve.data.dataset import Dataset
from rbve.data.inputs import first_rows
from rbve.data.transitions import View, reward_to_go
from rbve.evaluation.metric import HeldOut, evaluate_held_out
from rbve.policy import Policy
from rbve.policy.outputs import Blocks, outputs_on

_SAMPLE = 2048  # decisions: little beside the updates of an interval
_BLOCK = 512


class _Sample(NamedTuple):
    """Decisions of held-out episodes, the same at every interval."""

    dataset: Dataset  # with memory whole episodes, or how long ones begin
    rows: np.ndarray  # (N,) of that dataset
    g: np.ndarray  # (N,) as in HeldOut
    supported: np.ndarray  # (N, A)
    blocks: Blocks


@dataclass(frozen=True)
class HeldOutEpisodes:
    """Judges policies that were trained on `training` by the decisions of `episodes`."""

    episodes: Dataset
    training: Dataset
    view: View
    memory: bool  # whether the policies have one

    def figures(self, policy: Policy) -> dict[str, tuple[float, int]]:
        """By metric the value, and how many decisions it is of."""
        data, rows, g, supported, blocks = self._sample
        scores, q = outputs_on(policy, data, rows, blocks)
        case = HeldOut(
            action=data.action[rows],
            choice=np.argmax(scores, axis=1),
            g=g,
            scores=scores.astype(np.float64),
            q=q.astype(np.float64),
            legal=None if data.legal is None else np.asarray(data.legal[rows]),
            supported=supported,
            values=policy.algorithm.values,
        )
        return evaluate_held_out(case)

    @cached_property
    def _sample(self) -> _Sample:
        data = self.episodes
        whole = np.repeat(data.terminated & data.complete, np.diff(data.offsets))
        returns = reward_to_go(self.view.rewards(data), data.offsets, self.view.gamma)
        g = np.where(whole, returns, np.nan)
        if self.memory:
            held = _beginnings(data)
            data = _cut(data, held)
        else:
            held = np.arange(len(data.action))
        final = data.offsets[1:] - 1
        rows = np.setdiff1d(np.flatnonzero(data.action >= 0), final)
        if not self.memory and len(rows) > _SAMPLE:
            rows = rows[np.linspace(0, len(rows) - 1, _SAMPLE).astype(np.int64)]
        supported = Regions.of(self.training).supported(data, rows)
        return _Sample(data, rows, g[held[rows]], supported, Blocks(_BLOCK, data.num_episodes))


def _beginnings(data: Dataset) -> np.ndarray:
    """Rows of some episodes, spread over the data, each from its beginning on."""
    lengths = np.minimum(np.diff(data.offsets), _SAMPLE + 1)
    count = max(1, min(data.num_episodes, _SAMPLE // int(lengths.max())))
    chosen = np.linspace(0, data.num_episodes - 1, count).astype(np.int64)
    return np.concatenate([data.offsets[k] + np.arange(lengths[k]) for k in chosen])


def _cut(data: Dataset, rows: np.ndarray) -> Dataset:
    """These rows of `_beginnings`, in memory, as a dataset of networks' inputs."""
    first = np.flatnonzero(first_rows(data)[rows] == rows)
    chosen = np.searchsorted(data.offsets, rows[first], side="right") - 1
    return replace(
        data,
        obs=np.asarray(data.obs[rows]),
        action=data.action[rows],
        reward=data.reward[rows],
        legal=None if data.legal is None else np.asarray(data.legal[rows]),
        executed=None,
        propensity=None,
        policy=None,
        offsets=np.append(first, len(rows)),
        terminated=data.terminated[chosen],
        complete=data.complete[chosen],
        episode_return=data.episode_return[chosen],
        final_observed=None,
    )
