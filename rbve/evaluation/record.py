"""What episodes were like, step by step, and the metrics computed from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rbve.evaluation.metric import METRICS, Metric, Record, modules
from rbve.rows import Row
from rbve.types import Array

STEP_COLUMNS = ("reward", "q", "gap", "alive")
Figures = dict[str, tuple[float, int]]  # metric -> mean, episodes behind it


def measure(
    columns: Mapping[str, Array], terminated: Array, gamma: Any, clip_rewards: bool
) -> dict[str, Array]:
    """Every metric's values (E,) from STEP_COLUMNS (T, E), and whether episodes terminated."""
    reward = jnp.clip(columns["reward"], -1, 1) if clip_rewards else columns["reward"]

    def back(g: Array, reward: Array) -> tuple[Array, Array]:
        g = reward + gamma * g
        return g, g

    g = jax.lax.scan(back, jnp.zeros(reward.shape[1]), reward, reverse=True)[1]
    record = Record(
        **columns, terminated=terminated, trained_reward=reward, clipped=clip_rewards, g=g
    )
    known = [module for module in modules(METRICS) if hasattr(module, "per_episode")]
    found = {module.METRIC.name: module.per_episode(record) for module in known}
    found = {name: values for name, values in found.items() if values is not None}
    return {**found, "terminated": terminated}


@dataclass(frozen=True)
class Evaluation:
    """Episodes of one policy, measured."""

    per_episode: Mapping[str, Any]  # metric -> (E,), and "terminated"
    values: bool = True  # whether the policy has values
    legal_actions: str | None = None  # who said which are legal; None = there were no masks

    def figures(self, facts: Mapping[str, Any] | None = None) -> Figures:
        """Means over episodes; `facts` of the data let returns be normalised."""
        host = {name: np.asarray(each, np.float64) for name, each in self.per_episode.items()}
        ended = host["terminated"] > 0
        found: Figures = {}
        known = [module for module in modules(METRICS) if self.values or not module.METRIC.values]
        for metric in (module.METRIC for module in known):
            if metric.name in host:
                found[metric.name] = _mean(host[metric.name], metric, ended)
        for module in known:
            if hasattr(module, "derived") and facts is not None:
                figure = module.derived(found, facts)
                found |= {} if figure is None else {module.METRIC.name: figure}
        return found


def _mean(values: np.ndarray, metric: Metric, ended: np.ndarray) -> tuple[float, int]:
    kept = values[ended] if metric.episodes == "terminated" else values
    return float(kept.mean()) if len(kept) else float("nan"), len(kept)


def final_rows(step: int, evaluations: Sequence[Figures]) -> list[Row]:
    """The final figures: means of the last evaluations that measured anything."""
    found = []
    for name in evaluations[-1] if evaluations else ():
        values = [each[name] for each in evaluations if name in each and each[name][1] > 0]
        mean = float(np.mean([value for value, _ in values])) if values else np.nan
        found.append(Row(step, f"final/{name}", mean, sum(n for _, n in values)))
    return found
