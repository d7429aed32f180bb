"""What metrics are, what they are computed from, and which there are: files in metrics/, offline/.

A file's presence is its registration: its figures then appear in result rows, in `rbve evaluate`,
in tables, pages and CSV files. Nothing here needs JAX, so that reports read the words alone.
"""

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple

import numpy as np

from rbve import registry
from rbve.data.dataset import Dataset
from rbve.data.transitions import View
from rbve.rows import Row, Run

Array = Any  # of JAX, which is not imported here
METRICS, OFFLINE = "rbve.evaluation.metrics", "rbve.evaluation.offline"


@dataclass(frozen=True)
class Metric:
    """The words of a metric, and how it is summarised."""

    name: str  # in result rows
    label: str  # in figures
    heading: str  # of its column in tables
    better: Literal["higher", "lower", "zero", "neither"]
    values: bool = False  # only for algorithms that learn values
    cloning: bool = False  # only for those that learn none
    episodes: Literal["all", "terminated"] = "all"  # those whose mean is the figure
    statistic: Literal["mean", "median", "interval"] = "mean"  # over runs, in tables
    style: Literal["number", "score", "percent"] = "number"  # score: one decimal
    table: bool = True  # has a column in tables, pages and CSV files
    always: bool = False  # the column is there where no run has the figure
    logarithmic: bool = False  # it spans powers of ten: centres are taken of ±log₁₀(1 + |x|)
    nonnegative: bool = False
    order: int = 70  # its place among the others

    def suits(self, values: bool) -> bool:
        """Whether it is a figure of an algorithm that learns values, or of one that does not."""
        return not (self.cloning if values else self.values)


class Record(NamedTuple):
    """Columns (T, E) of E episodes side by side; a is the action taken. Episodes cut by a limit
    lack the tail of G, so metrics of values leave them out."""

    reward: Array  # 0 after the end
    q: Array  # Q(s, a)
    gap: Array  # best minus second best Q(s, ·)
    alive: Array  # 1 until the end
    terminated: Array  # (E,) bool; False = cut by a limit
    trained_reward: Array  # clipped to [−1, 1] where training clips rewards
    clipped: bool
    g: Array  # G(s), the discounted return that followed, of trained rewards

    @property
    def error(self) -> Array:
        return self.q - self.g

    @property
    def lengths(self) -> Array:
        return self.alive.sum(axis=0)

    def mean(self, values: Array) -> Array:
        """(E,) of values (T, E): the mean over the states an episode visited."""
        import jax.numpy as jnp

        return jnp.sum(jnp.where(self.alive > 0, values, 0.0), axis=0) / self.lengths


def modules(package: str) -> list[ModuleType]:
    """The files of METRICS or OFFLINE in the order of their metrics."""
    root = importlib.import_module(package)
    names = {name for folder in root.__path__ for name in registry.names(Path(folder))}
    loaded = [importlib.import_module(f"{package}.{name}") for name in names]
    return sorted(loaded, key=lambda module: (module.METRIC.order, module.METRIC.name))


def registered() -> dict[str, Metric]:
    every = [module.METRIC for package in (METRICS, OFFLINE) for module in modules(package)]
    return {each.name: each for each in sorted(every, key=lambda each: (each.order, each.name))}


def tabulated() -> dict[str, Metric]:
    """Those with a column in tables, pages and CSV files."""
    return {name: each for name, each in registered().items() if each.table}


class OfflineCase(NamedTuple):
    dataset: Dataset
    view: View
    items: Any  # Columns of rbve/training/batches
    batch_size: int
    # picked items -> the value of the policy's own choice in each decision, and its weight
    chosen_values: Callable[[Any], tuple[Any, Any]]
    values: bool = True  # whether the policy has values

    def sampled_values(self, most: int) -> Iterator[np.ndarray]:
        """Values of the policy's choices, in about `most` decisions spread over the data."""
        count = max(1, min(self.items.count, most // self.items.decisions))
        index = np.linspace(0, self.items.count - 1, count).astype(np.int64)
        for start in range(0, count, self.batch_size):
            part = index[start : start + self.batch_size]
            padded = np.pad(part, (0, self.batch_size - len(part)), mode="edge")
            values, weight = map(np.asarray, self.chosen_values(self.items.pick(padded)))
            # Sequences come flattened, time before batch; the padding stands last in every batch.
            used = (weight.reshape(-1, self.batch_size) > 0)[:, : len(part)]
            yield values.reshape(-1, self.batch_size)[:, : len(part)][used]


def evaluate_offline(case: OfflineCase, step: int) -> list[Row]:
    """Final rows of every offline evaluation of the training data that suits the policy."""
    fitting = [
        each
        for each in modules(OFFLINE)
        if each.METRIC.suits(case.values) and not is_held_out(each)
    ]
    return [Row(step, f"final/{each.METRIC.name}", *each.evaluate(case)) for each in fitting]


class HeldOut(NamedTuple):
    """A policy in N decisions of episodes that did not train it; A actions."""

    action: np.ndarray  # (N,) the log's
    choice: np.ndarray  # (N,) the policy's own, a legal one
    # (N,) float64, the log's discounted reward-to-go, of the rewards as they train; NaN where the
    # episode does not reach its end in the log
    g: np.ndarray
    scores: np.ndarray  # (N, A) float64, what the policy maximises; very low where illegal
    q: np.ndarray  # (N, A) float64, its values; of cloning its logits
    legal: np.ndarray | None  # (N, A) bool
    supported: np.ndarray  # (N, A) bool, actions that the training episodes took in like states
    values: bool  # whether the policy has values

    def of(self, column: np.ndarray, action: np.ndarray) -> np.ndarray:
        """(N,) of a column (N, A)."""
        return np.take_along_axis(column, action[:, None], axis=1)[:, 0]

    def errors(self, action: np.ndarray) -> np.ndarray:
        """Q(s, action) − G(s) where G is known."""
        known = ~np.isnan(self.g)
        return (self.of(self.q, action) - self.g)[known]


def mean(values: np.ndarray) -> tuple[float, int]:
    """A figure and how many decisions it is of; NaN of none."""
    return float(np.mean(values)) if len(values) else np.nan, len(values)


def is_held_out(module: ModuleType) -> bool:
    return getattr(module, "HELD_OUT", False)


def held_out_metrics() -> dict[str, Metric]:
    """Those of held-out episodes, in order."""
    return {each.METRIC.name: each.METRIC for each in modules(OFFLINE) if is_held_out(each)}


def evaluate_held_out(case: HeldOut) -> dict[str, tuple[float, int]]:
    """Every figure of held-out episodes that suits the policy, and of how many decisions it is."""
    return {
        each.METRIC.name: each.evaluate(case)
        for each in modules(OFFLINE)
        if is_held_out(each) and each.METRIC.suits(case.values)
    }


def offline_facts(dataset: Dataset, view: View) -> dict[str, Any]:
    """What offline evaluations say of the data itself."""
    tellers = [module for module in modules(OFFLINE) if hasattr(module, "facts")]
    return {k: v for module in tellers for k, v in module.facts(dataset, view).items()}


def run_warnings(name: str, run: Run) -> list[str]:
    """What offline evaluations have to tell the user of a finished run."""
    tellers = [module for module in modules(OFFLINE) if hasattr(module, "warnings")]
    return [words for module in tellers for words in module.warnings(name, run)]
