"""Policies of random weights, for every kind of network and observation."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np

from rbve import algorithms
from rbve.data.features import Feature, Features
from rbve.networks import build
from rbve.policy import Policy

FEATURES = Features(
    (
        Feature("clock", mean=1.7e9, scale=60.0, low=1.6e9, high=1.8e9),
        Feature("ward", "category", categories=("A", "B", "ICU"), missing="indicator"),
        Feature("age", mean=50.0, scale=20.0, low=0, high=100, clip=3.0, missing="indicator"),
        Feature("smoker", "category", categories=("False", "True", "(other)"), other=True),
        Feature("score", mean=1.0, scale=2.0, low=-5, high=9, missing="mean"),
    )
)
ACTIONS = ("wait", "treat", "refer", "discharge")
SMALL: dict[str, dict[str, Any]] = {
    "iqn": {"samples": 4, "act_samples": 4},
    "rem": {"heads": 5},
    "qr_cql": {"quantiles": 4},
}
KINDS: dict[str, tuple[tuple[int, ...], str, int]] = {  # observation, torso, memory
    "dense": ((5,), "mlp", 0),
    "lstm": ((5,), "mlp", 6),
    "board": ((6, 6, 3), "board", 0),
    "image": ((24, 20, 2), "atari", 0),
    "image_lstm": ((24, 20, 2), "atari_valid", 6),
}


def random_policy(
    name: str = "rbve", kind: str = "dense", features: Features = FEATURES, **fields: Any
) -> Policy:
    """Of an algorithm, for one of KINDS or "columns", rows of `features`."""
    columns = kind == "columns"
    shape, torso, memory = ((features.size,), "mlp", 0) if columns else KINDS[kind]
    if kind == "image_lstm":
        shape = (44, 40, 2)
    algorithm = algorithms.load(name)
    options = dataclasses.replace(algorithm.options(), **SMALL.get(name, {}))
    hidden = (9, 7) if torso == "mlp" else (8,)
    key = jax.random.key(3)
    network = build(shape, len(ACTIONS), algorithm.head, options, hidden, key, torso, memory)
    own: dict[str, Any] = {}
    if columns:
        own = {"features": features, "obs_shape": (len(features.columns),)}
    own = {"obs_shape": shape, "torso": torso, "memory": memory, "rescaled": memory > 0, **own}
    return Policy(
        algorithm, options, algorithm.config(), network, actions=ACTIONS, hidden=hidden,
        **(own | fields),
    )  # fmt: skip


def random_rows(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Of FEATURES: missing values, categories that the data does not hold, and values far out."""
    rng = np.random.default_rng(seed)

    def one() -> dict[str, Any]:
        return {
            "clock": 1.7e9 + float(rng.normal(0, 90)) + (5e8 if rng.random() < 0.05 else 0),
            "ward": rng.choice(np.array(["A", "B", "ICU", "", "NA"], object)),
            "age": None if rng.random() < 0.2 else float(rng.normal(50, 40)),
            "smoker": rng.choice(np.array(["True", "false", "sometimes", "FALSE"], object)),
            "score": float("nan") if rng.random() < 0.2 else float(rng.normal(1, 2)),
        }

    return [one() for _ in range(count)]


def random_observations(policy: Policy, count: int, seed: int = 0) -> np.ndarray:
    """Bytes for images, else numbers."""
    rng = np.random.default_rng(seed)
    shape = (count, *policy.obs_shape)
    if len(policy.obs_shape) == 3:
        return rng.integers(0, 256, shape).astype(np.uint8)
    return rng.normal(size=shape).astype(np.float32)


def random_masks(count: int, actions: int = len(ACTIONS), seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    legal = rng.random((count, actions)) < 0.6
    legal[np.arange(count), rng.integers(actions, size=count)] = True
    return legal
