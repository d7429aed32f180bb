"""Names of environments that files hold: nothing is imported for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cli import run

from rbve import envs
from rbve.data import Dataset, Episode, load, write
from rbve.envs import gymnasium as adapter
from rbve.evaluation.follow import FollowPlan
from rbve.policy.trained import TrainedAs

QUICK = ("--holdout", 0, "--steps", 4, "--hidden", 4, "--batch-size", 4, "--eval-episodes", 2)
OWN = """
import gymnasium

class Steps(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 9, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.place = 0
        return [0.0], {}

    def step(self, action):
        self.place += 1
        return [float(self.place)], float(action), self.place == 3, False, {}

gymnasium.register("Steps-v0", entry_point=Steps)
"""


def small(provenance: dict[str, Any]) -> Dataset:
    rng = np.random.default_rng(0)
    episodes = [
        Episode(rng.normal(size=(4, 1)), np.array([0, 1, 1, -1]), np.array([1.0, 0, 1, 0]), True)
        for _ in range(3)
    ]
    return Dataset.from_episodes(episodes, ("0", "1"), provenance)


@pytest.mark.parametrize("format", ["native", "npz", "parquet", "minari", "minari_arrow"])
def test_no_dataset_has_a_module_imported(marker: Path, tmp_path: Path, format: str) -> None:
    path = tmp_path / "store"
    data = path if format == "native" else tmp_path / f"data.{format.replace('minari', 'd')}"
    write(small({"env": "gymnasium:marked:Steps-v0"}), data, format)
    if format != "native":
        assert run("convert", data, path, "--format", format).code == 0
    assert load(path).provenance["env"] == "gymnasium:marked:Steps-v0"
    done = run("train", path, *QUICK, "--out", tmp_path / "runs")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"rbve: {path}: names the environment 'gymnasium:marked:Steps-v0'")
    assert "name the environment yourself with --env" in done.err
    assert not marker.exists()
    assert run("train", path, *QUICK, "--env", "none", "--out", tmp_path / "runs").code == 0
    assert not marker.exists()


def test_no_run_has_a_module_imported(marker: Path, tmp_path: Path) -> None:
    trained = TrainedAs(env="gymnasium:marked:Steps-v0")
    with pytest.raises(ValueError, match="no module is imported because a file names it"):
        FollowPlan().of(trained, tmp_path)
    assert not marker.exists()
    env, _ = FollowPlan(env="gymnasium:marked:Steps-v0").of(trained, tmp_path)
    assert env == trained.env


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (5, "is 5, which is no text"),
        (["catch"], "which is no text"),
        ("cach", "Did you mean 'catch'"),
        ("os:getcwd", "unknown environment 'os:getcwd'"),
        ("gymnasium:marked:CartPole-v1", "no module is imported"),
        ("gymnasium::CartPole-v1", "no module is imported"),
        ("gymnasium:Elsewhere-v1", "which Gymnasium does not register by itself"),
        ("gymnasium:CartPole", "which Gymnasium does not register by itself"),
    ],
)
def test_what_a_file_may_not_name(marker: Path, name: Any, words: str) -> None:
    with pytest.raises(ValueError, match=f"^some.file: .*{words}"):
        envs.named_in_file(name, "some.file")
    assert not marker.exists()


@pytest.mark.parametrize("name", [None, "catch", "collect:few", "atari:Pong", "gymnasium:Taxi-v4"])
def test_what_a_file_may_name(name: str | None) -> None:
    assert envs.named_in_file(name, "some.file") == name


def test_an_id_is_another_environment_with_other_settings() -> None:
    own = {"kwargs": {"map_name": "4x4"}, "max_episode_steps": 100, "wrappers": []}
    assert adapter.why_not("FrozenLake-v1", own) == ""
    for other in ({"kwargs": {}}, {"max_episode_steps": 99}, {"wrappers": ["ClipReward"]}):
        (part, value), *_ = other.items()
        assert f"made with {part} {value}, not" in adapter.why_not("FrozenLake-v1", own | other)
    assert "made with kwargs None" in adapter.why_not("FrozenLake-v1", 5)


def test_an_id_that_is_not_registered_is_noted(tmp_path: Path) -> None:
    write(small({"env": "gymnasium:Elsewhere-v1"}), tmp_path / "data")
    done = run("train", tmp_path / "data", *QUICK, "--out", tmp_path / "runs")
    assert done.code == 0, done.err
    assert f"note: {tmp_path / 'data'}: its environment is 'gymnasium:Elsewhere-v1'" in done.err
    assert "nothing is evaluated" in done.err


def test_an_environment_of_ones_own_is_found_in_the_working_directory(tmp_path: Path) -> None:
    """In a process of its own, whose path has no entry for the working directory."""
    (tmp_path / "own.py").write_text(OWN)
    call = [sys.executable, "-P", "-c", "import sys; from rbve.cli import main; main()"]
    name = "gymnasium:own:Steps-v0"

    def rbve(*arguments: object) -> subprocess.CompletedProcess[str]:
        words = [*call, *map(str, arguments)]
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)

    done = rbve("record", name, "--policy", "uniform", "--episodes", 9, "--out", "data")
    assert done.returncode in (0, 3), done.stderr
    done = rbve("train", "data", *QUICK, "--env", name, "--out", "runs")
    assert done.returncode == 0, done.stderr
    assert "final return" in done.stdout
    done = rbve("train", "data", *QUICK, "--out", "runs")
    assert (done.returncode, "no module is imported" in done.stderr) == (2, True)


def test_a_module_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "lacks.py").write_text("import no_such_package_anywhere\n")
    done = run("record", "gymnasium:nowhere.at_all:Steps-v0", "--policy", "uniform", "--out", "d")
    assert done.code == 2
    assert "made: No module named 'nowhere.at_all' in PYTHONPATH" in done.err
    assert "in the working directory" in done.err
    # Of a module that is there, its own fault shows, with a traceback.
    with pytest.raises(ModuleNotFoundError, match="named 'no_such_package_anywhere'"):
        run("record", "gymnasium:lacks:Steps-v0", "--policy", "uniform", "--out", "d")
