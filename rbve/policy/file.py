"""A policy's file: one vector of weights, and JSON that says what they are the weights of."""

import dataclasses
import warnings
from collections import namedtuple
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from rbve import algorithms, schema
from rbve.algorithms import Acting
from rbve.data.features import Features
from rbve.networks import build, flattened
from rbve.networks.heads import head_from_text, head_text
from rbve.networks.torsos import TORSOS, hidden_for, torso_for
from rbve.policy import core
from rbve.rows import upgraded
from rbve.runtime import saved
from rbve.runtime.outcome import BEHAVIOUR
from rbve.runtime.saved import INFO, policy_file
from rbve.schema import INT32, MAX_WIDTH
from rbve.tensors import read_tensors, write_tensors
from rbve.types import Head

_FIELDS = {
    "kind": str, "algorithm": str, "algorithm_version?": str, "head?": str, "values?": bool,
    "scores?": (str, None), "options": {"*": (str, bool, int, float, None)}, "config": {"*": float},
    "obs_shape": [int], "actions": [str], "torso?": str, "hidden": [int], "memory?": int,
    "rescaled?": bool, "masked": bool,
    "info": INFO, "features?": (list, None), "support?": (dict, None), "program?": (dict, None),
}  # fmt: skip
_SUPPORT = {
    "policy": dict, "temperature": schema.FINITE, "threshold": schema.FINITE,
    "fallback": (int, str, None),
}  # fmt: skip
_PLAIN = ("obs_shape", "actions", "memory", "rescaled", "masked")  # written as they are


def write(path: Path, policy: Any) -> None:
    arrays = {"weights": np.asarray(ravel_pytree(policy.network)[0])}
    info = _described(policy)
    if policy.support is not None:
        known = policy.support
        arrays["support"] = np.asarray(ravel_pytree(known.behaviour.network)[0])
        info["support"] = {"policy": _described(known.behaviour)} | {
            name: getattr(known, name) for name in _SUPPORT if name != "policy"
        }
    try:
        program = core.program_of(policy)
    except ValueError:  # it computes what no program can: decisions take JAX
        return write_tensors(path, arrays, info)
    decider = policy.decider
    info["program"], own = saved.described(program, _leaves(policy), decider.units, decider.rules)
    write_tensors(path, arrays | own, info)


def _leaves(policy: Any) -> Iterator[tuple[str, int, np.ndarray]]:
    """The arrays of weights, each with the vector that holds it and its place there."""
    networks = {"weights": policy.network}
    if policy.support is not None:
        networks["support"] = policy.support.behaviour.network
    for name, network in networks.items():
        first = 0
        for leaf in map(np.asarray, jax.tree.leaves(network)):
            yield name, first, leaf
            first += leaf.size


def _described(policy: Any) -> dict[str, Any]:
    algorithm, torso = policy.algorithm, torso_for(policy.torso, policy.inputs)
    return {
        "kind": "policy",
        "algorithm": algorithm.name,
        "algorithm_version": algorithm.version,
        "head": head_text(algorithm.head),
        "values": algorithm.values,
        "scores": algorithms.scores_name(algorithm),
        "options": dataclasses.asdict(policy.options),
        "config": {name: float(value) for name, value in policy.config._asdict().items()},
        "torso": torso,
        "hidden": hidden_for(torso, policy.hidden, policy.memory),
        "info": dict(policy.info),
        "features": policy.features and policy.features.to_json(),
        **{name: getattr(policy, name) for name in _PLAIN},
    }


def read(path: Path, algorithm_file: str | None = None) -> dict[str, Any]:
    """The fields of the Policy that a file holds; `support` is as `_support` has it.

    Nothing that the file names is imported but what this package holds: `algorithm_file` is the
    caller's.
    """
    path = policy_file(path)
    arrays, info = read_tensors(path)
    if isinstance(known := info.get("info"), dict) and "job" in known:
        known["job"] = upgraded(known["job"])
    fields = _fields(path, arrays, info, algorithm_file)
    if (support := info.get("support")) is not None:
        fields["support"] = _support(path, arrays, support, fields)
    return fields


