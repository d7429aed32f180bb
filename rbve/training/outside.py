"""The values a policy claims, against the returns that the rewards of its data allow."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.transitions import View
from rbve.rows import OUTSIDE, TOLERATED_OUTSIDE, Run

SAMPLE = 2048  # decisions looked at
SLACK = 0.05  # of the range: values that little beyond it are errors of a fit


def possible_returns(dataset: Dataset, view: View) -> tuple[float, float]:
    """Lowest and highest discounted return from any state, as far as the data shows.

    The lowest or the highest reward of the data in every step of its longest episode: in one-step
    episodes the range of the rewards. Where some record stops before its episode ends, steps
    have no end.
    """
    decided = np.ones(len(dataset.action), bool)
    decided[dataset.offsets[1:] - 1] = False
    rewards = np.asarray(view.rewards(dataset))[decided]
    low, high = float(rewards.min()), float(rewards.max())
    steps = float(dataset.lengths.max()) if dataset.terminated.all() else math.inf
    most = steps if view.gamma == 1 else (1 - view.gamma**steps) / (1 - view.gamma)
    return low * (most if low < 0 else 1), high * (most if high > 0 else 1)


def share_outside(
    chosen_values: Callable[[Any], tuple[Any, Any]], columns: Any, batch_size: int, bounds: Any
) -> tuple[float, int]:
    """(share of values outside `bounds`, values looked at), over decisions spread over the data.

    `chosen_values` takes rows picked from `columns`, and gives the value of the action the policy
    would take in each, and its weight, 0 for padding.
    """
    low, high = bounds
    slack = SLACK * ((high - low) or abs(high) or 1.0)
    slack = slack if math.isfinite(slack) else 0.0
    known = columns.count
    items = max(1, min(known, SAMPLE // columns.decisions))
    index = np.linspace(0, known - 1, items).astype(np.int64)
    outside = total = 0
    for start in range(0, items, batch_size):
        part = index[start : start + batch_size]
        padded = np.pad(part, (0, batch_size - len(part)), mode="edge")
        values, weight = map(np.asarray, chosen_values(columns.pick(padded)))
        # Sequences come flattened, time before batch; the padding stands last in every batch.
        used = (weight.reshape(-1, batch_size) > 0)[:, : len(part)]
        values = values.reshape(-1, batch_size)[:, : len(part)][used]
        within = (values >= low - slack) & (values <= high + slack)  # NaN is not
        outside += int((~within).sum())
        total += len(values)
    return outside / max(total, 1), total


def words(name: str, run: Run) -> list[str]:
    """What to say of a run whose policy claims what cannot be."""
    share = run.last(f"final/{OUTSIDE}")
    if share is None or not share > TOLERATED_OUTSIDE:
        return []
    bounds = run.facts.get("possible_returns")
    span = "" if bounds is None else f"{bounds[0]:.4g} to {bounds[1]:.4g}, "
    return [
        f"{name}: {share:.0%} of the values claimed for the policy's own choices lie outside "
        f"{span}the returns that the rewards of the data allow; do not rely on them"
    ]
