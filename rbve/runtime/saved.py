"""A policy's own file, read without JAX: it holds the program that decides beside the weights.

A constant of the program that is a part of the weights is written as where it begins there and its
shape, any other as an array of its own.
"""

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rbve import schema
from rbve.rows import FACTS, JOB, upgraded
from rbve.runtime.decider import Decider
from rbve.runtime.folder import PROGRAM, decider_from
from rbve.runtime.outcome import Rules
from rbve.runtime.program import Program
from rbve.tensors import read_tensors

POLICY = "policy.safetensors"  # in the folder of a run
_OWN = "program"  # arrays of the program's own: program0, program1, ...
_VERSION = 1
INFO = {"job?": JOB, "facts?": FACTS, "step?": int, "diverged_at?": int}
_FIELDS = {
    "kind": str, "actions": [str], "obs_shape": [int], "masked": bool, "values?": bool,
    "features?": (list, None), "info": INFO,
    "program?": {
        "version": int, "units": int, "rules": dict, "constants": [list], **PROGRAM,
    },
}  # fmt: skip


def policy_file(path: Path) -> Path:
    """The file itself; of a run's folder, the policy in it."""
    if not path.is_dir():
        return path
    if (path / POLICY).is_file():
        return path / POLICY
    below = sorted(path.rglob(POLICY))
    raise ValueError(
        f"{path}: is a folder; give the file of one policy"
        + (f", such as {below[0]} ({len(below)} below)" if below else f" (no {POLICY} is below it)")
    )


def described(
    program: Program, weights: Iterable[tuple[str, int, np.ndarray]], units: int, rules: Rules
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The entry of a policy's file, and the arrays that go with it.

    Args:
        program: What decides.
        weights: Each array of weights: the name of the vector that holds it, and its place there.
        units: Of the memory.
        rules: How the policy acts.
    """
    places = {array.tobytes(): (name, first) for name, first, array in weights}
    own: dict[str, np.ndarray] = {}
    constants: list[list[Any]] = []
    for constant in map(np.asarray, program.constants):
        place = places.get(constant.tobytes()) if constant.dtype == np.float32 else None
        if place is None:
            place = f"{_OWN}{len(own)}", 0
            own[place[0]] = constant
        constants.append([*place, list(constant.shape)])
    entry = {"version": _VERSION, "units": units, "rules": rules.to_json(), "constants": constants}
    return entry | program.to_json(), own


def load(path: Path) -> Decider | None:
    """What decides by a policy's file; None where it holds no program that this version knows.

    Raises:
        ValueError: It is no policy, or damaged; the message says what.
    """
    arrays, info = read_tensors(path)
    if info.get("kind") != "policy":
        raise ValueError(f"{path}: not a saved policy")
    if isinstance(known := info.get("info"), dict) and "job" in known:
        known["job"] = upgraded(known["job"])
    schema.check(info, _FIELDS, f"{path}: not a policy of this version")
    entry = info.get("program")
    if entry is None or entry["version"] != _VERSION:
        return None
    if not np.isfinite(arrays.get("weights", np.zeros(0))).all():
        raise ValueError(f"{path}: its weights are not all finite; train it again")
    content = {name: entry[name] for name in ("units", "rules")}
    content |= {name: info[name] for name in ("actions", "obs_shape", "masked", "info")}
    content |= {"values": info.get("values", True), "features": info.get("features")}
    content["program"] = {name: entry[name] for name in PROGRAM}
    try:
        constants = [_constant(arrays, *each) for each in entry["constants"]]
        decider = decider_from(content, constants, str(path))
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path}: damaged; {error}") from None
    if "diverged_at" in info["info"]:
        warnings.warn(
            f"{path}: training diverged at update {info['info']['diverged_at']:,}; these are the "
            "last finite weights",
            stacklevel=3,
        )
    return decider


def _constant(arrays: Mapping[str, np.ndarray], name: str, first: int, shape: Any) -> np.ndarray:
    array = arrays[name]
    if array.shape == tuple(shape) and first == 0:
        return array
    size = int(np.prod(shape, dtype=np.int64))
    if array.ndim != 1 or not 0 <= first <= len(array) - size:
        raise ValueError("its program takes weights that are not there")
    return array[first : first + size].reshape(shape)
