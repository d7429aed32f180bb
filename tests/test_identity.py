"""A job is its data, its settings and its algorithm: change one and it is another job."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rbve import rows
from rbve.cli import main
from rbve.data import Dataset, Episode, View, transitions
from rbve.data.manifest import fingerprint
from rbve.policy import Policy
from rbve.training.run import POLICY

EXAMPLE = Path(__file__).parent.parent / "examples" / "ranked_cql.py"
TRAIN = ("--steps", "40", "--every", "20", "--eval-episodes", "5")


def record(out: Path, seed: int) -> None:
    behaviour = ("--policy", "uniform", "--episodes", "30", "--seed", str(seed))
    main(["record", "catch", *behaviour, "--out", str(out), "--overwrite"])


def train(data: Path, out: Path, *more: str) -> None:
    main(["train", str(data), "--out", str(out), *TRAIN, *more])


def test_other_data_under_the_same_path_trains_anew(tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "runs"
    record(data, 0)
    train(data, out, "--algorithm", "bc")
    train(data, out, "--algorithm", "bc")
    assert len(rows.find([out])) == 1
    record(data, 1)
    train(data, out, "--algorithm", "bc")
    first, second = rows.find([out])
    assert first.facts["behaviour_return"] != second.facts["behaviour_return"]


def test_the_same_log_read_otherwise_trains_anew(tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "runs"
    log = ["episode,action,reward,kind", *(f"{k // 4},{k % 2},{k % 3},{k % 5}" for k in range(80))]
    (tmp_path / "log.csv").write_text("\n".join(log))
    marks = []
    for more in ((), (), ("--categorical", "kind")):
        main(["convert", str(tmp_path / "log.csv"), str(data), "--overwrite", *more])
        train(data, out, "--algorithm", "bc")
        marks.append(fingerprint(data))
    assert marks[0] == marks[1] != marks[2]
    assert len(rows.find([out])) == 2
    sizes = {Policy.load(file).features.size for file in out.glob(f"*/{POLICY}")}
    assert sizes == {1, 5}


def test_an_edited_algorithm_file_trains_anew(catch_path: Path, tmp_path: Path) -> None:
    data, out, file = catch_path, tmp_path / "runs", tmp_path / "mine.py"
    file.write_text(EXAMPLE.read_text())
    train(data, out, "--algorithm", str(file))
    file.write_text(EXAMPLE.read_text().replace("nu: float = 0.05", "nu: float = 0.06"))
    train(data, out, "--algorithm", str(file))
    assert len(rows.find([out])) == 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--set", "lam=nan"), "finite"),
        (("--set", "beta=0"), "positive"),
        (("--set", "normalise=foo"), "dataset, none"),
        (("--seed", "99999999999999999999"), "seed must lie"),
        (("--steps", "1000000000000"), "steps must lie"),
        (("--target-period", "9999999999"), "target_period must lie"),
        (("--hidden", "2000000000"), "hidden must lie"),
        (("--learning-rate", "inf"), "learning_rate"),
        (("--algorithm", "rem", "--set", "heads=0"), "whole number from 1 on"),
        (("--seed", "0", "0"), "twice"),
    ],
)
def test_numbers_out_of_bounds(
    catch_path: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    more: tuple[str, ...],
    said: str,
) -> None:
    with pytest.raises(SystemExit) as stop:
        train(catch_path, tmp_path / "runs", *more)
    complaint = capsys.readouterr().err
    assert stop.value.code == 2
    assert said in complaint
    assert complaint.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_random_actions_of_a_policy_vary(catch_path: Path, tmp_path: Path) -> None:
    train(catch_path, tmp_path / "runs", "--algorithm", "bc")
    policy = Policy.load(next((tmp_path / "runs").glob("*")) / POLICY)
    obs = np.zeros((10, 5))
    with pytest.raises(ValueError, match="rng"):
        policy.act(obs, epsilon=0.5)
    rng = np.random.default_rng(0)
    assert len({policy.act(obs, epsilon=0.9, rng=rng) for _ in range(60)}) == 3


def test_fragments_have_no_return_to_regress_to() -> None:
    whole = Episode.from_steps(np.zeros((3, 2)), [0, 1], [1, 2], terminated=True)
    fragment = whole._replace(complete=False, episode_return=50.0)
    data = Dataset.from_episodes([whole, fragment], 2)
    np.testing.assert_array_equal(transitions(data, View(0.5), "return").g, [2, 2])
    np.testing.assert_array_equal(transitions(data, View(0.5), "none").g, [2, 2, 50, 50])
