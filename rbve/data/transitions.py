"""Transition columns: discount, next logged action, V̂ and n-step sums, computed here and only here.

They come from whole episodes, before any subsampling of transitions, for the γ and n asked for at
training. Where an algorithm bootstraps decides which rows exist:

    state  from the observation n steps on, the final one of a truncated episode too, unless the
           log lacks it: then from the last one known, and the last decision is dropped (DDQN)
    pair   from the logged pair (s', a') n steps on; at a truncation from the last logged pair,
           so the last decision of a truncated episode is dropped (BVE)
    return no bootstrap, V̂ is the target: decisions of fragments, which have none, are dropped (MC)
    none   no bootstrap: every logged decision trains (BC)
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from rbve.data.dataset import Dataset

Bootstrap = Literal["state", "pair", "return", "none"]


@dataclass(frozen=True)
class View:
    """How a Dataset is read; never stored with it.

    Attributes:
        gamma: Discount per step (the paper's bsuite and Atari value).
        n_step: Window of summed rewards; 0 = 1, with memory 5 (R2D2).
        clip_rewards: Clip rewards to [-1, 1] (Atari).
    """

    gamma: float = 0.99
    n_step: int = 1
    clip_rewards: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.gamma <= 1:
            raise ValueError(f"gamma must lie in [0, 1]; got {self.gamma}")
        if self.n_step is not None and self.n_step < 1:  # None: not yet known (rbve/spec.py)
            raise ValueError(f"n_step must be at least 1; got {self.n_step}")

    def rewards(self, dataset: Dataset) -> np.ndarray:
        return np.clip(dataset.reward, -1, 1) if self.clip_rewards else dataset.reward


class Transitions(NamedTuple):
    """One entry per row trained on. `row` and `next_row` index the dataset's columns."""

    row: np.ndarray  # (N,) int64
    next_row: np.ndarray  # (N,) int64, the bootstrap state
    action: np.ndarray  # (N,) int32
    reward: np.ndarray  # (N,) float32
    discount: np.ndarray  # (N,) float32
    next_action: np.ndarray  # (N,) int32, 0 where there is none
    has_next_action: np.ndarray  # (N,) bool
    g: np.ndarray  # (N,) float32, V̂; NaN where it is not known


def reward_to_go(rewards: np.ndarray, offsets: np.ndarray, gamma: float) -> np.ndarray:
    """V̂ of every row: Σ_k γ^k r_{t+k} to the end of its episode, in float64."""
    result = np.array(rewards, dtype=np.float64)
    lengths = np.diff(offsets)
    # All episodes at once, from their last rows backwards; longest first, so that those
    # still running are a prefix.
    order = np.argsort(-lengths, kind="stable")
    last = offsets[1:][order] - 1
    lengths = lengths[order]
    alive = len(order)
    for back in range(1, int(lengths[0]) if alive else 0):
        while alive and lengths[alive - 1] <= back:
            alive -= 1
        rows = last[:alive] - back
        result[rows] += gamma * result[rows + 1]
    return result


def transitions(dataset: Dataset, view: View, bootstrap: Bootstrap = "state") -> Transitions:
    if bootstrap not in get_args(Bootstrap):
        raise ValueError(f"bootstrap must be state, pair, return or none; got {bootstrap!r}")
    rewards = view.rewards(dataset)
    g = reward_to_go(rewards, dataset.offsets, view.gamma)
    rows_per_episode = np.diff(dataset.offsets)
    # A fragment's reward-to-go is unknown; its episode's return stands in. NaN: neither is known.
    complete = np.repeat(dataset.complete, rows_per_episode)
    g = np.where(complete, g, np.repeat(dataset.episode_return, rows_per_episode))

    final_row = np.repeat(dataset.offsets[1:] - 1, rows_per_episode)
    terminated = np.repeat(dataset.terminated, rows_per_episode)
    row = np.arange(len(dataset.action))
    window_end = np.minimum(row + view.n_step, final_row)
    if bootstrap in ("pair", "state"):
        # A fragment may know its next action; a truncated episode never does.
        usable = np.repeat(dataset.finals_known, rows_per_episode)
        if bootstrap == "pair":
            usable &= dataset.action[final_row] >= 0
        last = np.where(terminated | usable, final_row, final_row - 1)
        window_end = np.minimum(window_end, last)
    keep = (dataset.action >= 0) & (row < final_row)
    if bootstrap == "return":
        keep &= complete
    if bootstrap == "state":
        keep &= window_end > row
    if bootstrap == "pair":
        has_pair = dataset.action[window_end] >= 0
        ends = terminated & (window_end == final_row)
        keep &= (window_end > row) & (has_pair | ends)

    row = row[keep]
    window_end = window_end[keep]
    steps = window_end - row
    total = np.zeros(len(row), np.float64)
    for k in range(min(view.n_step, int(steps.max(initial=0)))):
        inside = steps > k
        total[inside] += view.gamma**k * rewards[row[inside] + k].astype(np.float64)
    ended = terminated[keep] & (window_end == final_row[keep])
    next_action = dataset.action[window_end]
    return Transitions(
        row=row,
        next_row=window_end,
        action=dataset.action[row].astype(np.int32),
        reward=total.astype(np.float32),
        discount=np.where(ended, 0.0, view.gamma**steps).astype(np.float32),
        next_action=np.maximum(next_action, 0).astype(np.int32),
        has_next_action=next_action >= 0,
        g=g[row].astype(np.float32),
    )
