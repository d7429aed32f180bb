"""A policy's file: one vector of weights, and JSON that says what they are the weights of."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from rbve import algorithms
from rbve.data.features import Features
from rbve.networks import build, flattened
from rbve.networks.torsos import hidden_for, torso_for
from rbve.training.checkpoint import read_tensors, write_tensors


def write(path: Path, inputs: tuple[int, ...], **fields: Any) -> None:
    """`fields` are those of a Policy; `inputs` is the shape that its network takes."""
    torso = torso_for(fields["torso"], inputs)
    features = fields["features"]
    info = {
        "kind": "policy",
        "algorithm": fields["algorithm"].name,
        "options": dataclasses.asdict(fields["options"]),
        "config": {name: float(value) for name, value in fields["config"]._asdict().items()},
        "obs_shape": fields["obs_shape"],
        "actions": fields["actions"],
        "torso": torso,
        "hidden": hidden_for(torso, fields["hidden"], fields["memory"]),
        "memory": fields["memory"],
        "rescaled": fields["rescaled"],
        "info": dict(fields["info"]),
        "features": None if features is None else features.to_json(),
    }
    vector = ravel_pytree(fields["network"])[0]
    write_tensors(path, {"weights": np.asarray(vector)}, info)


def read(path: Path) -> dict[str, Any]:
    """The fields of the Policy that a file holds."""
    arrays, info = read_tensors(path)
    if info.get("kind") != "policy" or "weights" not in arrays:
        raise ValueError(f"{path}: not a saved policy")
    algorithm = algorithms.load(info["algorithm"])
    options = algorithm.options(**info["options"])
    obs_shape, hidden = tuple(info["obs_shape"]), tuple(info["hidden"])
    named = info.get("features")
    features = None if named is None else Features.from_json(named, str(path))
    inputs = obs_shape if features is None else (features.size,)
    torso = info.get("torso", "mlp")  # files of earlier versions do not tell
    count, memory = len(info["actions"]), int(info.get("memory", 0))
    size, unravel = flattened(
        lambda key: build(inputs, count, algorithm.head, options, hidden, key, torso, memory)
    )
    if arrays["weights"].shape != (size,):
        raise ValueError(f"{path}: {arrays['weights'].shape} weights, expected {(size,)}")
    return {
        "algorithm": algorithm,
        "options": options,
        "config": algorithm.config(**info["config"]),
        "network": unravel(jnp.asarray(arrays["weights"])),
        "obs_shape": obs_shape,
        "actions": tuple(info["actions"]),
        "hidden": hidden,
        "info": info["info"],
        "features": features,
        "torso": torso,
        "memory": memory,
        "rescaled": bool(info.get("rescaled", False)),
    }
