"""The folder of a shipped policy: whole or refused in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cli import run
from support.policies import random_observations, random_policy

from rbve import export, runtime


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shipped") / "policy"
    export(random_policy("rbve", "lstm"), folder)
    return folder


def copy(shipped: Path, folder: Path) -> Path:
    for each in shipped.iterdir():
        (folder / each.name).write_bytes(each.read_bytes())
    return folder


def test_read_again(shipped: Path) -> None:
    policy = random_policy("rbve", "lstm")
    one, other = runtime.load(shipped).start(), policy.start()
    for step, obs in enumerate(random_observations(policy, 5)):
        assert one.act(obs, 0.1 * step) == other.act(obs, 0.1 * step)
        np.testing.assert_array_equal(one.scores, other.scores)
    assert runtime.load(shipped / "policy.json").actions == policy.actions


def changed(path: tuple[Any, ...], value: Any) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        place: Any = content
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed(("kind",), "policy"), "export the policy again"),
        (changed(("version",), 7), "export the policy again"),
        (changed(("actions",), "wait"), "actions must be a list"),
        (changed(("actions",), []), "has no actions"),
        (changed(("actions",), ["wait"] * 3), "does not give a value per action|damaged"),
        (changed(("units",), 0), "does not take what a policy sees"),
        (changed(("units",), 9), "damaged"),
        (changed(("rules", "epsilon"), 2), "epsilon is a share"),
        (changed(("rules", "fallback"), 99), "fallback is no action"),
        (changed(("program", "operations", 0, 0), "system"), "unknown operation 'system'"),
        (changed(("program", "operations", 0, 1), [999]), "takes a value that is not there"),
        (changed(("program", "operations", 0), []), "damaged"),
        (changed(("program", "operations", 2, 2), {"shape": [10**30], "axes": [9]}), "damaged"),
        (changed(("program", "outputs", "q"), 10**6), "an output is not there"),
        (changed(("features",), [{"name": 1}]), "not a list of columns"),
        (changed(("arrays",), 99), "damaged"),
    ],
)
def test_damaged_descriptions(
    shipped: Path, tmp_path: Path, change: Callable[[Any], None], message: str
) -> None:
    folder = copy(shipped, tmp_path)
    content = json.loads((folder / "policy.json").read_text())
    change(content)
    (folder / "policy.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        runtime.load(folder)


def test_damaged_arrays(shipped: Path, tmp_path: Path) -> None:
    folder = copy(shipped, tmp_path)
    held = bytearray((folder / "policy.npz").read_bytes())
    held[len(held) // 2] ^= 1
    (folder / "policy.npz").write_bytes(bytes(held))
    with pytest.raises(ValueError, match="checksum does not match"):
        runtime.load(folder)
    (folder / "policy.npz").unlink()
    with pytest.raises(ValueError, match="rbve export POLICY FOLDER"):
        runtime.load(folder)
    (copy(shipped, tmp_path) / "policy.json").write_text("{")
    with pytest.raises(ValueError, match="not valid JSON"):
        runtime.load(folder)


def test_from_the_command_line(tmp_path: Path) -> None:
    policy = random_policy("bcq", "columns")
    policy.save(tmp_path / "policy.safetensors")
    done = run("export", tmp_path / "policy.safetensors", tmp_path / "out", "--epsilon", 0.1)
    assert done.code == 0, done.err
    assert "bytes" in done.out
    assert runtime.load(tmp_path / "out").rules.epsilon == 0.1
    done = run("export", tmp_path / "policy.safetensors", tmp_path / "out")
    assert done.code == 2
    assert "already exists" in done.err
    (tmp_path / "out" / "mine.txt").write_text("mine")
    done = run("export", tmp_path / "policy.safetensors", tmp_path / "out", "--overwrite")
    assert done.code == 2
    assert "holds something else" in done.err
    assert (tmp_path / "out" / "mine.txt").read_text() == "mine"
    done = run("export", tmp_path / "policy.safetensors", tmp_path / "out.pb")
    assert done.code == 2
    assert ".onnx" in done.err
    done = run("export", tmp_path / "policy.safetensors", tmp_path / "x", "--epsilon", 3)
    assert done.code == 2
    assert "epsilon is a share from 0 to 1" in done.err
