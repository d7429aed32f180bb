"""100 · (return − random) / (online reference − random), where both are known."""

from collections.abc import Mapping
from typing import Any

from rbve.evaluation.metric import Metric

METRIC = Metric(
    "normalised_return", "normalised score", "normalised", "higher", style="score", always=True,
    order=20,
)  # fmt: skip


def derived(
    figures: Mapping[str, tuple[float, int]], facts: Mapping[str, Any]
) -> tuple[float, int] | None:
    random, reference = facts.get("random_return"), facts.get("reference_return")
    if random is None or reference is None or reference == random:
        return None
    value, n = figures["return"]
    return 100 * (value - random) / (reference - random), n
