"""A Minari dataset is evaluated in the environment it names, from its file to the figures."""

from __future__ import annotations

import gc
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import minari
import numpy as np
import pytest
from support.cli import run
from support.tiers import first_and_slow

import rbve
from rbve.data import Dataset, Episode, load, write
from rbve.data.features import Feature, Features

# A few episodes of FrozenLake bring nothing.
pytestmark = pytest.mark.filterwarnings("ignore:V̂ is the same in every row")
QUICK = ("--holdout", 0, "--steps", 4, "--hidden", 4, "--batch-size", 4, "--eval-episodes", 2)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the minari package keeps datasets."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


def collect(
    root: Path, env_id: str, way: Sequence[int] = (), episodes: int = 3, **settings: Any
) -> Path:
    """Episodes that the minari package recorded: of the actions given, or of legal ones in turn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about authors, and of folders it leaves to the collector
        env = minari.DataCollector(gymnasium.make(env_id, **settings), record_infos=True)
        for seed in range(episodes):
            _, info = env.reset(seed=seed)
            step, ended = 0, False
            while not ended:
                mask = info.get("action_mask", np.ones(env.action_space.n))  # type: ignore[attr-defined]
                legal = np.flatnonzero(mask)
                action = way[step] if way else int(legal[step % len(legal)])
                *_, terminated, truncated, info = env.step(action)
                step, ended = step + 1, terminated or truncated
        env.create_dataset("made/here-v0", algorithm_name="test")
        env.close()
        del env
        gc.collect()
    return root / "made" / "here-v0"


@pytest.mark.parametrize("env_id", first_and_slow(["Taxi-v4", "FrozenLake-v1", "CartPole-v1"]))
def test_from_minari_to_figures(root: Path, env_id: str) -> None:
    found = collect(root, env_id)
    store, name = root / "store", f"gymnasium:{env_id}"
    assert run("convert", found, store).code == 0
    assert load(store).provenance["env"] == name
    done = run("train", store, "--algorithm", "bve", *QUICK, "--out", root / "runs")
    assert done.code == 0, done.err
    assert "nothing is evaluated" not in done.err
    assert name in done.out
    (policy,) = (root / "runs").rglob("policy.safetensors")
    done = run("evaluate", policy, "--env", name, "--episodes", 2, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["episode_length"] > 0


def test_categories_are_the_environments_own(root: Path) -> None:
    """Cloned from the shortest way along the cliff, a policy walks it: no state is another."""
    way = [0, *[1] * 11, 2]  # up, eleven times right, down
    store = root / "store"
    found = collect(root, "CliffWalking-v1", way)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rbve.convert(found, store)
    policy = rbve.train(store, "bc", steps=400, learning_rate=1e-2, holdout=0)
    figures = rbve.evaluate(policy, "gymnasium:CliffWalking-v1", episodes=3, epsilon=0)
    assert (figures["return"], figures["episode_length"]) == (-13, 13)


def test_categories_go_by_name(tmp_path: Path) -> None:
    """As in a log, where they stand in another order."""
    names = [str(state) for state in reversed(range(48))]
    way = [36, *range(24, 36), 47]
    obs = np.array([[names.index(str(state))] for state in way])
    actions = np.array([0, *[1] * 11, 2, -1])
    features = Features((Feature("place", "category", categories=tuple(names)),))
    episode = Episode(obs, actions, np.append(-np.ones(13), 0), True)
    data = Dataset.from_episodes([episode], 4, features=features)
    policy = rbve.train(data, "bc", steps=400, learning_rate=1e-2, holdout=0)
    figures = rbve.evaluate(policy, "gymnasium:CliffWalking-v1", episodes=1, epsilon=0)
    assert figures["return"] == -13
    few = Features((Feature("place", "category", categories=("0",)),))
    data = Dataset.from_episodes([episode._replace(obs=obs * 0)], 4, features=few)
    with pytest.raises(ValueError, match=r"shows '1' and 46 more of 48 values, which the column"):
        rbve.train(data, "bc", steps=2, env="gymnasium:CliffWalking-v1")


@pytest.mark.parametrize(
    ("env_id", "settings", "words"),
    [
        ("FrozenLake-v1", {"is_slippery": False}, "'is_slippery': False"),
        ("CartPole-v1", {"max_episode_steps": 7}, "made with max_episode_steps 7, not Gymnasium's"),
        ("Blackjack-v1", {}, "observations have to be Box or Discrete"),
    ],
)
def test_what_cannot_be_had_as_it_was_is_noted(
    root: Path, env_id: str, settings: dict[str, Any], words: str
) -> None:
    found = collect(root, env_id, episodes=20, **settings)
    assert run("convert", found, root / "store").code == 0
    done = run("train", root / "store", "--algorithm", "bc", *QUICK, "--out", root / "runs")
    assert done.code == 0, done.err
    assert "note: " in done.err
    assert words in done.err
    assert "nothing is evaluated (name an environment with --env)" in done.err


@pytest.mark.parametrize(
    "spec",
    first_and_slow(
        [
            '{"id": "marked:Steps-v0"}',
            *('{"id": ["marked"]}', '{"id": "A-v0", "kwargs": 5}', "5", 5, "["),
        ]
    ),
)
def test_metadata_imports_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: Any
) -> None:
    (tmp_path / "marked.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "marked", raising=False)
    episode = Episode(np.zeros((3, 2)), np.array([0, 1, -1]), np.array([1.0, 2.0, 0.0]), True)
    write(Dataset.from_episodes([episode], 2), tmp_path / "theirs", "minari_arrow")
    metadata = tmp_path / "theirs" / "data" / "metadata.json"
    said = json.loads(metadata.read_text())
    del said["rbve"]
    metadata.write_text(json.dumps({**said, "env_spec": spec}))
    assert run("convert", tmp_path / "theirs", tmp_path / "store").code == 0
    done = run("train", tmp_path / "store", "--algorithm", "bc", *QUICK, "--out", tmp_path / "r")
    assert done.code == 0, done.err
    assert not (tmp_path / "imported").exists()
