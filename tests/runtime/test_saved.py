"""A saved policy decides without JAX, as the policy does that was saved."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.policies import (
    KINDS,
    random_masks,
    random_observations,
    random_policy,
    random_rows,
)

import rbve
from rbve.policy import Policy
from rbve.policy.support import Support
from rbve.runtime import Decider
from rbve.tensors import read_tensors, write_tensors


def steps(policy: Any, observations: np.ndarray) -> list[np.ndarray]:
    session = policy.start()
    found = []
    for step, obs in enumerate(observations):
        session.act(obs, 0.5 * step)
        found.append(session.scores)
    return found


@pytest.mark.parametrize("name", ["rbve", "bcq", "iqn"])
@pytest.mark.parametrize("kind", KINDS)
def test_it_decides_as_it_did(name: str, kind: str, tmp_path: Path) -> None:
    policy = random_policy(name, kind)
    policy.save(tmp_path / "policy.safetensors")
    loaded = rbve.load_policy(tmp_path)
    assert isinstance(loaded, Decider)
    obs = random_observations(policy, 6)
    if policy.memory:
        np.testing.assert_array_equal(steps(loaded, obs), steps(policy, obs))
        return
    legal = random_masks(6)
    mine, theirs = policy.decisions(obs, legal), loaded.decisions(obs, legal)
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


def with_support(policy: Policy) -> Policy:
    clone = random_policy("bc", "columns")
    fields = {name: getattr(policy, name) for name in policy.__dataclass_fields__}
    return Policy(**(fields | {"support": Support(clone, 0.7, 0.2, "behaviour")}))


def test_support_and_fallback_come_along(tmp_path: Path) -> None:
    policy = with_support(random_policy("rbve", "columns"))
    policy.save(tmp_path / "p.safetensors")
    rows = random_rows(80)
    mine, theirs = (
        policy.decisions(rows),
        rbve.load_policy(tmp_path / "p.safetensors").decisions(rows),
    )
    assert 0 < mine.supported.sum() < 80
    assert mine.behaviour is not None
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_jax_is_not_imported(tmp_path: Path) -> None:
    policy = random_policy("rbve", "columns")
    policy.save(tmp_path / "policy.safetensors")
    row = {"clock": 1.7e9, "ward": "ICU", "age": 61.5, "smoker": "True", "score": 1.0}
    code = (
        "import sys, rbve\n"
        f"policy = rbve.load_policy({str(tmp_path)!r})\n"
        f"print(policy.decide({row!r}), {{'jax', 'equinox'}} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [policy.decide(row), "set()"]


def test_weights_are_held_once(tmp_path: Path) -> None:
    policy = random_policy("rbve", "dense")
    policy.save(tmp_path / "p.safetensors")
    arrays, _ = read_tensors(tmp_path / "p.safetensors")
    own = sum(array.size for name, array in arrays.items() if name != "weights")
    assert own < 5 < arrays["weights"].size


def changed(path: Path, change: Any) -> None:
    arrays, info = read_tensors(path)
    change(arrays, info)
    write_tensors(path, arrays, info)


def test_files_without_a_program_are_computed_by_jax(tmp_path: Path) -> None:
    policy, file = random_policy("rbve", "dense"), tmp_path / "p.safetensors"
    policy.save(file)
    changed(file, lambda arrays, info: info.pop("program"))
    obs = random_observations(policy, 4)
    np.testing.assert_array_equal(rbve.load_policy(file).act(obs), policy.act(obs))
    changed(file, lambda arrays, info: info.update(program={"version": 2}))
    with pytest.raises(ValueError, match=r"program\.units is missing"):
        rbve.load_policy(file)


def test_an_algorithm_that_is_given_computes_anew(tmp_path: Path) -> None:
    policy, file = random_policy("rbve", "dense"), tmp_path / "p.safetensors"
    policy.save(file)
    own = tmp_path / "mine.py"
    own.write_text((Path(rbve.__file__).parent / "algorithms" / "rbve.py").read_text() + "\n#\n")
    with pytest.warns(UserWarning, match="is not the file it was trained with"):
        loaded = rbve.load_policy(file, own)
    obs = random_observations(policy, 4)
    np.testing.assert_array_equal(loaded.act(obs), policy.act(obs))


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays, info: info["program"]["constants"][0].__setitem__(1, 10**6),
        lambda arrays, info: info["program"]["constants"][0].__setitem__(0, "nothing"),
        lambda arrays, info: info["program"]["constants"][0].__setitem__(2, ["a"]),
        lambda arrays, info: info["program"]["constants"].pop(),
        lambda arrays, info: info["program"]["outputs"].pop("scores"),
        lambda arrays, info: info["program"].update(units=4),
        lambda arrays, info: info.update(actions=["one"]),
        lambda arrays, info: arrays["weights"].fill(np.nan),
        lambda arrays, info: info.update(kind="checkpoint"),
    ],
)
def test_damage_is_named(change: Any, tmp_path: Path) -> None:
    file = tmp_path / "p.safetensors"
    random_policy("rbve", "dense").save(file)
    changed(file, change)
    with pytest.raises(ValueError, match=r"p\.safetensors: "):
        rbve.load_policy(file)


def test_divergence_is_told(tmp_path: Path) -> None:
    random_policy("rbve", "dense", info={"diverged_at": 70}).save(tmp_path / "p.safetensors")
    with pytest.warns(UserWarning, match="diverged at update 70"):
        rbve.load_policy(tmp_path / "p.safetensors")
