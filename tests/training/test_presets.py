"""Presets: the paper's numbers, flags that win, frames joined once, and what fragments cost."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.cli import run

from rbve import api, rows
from rbve.data import Dataset, Episode, load, write
from rbve.data.transitions import View, transitions
from rbve.evaluation.fit import Interface, check_fit
from rbve.spec import Spec
from rbve.training import presets
from rbve.training.run import POLICY

SAMPLES = os.environ.get("RBVE_RLU_SAMPLES", "")
TINY = ("--steps", "3", "--every", "3", "--batch-size", "4", "--hidden", "16")


def tuples(count: int) -> Dataset:
    """SARSA tuples of four joined frames, of episodes that returned 0, 1, 2, ..."""
    rng = np.random.default_rng(0)
    return Dataset.from_episodes(
        [
            Episode(
                obs=rng.integers(0, 256, (2, 84, 84, 4), np.uint8),
                action=np.array([k % 3, (k + 1) % 3]),
                reward=np.array([float(k % 2), 0.0]),
                terminated=False,
                complete=False,
                episode_return=float(k),
            )
            for k in range(count)
        ],
        3,
    )


@pytest.fixture(scope="module")
def sarsa(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("presets") / "sarsa"
    write(tuples(8), path)
    return path


def trained(out: Path) -> dict:
    (found,) = rows.find([out])
    flat = Spec.from_json(found.spec).flat()
    return {**flat, "rows": found.rows}


def test_the_papers_table() -> None:
    found = presets.load("rlu-atari")
    assert (found["batch_size"], found["gamma"], found["steps"]) == (256, 0.99, 2_000_000)
    assert (found["target_period"], found["learning_rate"]) == (2500, 1e-4)
    assert (found["torso"], found["hidden"], found["clip_rewards"]) == ("atari", (512,), True)
    assert presets.load(None) == {}
    assert presets.load("rlu-dmlab")["holdout"] == found["holdout"] == 0.0
    with pytest.raises(ValueError, match=r"unknown preset 'rlu-atri'. Did you mean 'rlu-atari'"):
        presets.load("rlu-atri")


def test_the_papers_table_for_lab() -> None:
    found = presets.load("rlu-dmlab")
    assert (found["torso"], found["memory"], found["batch_size"]) == ("atari", 512, 8)
    assert (found["gamma"], found["n_step"], found["steps"]) == (0.997, 5, 50_000)
    assert (found["target_period"], found["learning_rate"]) == (400, 1e-4)
    spec = Spec.of(**found).resolved()
    assert spec.network.rescale is True
    assert (spec.sampling.sequence, spec.sampling.burn_in) == (0, 0)


def test_frames_are_joined_once() -> None:
    assert presets.frames_to_join([(84, 84, 1), (84, 84, 1)]) == 4
    assert presets.frames_to_join([(84, 84)]) == 4
    assert presets.frames_to_join([(84, 84, 4)]) == 1
    with pytest.raises(ValueError, match="train them apart"):
        presets.frames_to_join([(84, 84, 1), (84, 84, 4)])


def test_help_tells_the_preset(sarsa: Path) -> None:
    told = run("train", sarsa, "--preset", "rlu-atari", "--help").out
    assert "2000000" in told
    assert "rlu-atari" in run("train", "--help").out
    assert "100000)" in run("train", "--help").out
    wrong = run("train", sarsa, "--preset=rlu", "--steps", "3")
    assert wrong.code == 2
    assert wrong.err.startswith("rbve: unknown preset 'rlu'")


def test_tuples_train_by_the_preset_and_say_what_they_lack(sarsa: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    done = run(
        "train", sarsa, "--out", out, *TINY, "--preset", "rlu-atari", "--gamma", "0.5", "--no-json"
    )
    assert done.code == 0, done.err
    assert "8 of 8 episodes are fragments" in done.err
    assert "the weights of rbve go by the return of the whole episode" in done.err
    found = trained(out)
    spec = found
    assert (spec["stack"], spec["torso"], spec["clip_rewards"]) == (1, "atari", True)
    assert (spec["steps"], spec["batch_size"], spec["hidden"]) == (3, 4, (16,))  # flags
    assert (spec["gamma"], found["learning_rate"], found["target_period"]) == (0.5, 1e-4, 2500)
    assert spec["final_evaluations"] == 1
    # What stands in for V̂ is the return of the tuple's episode.
    g = transitions(load(sarsa), View(0.5, 1, True), "pair").g
    assert g.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]


@pytest.mark.slow
def test_first_person_episodes_train_by_the_preset(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    episodes = [
        Episode.from_steps(
            rng.integers(0, 256, (length + 1, 72, 96, 3), np.uint8),
            rng.integers(0, 15, length),
            rng.normal(size=length),
            True,
        )
        for length in (3, 5, 2, 4)
    ]
    write(Dataset.from_episodes(episodes, 15), tmp_path / "lab")
    plan = ("--preset", "rlu-dmlab", "--steps", "2", "--batch-size", "2", "--env", "none")
    done = run("train", tmp_path / "lab", "--out", tmp_path / "runs", *plan)
    assert done.code == 0, done.err
    found = trained(tmp_path / "runs")
    spec = found
    assert (spec["memory"], spec["n_step"], spec["gamma"], spec["rescale"]) == (512, 5, 0.997, True)
    assert (spec["steps"], spec["batch_size"]) == (2, 2)  # flags
    assert (found["learning_rate"], found["target_period"]) == (1e-4, 400)
    losses = [row.value for row in found["rows"] if row.metric == "train/loss"]
    assert losses
    assert np.isfinite(losses).all()


def test_who_does_not_look_at_returns_gets_no_note(sarsa: Path, tmp_path: Path) -> None:
    quiet = run(
        "train", sarsa, "--out", tmp_path, *TINY, "--preset", "rlu-atari", "--algorithm", "bve"
    )
    assert quiet.code == 0, quiet.err
    assert "fragments" not in quiet.err


def test_from_python(sarsa: Path) -> None:
    plan = {"hidden": (16,), "batch_size": 4, "every": 2}
    with pytest.warns(UserWarning, match="8 of 8 episodes are fragments.*weights of rbve"):
        policy = api.train(sarsa, "rbve", steps=2, spec=plan, preset="rlu-atari")
    job = Spec.from_json(policy.info["job"]).flat()
    assert (job["steps"], job["batch_size"], job["stack"]) == (2, 4, 1)
    assert (job["learning_rate"], job["target_period"]) == (1e-4, 2500)


def plans(*names: str, **settings: str) -> list[Spec]:
    return [Spec.of(algorithm=name, **settings).resolved() for name in names]


def test_mc_cannot_learn_from_tuples() -> None:
    from rbve.training.notes import notes

    (note,) = notes("d", tuples(2), plans("mc", "bc") + plans("rdqn", filter="none"))
    assert note.startswith("d: 2 of 2 episodes are fragments")
    assert note.endswith("is not known: mc leaves them out")
    (note,) = notes("d", tuples(2), plans("filtered_bc"))
    assert "mean over fragments, in which an episode counts as often as it has" in note
    assert notes("d", tuples(2), plans("crr", "iql")) == []  # their weights go by Q, not by V̂
    whole = Dataset.from_episodes(
        [Episode.from_steps(np.zeros((3, 1)), [0, 1], [0.0, 1.0], True)], 2
    )
    assert notes("d", whole, plans("mc", "filtered_bc")) == []


def test_data_that_shows_too_few_actions_names_the_remedy() -> None:
    episode = Episode.from_steps(np.zeros((3, 1), np.float32), [0, 1], [0.0, 1.0], True)
    env = SimpleNamespace(name="atari:X", obs_shape=(1,), actions=("a", "b", "c"))
    for origin, words in (("rlu", "--actions 3$"), ("csv", "--actions and all their names$")):
        data = Dataset.from_episodes([episode], 2, {"format": origin})
        with pytest.raises(ValueError, match=f"some of them, convert again with {words}"):
            check_fit(env, Interface.of_data(data, 1))
    recorded = Dataset.from_episodes([episode], 2, {"env": "catch"})
    with pytest.raises(ValueError, match=r"the dataset has \(1,\) and 2$"):
        check_fit(env, Interface.of_data(recorded, 1))


@pytest.mark.slow
@pytest.mark.skipif(not SAMPLES, reason="needs real records: set RBVE_RLU_SAMPLES to their folder")
def test_real_episodes_from_shard_to_score(tmp_path: Path) -> None:
    """Convert, train by the preset on tiny sizes, evaluate a short episode of the game."""
    for package in ("ale_py", "cv2", "google_crc32c"):
        pytest.importorskip(package)
    store, out = tmp_path / "asterix", tmp_path / "runs"
    done = run("convert", Path(SAMPLES) / "atari_episodes" / "Asterix", store, "--actions", "9")
    assert done.code == 0, done.err
    world = "atari:Asterix,max_steps=12"
    plan = ("--preset", "rlu-atari", "--env", world, "--eval-episodes", "1")
    done = run("train", store, "--out", out, *TINY, *plan, "--algorithm", "rbve", "--json")
    assert done.code == 0, done.err
    assert "fragments" not in done.err
    found = trained(out)
    assert found["stack"] == 4
    values = {row.metric: row.value for row in found["rows"]}
    assert np.isfinite(values["train/loss"])
    assert np.isfinite(values["final/return"])
    (folder,) = (each for each in out.iterdir() if each.is_dir())
    done = run("evaluate", folder / POLICY, "--env", world, "--episodes", "1", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["episode_length"] == 12