def _support(
    path: Path, arrays: Mapping[str, np.ndarray], content: Mapping[str, Any], own: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of the model of the behaviour that is shipped with a policy of the fields `own`,
    and those of its Support."""
    schema.check(content, _SUPPORT, f"{path}: not a policy of this version", "support")
    held = {"weights": arrays.get("support", np.zeros(0, np.float32))}
    fields = _fields(path, held, content["policy"], None)
    same = ("obs_shape", "actions", "features")
    count, fallback = len(own["actions"]), content["fallback"]
    known = fallback in (None, BEHAVIOUR) if not isinstance(fallback, int) else fallback < count
    if (
        any(fields[name] != own[name] for name in same)
        or bool(fields["memory"]) != bool(own["memory"])
        or not known
        or not (content["temperature"] > 0 and 0 <= content["threshold"] <= 1)
    ):
        raise ValueError(f"{path}: damaged; its model of the behaviour does not fit the policy")
    settings = {name: content[name] for name in _SUPPORT if name != "policy"}
    return fields, settings


def _fields(
    path: Path,
    arrays: Mapping[str, np.ndarray],
    info: Mapping[str, Any],
    algorithm_file: str | None,
) -> dict[str, Any]:
    check(path, arrays, info)
    if "diverged_at" in info["info"]:
        warnings.warn(
            f"{path}: training diverged at update {info['info']['diverged_at']:,}; these are the "
            "last finite weights",
            stacklevel=3,
        )
    algorithm, options, config = acting(path, info, algorithm_file)
    obs_shape, hidden = tuple(info["obs_shape"]), tuple(info["hidden"])
    named, weights = info.get("features"), arrays["weights"]
    features = None if named is None else Features.from_json(named, str(path))
    inputs = obs_shape if features is None else (features.size,)
    torso = info.get("torso", "mlp")  # files of earlier versions do not tell
    count, memory = len(info["actions"]), int(info.get("memory", 0))
    size, unravel = flattened(
        lambda key: build(inputs, count, algorithm.head, options, hidden, key, torso, memory)
    )
    if weights.shape != (size,):
        raise ValueError(f"{path}: {weights.shape} weights, expected {(size,)}")
    return {
        "algorithm": algorithm,
        "options": options,
        "config": config,
        "network": unravel(jnp.asarray(weights)),
        "obs_shape": obs_shape,
        "actions": tuple(info["actions"]),
        "hidden": hidden,
        "info": info["info"],
        "features": features,
        "torso": torso,
        "memory": memory,
        "rescaled": bool(info.get("rescaled", False)),
        "masked": info["masked"],
    }


def check(path: Path, arrays: Mapping[str, np.ndarray], info: Mapping[str, Any]) -> None:
    if info.get("kind") != "policy" or "weights" not in arrays:
        raise ValueError(f"{path}: not a saved policy")
    schema.check(info, _FIELDS, f"{path}: not a policy of this version")
    sizes = (
        *((size, INT32) for size in (*info["obs_shape"], len(info["actions"]))),
        *((size, MAX_WIDTH) for size in info["hidden"]),
        (info.get("memory", 0) + 1, MAX_WIDTH + 1),
    )
    if not all(1 <= size <= most for size, most in sizes):
        raise ValueError(f"{path}: damaged; its network has a layer of no possible size")
    if info.get("torso", "mlp") not in TORSOS:
        raise ValueError(f"{path}: damaged; torso must be one of {', '.join(TORSOS)}")
    if not np.isfinite(arrays["weights"]).all():
        raise ValueError(f"{path}: its weights are not all finite; train it again")


def acting(
    path: Path, info: Mapping[str, Any], algorithm_file: str | None
) -> tuple[Acting, Any, Any]:
    """What acting needs of the policy's algorithm, its options and its numbers."""
    name = str(info["algorithm"])
    if algorithm_file is None and name not in algorithms.names():
        return _as_saved(path, name, info)
    known = algorithms.load(algorithm_file or name)
    head = head_text(known.head)
    if head_text(info.get("head", head)) != head:
        raise ValueError(
            f"{path}: its network has the head {info['head']!r}, that of {known.name} is "
            f"{head!r}; give the algorithm it was trained with, {name}"
        )
    saved = info.get("algorithm_version", known.version)
    if known.version != saved:
        warnings.warn(
            f"{path}: {known.name} is not the file it was trained with (version "
            f"{known.version or 'built in'}, then {saved or 'built in'}): its decisions may differ",
            stacklevel=4,
        )
    try:
        return known, known.options(**info["options"]), known.config(**info["config"])
    except TypeError as error:
        raise ValueError(f"{path}: its settings are not those of {known.name} ({error})") from None


def _as_saved(path: Path, name: str, info: Mapping[str, Any]) -> tuple[Acting, Any, Any]:
    """Of an algorithm file that need not be there any more."""
    own = None
    if info.get("scores") is None or not {"head", "values", "algorithm_version"} <= set(info):
        own = "scores"
    else:
        try:
            head = head_from_text(info["head"])
        except ValueError:
            own = "a head"
    if own:
        raise ValueError(
            f"{path}: the algorithm {name} has {own} of its own, and no file runs code because "
            f"another names it; give it with Policy.load(path, algorithm={Path(name).name!r}), on "
            f"the command line --algorithm {Path(name).name}"
        )
    try:
        options = dataclasses.make_dataclass("Options", info["options"], frozen=True)
        config = namedtuple("Config", info["config"])  # type: ignore[misc]
        settings = config(**info["config"]), options(**info["options"])
        scores = algorithms.scores_named(info["scores"])
        known = Acting(name, head, scores, info["values"], info["algorithm_version"])
        # Whether these scores can be computed of this head with these settings.
        q = jnp.zeros((1, 1))
        scores(Head(q, q, logits=q if "policy" in head_text(head) else None), None, *settings)
    except (TypeError, ValueError, AttributeError, AssertionError) as error:
        raise ValueError(f"{path}: damaged; its settings do not fit ({error})") from None
    return known, settings[1], settings[0]
