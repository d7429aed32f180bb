"""Rewards one row late or early: found where they can be, never where they are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from support.tiers import first_and_slow, slow

from rbve.audit import audit
from rbve.audit._reading import fit_encoder, reach
from rbve.audit.shift import Shift, findings, measure
from rbve.data import Dataset, Episode

Shifted = Callable[[Dataset, int], Dataset]

# Rewards of (state, action, state after, generator).
DENSE = {
    "profit": lambda s, a, n, g: s[0] * (a - 1) + 0.3 * g.normal(),
    "progress": lambda s, a, n, g: np.linalg.norm(s) - np.linalg.norm(n),
    "cost": lambda s, a, n, g: -float(a),
    "clicks": lambda s, a, n, g: float(g.random() < 1 / (1 + np.exp(2 - 2 * s[a]))),
    "rare": lambda s, a, n, g: float(s[0] > 0.8 and a == 1),
}


def look(dataset: Dataset, seed: int = 0) -> Shift:
    within = reach(dataset, seed)
    return measure(dataset, within, fit_encoder(dataset, within, seed), seed)


def names(found: Shift) -> list[str]:
    return [finding.name for finding in findings(found)]


@pytest.mark.parametrize("kind", DENSE)
def test_dense_rewards(world: Callable[..., Dataset], shifted: Shifted, kind: str) -> None:
    honest = world(DENSE[kind], episodes=250)
    assert names(look(honest)) == []
    assert names(look(shifted(honest, 1))) == ["rewards one row late"]
    assert names(look(shifted(honest, -1))) == ["rewards one row early"]


def test_both_sides_are_ruled_out_where_rewards_follow_their_own_step(walk_log: Dataset) -> None:
    found = look(walk_log)
    assert found.verdicts == {"late": "ruled out", "early": "ruled out"}
    for fit in (found.late, found.early):
        assert fit is not None
        assert fit.own > 0.8
        assert fit.moved < 0.4


def test_a_shift_across_the_ends_of_episodes(walk_log: Dataset) -> None:
    """As by a whole column that slipped: rewards of one episode stand in the next."""
    taken = np.flatnonzero(walk_log.action >= 0)
    reward = np.zeros_like(walk_log.reward)
    reward[taken] = np.roll(walk_log.reward[taken], 1)
    assert names(look(replace(walk_log, reward=reward))) == ["rewards one row late"]


@pytest.mark.parametrize(
    "log", ["catch_log", "steady_log", slow("cartpole_log"), slow("mountain_car_log"), "bandit_log"]
)
def test_honest_logs(request: pytest.FixtureRequest, log: str) -> None:
    assert names(look(request.getfixturevalue(log))) == []


def test_catch(catch_log: Dataset, shifted: Shifted) -> None:
    assert look(catch_log).verdicts["late"] == "ruled out"
    assert names(look(shifted(catch_log, -1))) == ["rewards one row early"]
    # Late, the one reward of an episode falls out of it: nothing is left to see.
    late = shifted(catch_log, 1)
    assert names(look(late)) == []
    assert "nothing to rank" in [finding.name for finding in audit(late).findings]
    slipped = replace(catch_log, reward=np.roll(catch_log.reward, 2))  # over the final row
    assert names(look(slipped)) == ["rewards one row late"]


@pytest.mark.parametrize("log", first_and_slow(["steady_log", "cartpole_log", "mountain_car_log"]))
def test_a_first_reward_that_is_missing(
    request: pytest.FixtureRequest, shifted: Shifted, log: str
) -> None:
    late = shifted(request.getfixturevalue(log), 1)
    assert names(look(late)) == ["rewards one row late"]
    assert "is 0, and hardly any other is" in look(late).pattern_seen


@pytest.mark.parametrize("log", first_and_slow(["steady_log", "mountain_car_log"]))
def test_what_cannot_be_told_is_said(
    request: pytest.FixtureRequest, log: str, bandit_log: Dataset, shifted: Shifted
) -> None:
    hardly = "cannot be told: these rewards hardly vary inside episodes"
    steady = request.getfixturevalue(log)
    assert look(steady).verdicts == {"late": hardly, "early": hardly}
    # One 0 at the end is what an honest "0 at the goal" looks like.
    assert names(look(shifted(steady, -1))) == []
    few = "cannot be told: too few episodes of two steps or more"
    assert look(bandit_log).verdicts == {"late": few, "early": few}


def test_rewards_of_the_state_alone(world: Callable[..., Dataset], shifted: Shifted) -> None:
    """One row late, a reward for the state reached looks like one for the current state."""
    honest = world(lambda s, a, n, g: 5.0 - n @ n, episodes=250)
    found = look(honest)
    assert found.verdicts["late"] == "ruled out"
    assert found.verdicts["early"].startswith("cannot be told: own and moved step")
    assert names(look(shifted(honest, -1))) == ["rewards one row early"]


def test_noise_is_not_a_shift(world: Callable[..., Dataset]) -> None:
    for seed in range(5):
        noise = world(lambda s, a, n, g: g.normal(), episodes=40, seed=seed)
        assert names(look(noise, seed)) == []


def test_a_sparse_goal(shifted: Shifted) -> None:
    """1 on reaching the end of a corridor, else 0; some episodes are cut before."""
    rng = np.random.default_rng(0)
    held = []
    for _ in range(200):
        place, places, actions, rewards = 0, [0], [], []
        while place < 6 and len(actions) < 30:
            actions.append(int(rng.random() < 0.7))
            place = max(0, place + (1 if actions[-1] else -1))
            places.append(place)
            rewards.append(float(place == 6))
        obs = np.eye(7, dtype=np.float32)[places]
        held.append(Episode.from_steps(obs, actions, rewards, place == 6))
    corridor = Dataset.from_episodes(held, ("left", "right"))
    assert names(look(corridor)) == []
    assert names(look(shifted(corridor, -1))) == ["rewards one row early"]
