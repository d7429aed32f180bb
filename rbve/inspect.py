"""What a dataset holds, in figures a person checks before training."""

from __future__ import annotations

from typing import Any

import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.transitions import View, transitions

QUANTILES = {"min": 0.0, "q25": 0.25, "median": 0.5, "q75": 0.75, "max": 1.0}


def describe(dataset: Dataset, gamma: float = 0.99, beta: float = 0.5) -> dict[str, Any]:
    if not beta > 0:
        raise ValueError(f"beta must be positive; got {beta}")
    taken = dataset.action[dataset.action >= 0]
    counts = np.bincount(taken, minlength=dataset.num_actions)
    g = transitions(dataset, View(gamma), "none").g.astype(np.float64)
    return {
        "episodes": dataset.num_episodes,
        "transitions": dataset.num_transitions,
        "observation_shape": list(dataset.obs_shape),
        "terminated_episodes": int(dataset.terminated.sum()),
        "truncated_episodes": int((~dataset.terminated).sum()),
        "length": spread(dataset.lengths),
        "return": spread(dataset.episode_return),
        "actions": {
            name: {"count": int(count), "share": float(count / max(len(taken), 1))}
            for name, count in zip(dataset.actions, counts, strict=True)
        },
        "value": spread(g),
        "ranking_weight": {
            "gamma": gamma,
            "beta": beta,
            "standardised": weight_effect(g, beta, float(g.std())),
            "paper": weight_effect(g, beta, 1.0),
        },
        "provenance": dataset.provenance,
    }


def spread(values: np.ndarray) -> dict[str, float]:
    figures = {name: float(np.quantile(values, q)) for name, q in QUANTILES.items()}
    return {"mean": float(np.mean(values)), "deviation": float(np.std(values)), **figures}


def weight_effect(g: np.ndarray, beta: float, scale: float, cap: float = 20.0) -> dict[str, float]:
    """Share of weights at the cap and effective share of the sample, over the whole dataset."""
    if scale == 0:
        return {"clipped": 0.0, "effective_share": 1.0}
    exponent = (g - g.mean()) / scale / beta
    weight = np.exp(np.minimum(exponent, np.log(cap)))
    effective = weight.sum() ** 2 / (len(weight) * (weight**2).sum())
    return {"clipped": float((exponent >= np.log(cap)).mean()), "effective_share": float(effective)}
