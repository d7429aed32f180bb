"""Share of values outside the returns that the rewards of the data allow."""

import math
from typing import Any

import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.transitions import View
from rbve.evaluation.metric import Metric, OfflineCase
from rbve.rows import TOLERATED_OUTSIDE, Run

METRIC = Metric(
    "values_outside", "values outside the possible returns", "values outside", "lower",
    values=True, style="percent", nonnegative=True, order=90,
)  # fmt: skip
_SAMPLE = 2048  # decisions
_SLACK = 0.05  # of the range: values that little beyond it are errors of a fit


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


def facts(dataset: Dataset, view: View) -> dict[str, Any]:
    bounds = possible_returns(dataset, view)
    return {"possible_returns": bounds} if np.isfinite(bounds).all() else {}


def evaluate(case: OfflineCase) -> tuple[float, int]:
    """The share of values of the policy's own choices, and how many decisions it is of."""
    low, high = possible_returns(case.dataset, case.view)
    slack = _SLACK * ((high - low) or abs(high) or 1.0)
    slack = slack if math.isfinite(slack) else 0.0
    outside = total = 0
    for values in case.sampled_values(_SAMPLE):
        within = (values >= low - slack) & (values <= high + slack)  # NaN is not
        outside += int((~within).sum())
        total += len(values)
    return outside / max(total, 1), total


def warnings(name: str, run: Run) -> list[str]:
    share = run.last(f"final/{METRIC.name}")
    if share is None or not share > TOLERATED_OUTSIDE:
        return []
    bounds = run.facts.get("possible_returns")
    span = "" if bounds is None else f"{bounds[0]:.4g} to {bounds[1]:.4g}, "
    return [
        f"{name}: {share:.0%} of the values claimed for the policy's own choices lie outside "
        f"{span}the returns that the rewards of the data allow; do not rely on them"
    ]
