"""Did an online agent learn while it was recorded? Data of one that did not tells little."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

LATE = 10  # one part in so many of the episodes, the last


def late_return(returns: Sequence[float]) -> float:
    """Mean return of the last tenth of the episodes."""
    return float(np.mean(returns[-max(1, len(returns) // LATE) :]))


def has_learned(provenance: dict[str, Any], times: float) -> bool:
    """Whether a recording's late returns are at least so many times the uniform policy's.

    Means something where returns are not negative, as in MinAtar.
    """
    random = provenance["reference"]["random"]
    return bool(provenance["late_return"] >= times * random)


def came_half_way(provenance: dict[str, Any], best: float) -> bool:
    """Whether the best snapshot closes half of the distance from the uniform policy to `best`."""
    reference = provenance["reference"]
    return bool(2 * reference["online"] >= reference["random"] + best)
