"""What evaluations without an environment look at, and the loop over them."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.transitions import View
from rbve.evaluation.metric import OFFLINE, modules
from rbve.rows import Row, Run


class Items(Protocol):
    """What training draws from a dataset: transitions or sequences."""

    @property
    def count(self) -> int:
        """How many there are."""

    @property
    def decisions(self) -> int:
        """In one item."""

    def pick(self, index: np.ndarray) -> Any:
        """Those at (B,) indices, as a network takes them."""


class OfflineCase(NamedTuple):
    """A policy and the data it was trained on."""

    dataset: Dataset
    view: View
    items: Items
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
    """Final rows of every offline evaluation that suits the policy."""
    found = []
    for module in modules(OFFLINE):
        if case.values or not module.METRIC.values:
            found.append(Row(step, f"final/{module.METRIC.name}", *module.evaluate(case)))
    return found


def offline_facts(dataset: Dataset, view: View) -> dict[str, Any]:
    """What offline evaluations say of the data itself."""
    found: dict[str, Any] = {}
    for module in modules(OFFLINE):
        if hasattr(module, "facts"):
            found |= module.facts(dataset, view)
    return found


def run_warnings(name: str, run: Run) -> list[str]:
    """What offline evaluations have to tell the user of a finished run."""
    found = [module for module in modules(OFFLINE) if hasattr(module, "warnings")]
    return [words for module in found for words in module.warnings(name, run)]
