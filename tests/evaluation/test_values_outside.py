"""Values a policy claims, against the returns that the rewards of its data allow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cli import run

import rbve
from rbve import rows
from rbve.data import Dataset, Episode, write
from rbve.data.transitions import View
from rbve.evaluation.metric import OfflineCase
from rbve.evaluation.offline import values_outside
from rbve.evaluation.offline.values_outside import possible_returns
from rbve.spec import Spec
from rbve.training.run import train_members


def episode(rewards: list[float], terminated: bool = True) -> Episode:
    steps = len(rewards)
    return Episode.from_steps(np.arange(steps + 1)[:, None] / 10, [0] * steps, rewards, terminated)


@pytest.mark.parametrize(
    ("episodes", "gamma", "bounds"),
    [
        ([[0.0], [1.0]], 0.9, (0, 1)),  # one step: the rewards themselves
        ([[2.0], [5.0]], 0.9, (2, 5)),
        ([[0.0, 1.0], [-1.0]], 0.5, (-1.5, 1.5)),
        ([[-1.0, -2.0, -1.0]], 1.0, (-6, -1)),  # at least one step is taken
        ([[3.0, 1.0]], 1.0, (1, 6)),
    ],
)
def test_the_range_of_possible_returns(episodes: Any, gamma: float, bounds: Any) -> None:
    data = Dataset.from_episodes([episode(rewards) for rewards in episodes], 2)
    assert possible_returns(data, View(gamma)) == pytest.approx(bounds)


def test_records_that_stop_early_go_on_forever() -> None:
    data = Dataset.from_episodes([episode([0.0, 1.0]), episode([-1.0], False)], 2)
    assert possible_returns(data, View(0.9)) == pytest.approx((-10, 10))
    assert possible_returns(data, View(1.0)) == (-np.inf, np.inf)


def test_clipped_rewards_bound_what_is_learned() -> None:
    data = Dataset.from_episodes([episode([5.0]), episode([-3.0])], 2)
    assert possible_returns(data, View(0.9, clip_rewards=True)) == (-1, 1)


class Numbered:
    """Items whose values are known; three decisions each, time before batch."""

    decisions, count = 3, 5

    def pick(self, index: np.ndarray) -> np.ndarray:
        return index


def test_padding_and_unused_rows_do_not_count() -> None:
    def claim(index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values = np.stack([index, 10 * index, np.full(len(index), np.nan)])
        weight = np.stack([np.ones(len(index)), index < 4, np.zeros(len(index))])
        return values.reshape(-1), weight.reshape(-1)

    # Values 0 to 4, then 0 to 30 of the first four items; a twentieth beyond 10 is let through.
    for high, batch_size, outside in ((10.0, 2, 2), (9.4, 4, 3), (9.6, 4, 2)):
        data = Dataset.from_episodes([episode([0.0]), episode([high])], 2)
        case = OfflineCase(data, View(0.9), Numbered(), batch_size, claim)
        assert values_outside.evaluate(case) == (outside / 9, 9)


def paid(reward: float, seed: int = 0) -> Dataset:
    """Steps that pay half more or less than `reward`."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(60):
        got = reward + rng.choice([-0.5, 0.5])
        made.append(
            Episode.from_steps(rng.normal(size=(2, 3)), [int(rng.integers(2))], [got], True)
        )
    return Dataset.from_episodes(made, 2)


PLAN = {"steps": 400, "every": 400, "env": None, "hidden": (16,)}


@pytest.mark.parametrize(
    ("algorithm", "memory"), [("dqn", 0), ("bcq", 0), ("iqn", 0), ("bc", 0), ("dqn", 4), ("iqn", 4)]
)
def test_runs_say_what_share_lies_outside(
    small_job: Callable[..., Spec], tmp_path: Path, algorithm: str, memory: int
) -> None:
    data = paid(1.0)
    plan = {**PLAN, "memory": memory, "steps": 150, "every": 150}
    job = small_job(algorithm, plan, learning_rate=1e-2)
    train_members([job], [data], [tmp_path])
    (found,) = rows.find([tmp_path])
    share = found.last("final/values_outside")
    if algorithm == "bc":
        assert share is None
        return
    assert share is not None
    assert share < 0.2
    assert found.facts["possible_returns"] == [0.5, 1.5]
    (row,) = [row for row in found.rows if row.metric == "final/values_outside"]
    assert row.n == 60


def test_the_user_is_told(tmp_path: Path) -> None:
    """Values begin near 0, and after one update they are nowhere near rewards of 50."""
    write(paid(50.0), tmp_path / "data")
    words = "values claimed for the policy's own choices lie outside 49.5 to 50.5"
    spec = {"hidden": (8,)}
    with pytest.warns(UserWarning, match=f"100% of the {words}"):
        rbve.train(tmp_path / "data", "bve", steps=1, spec=spec)
    flags = ("--steps", 1, "--holdout", 0)
    done = run("train", tmp_path / "data", *flags, "--out", tmp_path / "runs")
    assert done.code == 0, done.err
    assert words in done.err
    assert "values outside" in done.out
    assert "100.0%" in done.out
    page = tmp_path / "page.html"
    assert run("report", tmp_path / "runs", "--out", page).code == 0
    assert "Claimed values outside the returns" in page.read_text()


def test_values_within_draw_no_word() -> None:
    """Warnings are errors here."""
    trained = rbve.train(paid(0.0), "bve", steps=30, learning_rate=1e-2, spec={"hidden": (8,)})
    assert trained.info["facts"]["possible_returns"] == [-0.5, 0.5]
