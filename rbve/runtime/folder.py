"""The folder of a shipped policy: `policy.npz` with its numbers, `policy.json` with the rest."""

import io
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rbve import schema
from rbve.data.features import Features
from rbve.files import write_atomically
from rbve.runtime.decider import Decider
from rbve.runtime.outcome import Rules
from rbve.runtime.program import Program

ARRAYS, DESCRIPTION = "policy.npz", "policy.json"
PROGRAM = {"inputs": [str], "operations": [list], "outputs": {"*": int}}
_FIELDS = {
    "kind": str, "version": int, "actions": [str], "obs_shape": [int], "masked": bool,
    "values": bool, "units": int, "features": (list, None), "rules": dict, "info": dict,
    "arrays": int, "crc32": int,
    "program": PROGRAM,
}  # fmt: skip
_KIND, _VERSION = "rbve program", 1
_INPUTS = ("obs", "legal")
_STEP = ("last_action", "last_reward", "hidden", "cell")
_MOST = 1 << 31  # numbers of one array


def write(folder: Path, decider: Decider) -> None:
    """Arrays first: a folder whose description is there is whole."""
    program = decider.program
    assert isinstance(program, Program)
    held = io.BytesIO()
    np.savez(held, **{f"c{i}": each for i, each in enumerate(program.constants)})  # type: ignore
    content = {
        "kind": _KIND,
        "version": _VERSION,
        "actions": list(decider.actions),
        "obs_shape": list(decider.obs_shape),
        "masked": decider.masked,
        "values": decider.values,
        "units": decider.units,
        "features": decider.features and decider.features.to_json(),
        "rules": decider.rules.to_json(),
        "info": dict(decider.info),
        "arrays": len(program.constants),
        "crc32": zlib.crc32(held.getvalue()),
        "program": program.to_json(),
    }
    (folder / DESCRIPTION).unlink(missing_ok=True)
    write_atomically(folder / ARRAYS, held.getvalue())
    write_atomically(folder / DESCRIPTION, (json.dumps(content) + "\n").encode())


def load(folder: str | Path) -> Decider:
    """A policy that `rbve export POLICY FOLDER` wrote. Nothing in the folder runs code.

    Raises:
        ValueError: It is none, or damaged; the message says what.

    Example:
        >>> decider = rbve.runtime.load("shipped")
        >>> decider.decide({"age": 61, "blood_pressure": 158, "ward": "B"}, legal=["none"])
        'none'
    """
    place = Path(folder)
    place = place.parent if place.name in (ARRAYS, DESCRIPTION) else place
    if not (place / DESCRIPTION).is_file() or not (place / ARRAYS).is_file():
        raise ValueError(
            f"{folder}: holds no {DESCRIPTION} and {ARRAYS}; `rbve export POLICY FOLDER` writes "
            "them"
        )
    where = f"{place / DESCRIPTION}: not of this version"
    try:
        content = json.loads((place / DESCRIPTION).read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place / DESCRIPTION}: not valid JSON ({error}); damaged") from None
    schema.check(content, _FIELDS, where)
    if content["kind"] != _KIND or content["version"] != _VERSION:
        raise ValueError(f"{where}; export the policy again")
    constants = _arrays(place / ARRAYS, content)
    try:
        return decider_from(content, constants, str(place / DESCRIPTION))
    except ValueError as error:
        raise ValueError(f"{place}: damaged; {error}") from None


def _arrays(path: Path, content: Mapping[str, Any]) -> list[np.ndarray]:
    held = path.read_bytes()
    if zlib.crc32(held) != content["crc32"]:
        raise ValueError(f"{path}: checksum does not match {DESCRIPTION} beside it; damaged")
    try:
        with np.load(io.BytesIO(held), allow_pickle=False) as arrays:
            return [arrays[f"c{i}"] for i in range(content["arrays"])]
    except Exception as error:  # the reader of a damaged file raises anything
        raise ValueError(f"{path}: damaged ({error})") from None


def decider_from(content: Mapping[str, Any], constants: list[np.ndarray], where: str) -> Decider:
    """Of checked content; ValueError where its program does not decide."""
    try:
        return _decider(content, constants, where)
    except (TypeError, LookupError, AttributeError, ArithmeticError, MemoryError) as error:
        raise ValueError(str(error)) from None


def _decider(content: Mapping[str, Any], constants: list[np.ndarray], where: str) -> Decider:
    program = Program.from_json(content["program"], constants)
    units, shape = content["units"], tuple(content["obs_shape"])
    if program.inputs != (_INPUTS + _STEP if units else _INPUTS):
        raise ValueError("its program does not take what a policy sees")
    named = content["features"]
    decider = Decider(
        program=program,
        actions=tuple(content["actions"]),
        obs_shape=shape,
        features=None if named is None else Features.from_json(named, where),
        masked=content["masked"],
        values=content["values"],
        units=units,
        rules=Rules.from_json(content["rules"], len(content["actions"]), where),
        info=content["info"],
    )
    if not content["actions"] or not all(0 < size < _MOST for size in shape) or units < 0:
        raise ValueError("it has no actions, or a size that cannot be")
    _try(decider)
    return decider


def _try(decider: Decider) -> None:
    """Whether its program computes what decisions need, of one observation of zeros."""
    columns = len(decider.features.columns) if decider.features else 0
    obs = np.zeros((1, columns) if columns else (1, *decider.obs_shape), np.float32)
    state: dict[str, np.ndarray] = {}
    if decider.memory:
        zero = np.zeros(1, np.float32)
        state = {"last_action": np.full(1, -1, np.int32), "last_reward": zero, **decider.begin()}
    found, after = decider.step(obs, None, state)
    wide = (1, len(decider.actions))
    if any(found[name].shape != wide for name in ("q", "scores", "probabilities")):
        raise ValueError("its program does not give a value per action")
    if decider.memory and any(each.shape != (1, decider.units) for each in after.values()):
        raise ValueError("its program does not give a memory")
