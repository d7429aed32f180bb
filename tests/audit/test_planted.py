"""Planted faults, each named by the audit with where it stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rbve.audit import Audit, Finding, audit
from rbve.data import Dataset, Episode
from rbve.data.features import Feature, Features
from rbve.data.source import Fault

Shifted = Callable[[Dataset, int], Dataset]


def only(found: Audit, name: str, level: str) -> Finding:
    """The one finding there should be."""
    assert [finding.name for finding in found.findings] == [name]
    (finding,) = found.findings
    assert finding.level == level
    assert finding.seen
    assert finding.why
    assert finding.remedy
    assert found.exit_code == {"look": 3, "stop": 4}[level]
    return finding


def with_column(dataset: Dataset, values: Any) -> Dataset:
    return replace(dataset, obs=np.column_stack([dataset.obs, values]).astype(np.float32))


def test_a_nan_in_an_observation(walk_log: Dataset) -> None:
    obs = walk_log.obs.copy()
    obs[walk_log.offsets[8] + 3, 2] = np.nan
    obs[walk_log.offsets[90], 2] = -np.inf
    finding = only(audit(replace(walk_log, obs=obs)), "observations not finite", "stop")
    assert "in 2 of" in finding.seen
    assert "column 2, first in episode 8, step 3" in finding.seen


def test_an_observation_that_32_bits_do_not_hold(walk_log: Dataset) -> None:
    obs = walk_log.obs.astype(np.float64)
    obs[walk_log.offsets[8] + 3, 2] = 1e300
    finding = only(audit(replace(walk_log, obs=obs)), "observations not finite", "stop")
    assert "32 bits in 1 of" in finding.seen
    assert "column 2, first in episode 8, step 3" in finding.seen


def test_an_infinite_and_a_missing_reward(walk_log: Dataset) -> None:
    reward = walk_log.reward.copy()
    reward[walk_log.offsets[4] + 1] = np.inf
    reward[walk_log.offsets[9]] = np.nan
    returns = walk_log.episode_return.copy()
    returns[[4, 9]] = np.inf, np.nan
    broken = replace(walk_log, reward=reward, episode_return=returns)
    finding = only(audit(broken), "rewards not finite", "stop")
    assert "1 NaN and 1 infinite rewards, first in episode 4, step 1" in finding.seen


def test_a_constant_column(walk_log: Dataset) -> None:
    named = Features(tuple(Feature(name) for name in ("a", "b", "c", "d", "currency")))
    broken = replace(with_column(walk_log, np.full(len(walk_log.obs), 7)), features=named)
    finding = only(audit(broken), "constant columns", "look")
    assert "1 of 5 observation columns never change: currency = 7" in finding.seen
    sevens = np.full((len(walk_log.obs), 2), 7)
    finding = only(audit(with_column(walk_log, sevens)), "constant columns", "look")
    assert "column 4 = 7, column 5 = 7" in finding.seen  # and not each other's duplicates


def test_a_duplicate_column(walk_log: Dataset) -> None:
    finding = only(audit(with_column(walk_log, walk_log.obs[:, 1])), "duplicate columns", "look")
    assert "column 4 = column 1" in finding.seen


def test_episodes_logged_twice(walk_log: Dataset) -> None:
    twice = np.append(np.arange(walk_log.num_episodes), [5, 60, 61])
    finding = only(audit(walk_log.select(twice, "copies")), "episodes logged twice", "look")
    assert "3 of 153 episodes" in finding.seen
    assert "episode 150 equals episode 5" in finding.seen


def test_rows_logged_twice(walk_log: Dataset) -> None:
    rows = np.repeat(np.arange(len(walk_log.action)), 2)
    final = np.zeros(len(walk_log.action), bool)
    final[walk_log.offsets[1:] - 1] = True
    rows = rows[~(final[rows] & (np.arange(len(rows)) % 2 == 1))]
    lengths = 2 * np.diff(walk_log.offsets) - 1
    broken = replace(
        walk_log,
        obs=walk_log.obs[rows],
        action=walk_log.action[rows],
        reward=walk_log.reward[rows],
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
    )
    assert "rows logged twice" in [finding.name for finding in audit(broken).findings]


def test_what_a_reader_met(walk_log: Dataset) -> None:
    faults = [
        Fault("unsorted time", "log.csv: row 12: time 3 after 9 in episode 'b'; sort by time"),
        Fault("split episode", "log.csv: row 40: episode 'a' goes on after episode 'b'"),
        Fault("unsorted time", "log.csv: row 15: time 1 after 8 in episode 'b'; sort by time"),
    ]
    found = audit(walk_log, faults=faults, notes=["ends: truncated, since no column says"])
    assert [finding.name for finding in found.findings] == ["unsorted time", "split episode"]
    assert found.verdict == "stop"
    assert "row 12" in found.findings[0].seen
    assert "1 more like it" in found.findings[0].seen
    assert "more" not in found.findings[1].seen
    assert found.notes == ["ends: truncated, since no column says"]


@pytest.mark.parametrize(("rows", "side"), [(1, "late"), (-1, "early")])
def test_rewards_in_the_wrong_row(
    walk_log: Dataset, shifted: Shifted, rows: int, side: str
) -> None:
    finding = only(audit(shifted(walk_log, rows)), f"rewards one row {side}", "look")
    assert "of the rewards' variance" in finding.seen


def test_an_action_without_support(walk_log: Dataset) -> None:
    action = walk_log.action.copy()
    sold = np.flatnonzero(action == 2)
    action[sold[4:]] = 1
    finding = only(audit(replace(walk_log, action=action)), "actions without support", "look")
    assert "1 of 3 actions have fewer than 20 of 1,900 decisions: sell 4" in finding.seen
    assert "buy" not in finding.seen


def test_holes_in_the_action_ids(walk_log: Dataset) -> None:
    action = np.array([0, 2, 4, -1], np.int32)[walk_log.action]
    broken = replace(walk_log, action=action, actions=tuple("01234"))
    finding = only(audit(broken), "holes in the action ids", "look")
    assert "ids 1, 3 of 0 to 4" in finding.seen


def test_a_trailing_partial_episode(walk_log: Dataset) -> None:
    terminated = walk_log.terminated.copy()
    shorter = int(np.flatnonzero(walk_log.lengths < walk_log.lengths.max())[0])
    order = np.append(np.delete(np.arange(walk_log.num_episodes), shorter), shorter)
    terminated[shorter] = False
    broken = replace(walk_log, terminated=terminated).select(order, "last")
    finding = only(audit(broken), "trailing partial episode", "look")
    assert f"the last episode (149) stops after {walk_log.lengths[shorter]} steps" in finding.seen


def test_episodes_cut_anywhere(walk_log: Dataset) -> None:
    terminated = np.arange(walk_log.num_episodes) % 3 > 0
    finding = only(audit(replace(walk_log, terminated=terminated)), "episodes cut short", "look")
    cut = ~terminated & (walk_log.lengths < walk_log.lengths.max())
    assert finding.seen.startswith(f"{cut.sum()} of 150 episodes")


def test_nothing_to_rank(walk_log: Dataset) -> None:
    broken = replace(
        walk_log,
        reward=np.zeros_like(walk_log.reward),
        episode_return=np.zeros(walk_log.num_episodes),
    )
    found = audit(broken)
    assert {finding.name for finding in found.findings} == {
        "nothing to rank",
        "returns do not vary",
    }
    assert found.exit_code == 4
    assert found.weights.flags == ""


def test_near_deterministic_behaviour(walk_log: Dataset) -> None:
    rng = np.random.default_rng(0)
    other = rng.random(len(walk_log.action)) < 0.004
    action = np.where(other, walk_log.action, 0)
    action = np.where(walk_log.action < 0, -1, action).astype(np.int32)
    found = audit(replace(walk_log, action=action))
    name = "near-deterministic behaviour"
    assert [finding.name for finding in found.findings if finding.name == name] == [name]


def test_a_region_where_one_action_is_taken(walk_log: Dataset) -> None:
    fixed = (walk_log.obs[:, 0] > -1) & (walk_log.action >= 0)
    action = np.where(fixed, 1, walk_log.action).astype(np.int32)
    reward = np.random.default_rng(0).normal(size=len(action)) * (action >= 0)
    broken = replace(walk_log, action=action, reward=reward.astype(np.float32))
    finding = only(audit(broken), "uncovered regions", "look")
    assert "of decisions lie in regions" in finding.seen


def test_a_time_limit_marked_as_termination(walk_log: Dataset) -> None:
    limit = 12
    episodes = [walk_log.episode(index) for index in range(walk_log.num_episodes)]
    cut = [
        episode
        if len(episode.action) <= limit + 1
        else Episode.from_steps(
            episode.obs[: limit + 1], episode.action[:limit], episode.reward[:limit], True
        )
        for episode in episodes
    ]
    at_limit = sum(len(episode.action) == limit + 1 for episode in cut)
    data = Dataset.from_episodes(cut, walk_log.actions)
    finding = only(audit(data), "time limit marked as termination", "look")
    assert f"{at_limit} of 150 episodes end at exactly 12 steps" in finding.seen
    # Told the time, states may be worth what is left; and a truncation may stand at a limit.
    clock = np.arange(len(data.obs)) - np.repeat(data.offsets[:-1], np.diff(data.offsets))
    assert audit(with_column(data, clock / limit)).findings == []
    assert audit(replace(data, terminated=data.lengths < limit)).findings == []


def test_weights_dominated_by_few_rows(walk_log: Dataset) -> None:
    rng = np.random.default_rng(0)
    lucky = rng.random(len(walk_log.action)) < 0.04
    reward = np.where(lucky, 100, rng.normal(size=len(lucky))).astype(np.float32)
    reward[walk_log.offsets[1:] - 1] = 0
    returns = np.add.reduceat(reward.astype(float), walk_log.offsets[:-1])
    found = audit(replace(walk_log, reward=reward, episode_return=returns), gamma=0.0)
    finding = only(found, "weights dominated by few rows", "look")
    rows = reward[walk_log.action >= 0].astype(float)
    weight = np.minimum(np.exp((rows - rows.mean()) / rows.std() / 0.5), 20)
    heavy = np.cumsum(np.sort(weight)[::-1])
    half = (np.argmax(heavy >= heavy[-1] / 2) + 1) / len(rows)
    assert f"lies on {half:.1%} of rows" in finding.seen
    assert "--set beta=" in finding.remedy


def test_executed_actions_of_another_row(walk_log: Dataset) -> None:
    executed = np.where(walk_log.action >= 0, np.roll(walk_log.action, 3) % 3, -1)
    found = audit(replace(walk_log, executed=executed.astype(np.int32)))
    differs = (executed != walk_log.action)[walk_log.action >= 0].mean()
    assert differs > 0.5
    finding = only(found, "executed actions differ", "look")
    assert f"{differs:.0%} of rows" in finding.seen


def test_propensities_of_another_behaviour(bandit_log: Dataset) -> None:
    finding = only(
        audit(replace(bandit_log, propensity=bandit_log.propensity / 2)),
        "propensities disagree with the actions",
        "look",
    )
    assert "times as often as its propensities say" in finding.seen
    certain = replace(bandit_log, propensity=np.ones_like(bandit_log.propensity))
    only(audit(certain), "propensities disagree with the actions", "look")


def test_a_column_out_of_scale(walk_log: Dataset) -> None:
    obs = walk_log.obs * np.array([1, 1, 1, 5000], np.float32)
    finding = only(audit(replace(walk_log, obs=obs)), "columns out of scale", "look")
    assert "column 3 ±" in finding.seen


def test_bytes_that_are_no_pixels(walk_log: Dataset) -> None:
    codes = np.clip(walk_log.obs * 3 + 10, 0, 20).astype(np.uint8)
    found = audit(replace(walk_log, obs=codes))
    assert "bytes that are no pixels" in [finding.name for finding in found.findings]


def test_one_step_logs_marked_truncated(bandit_log: Dataset) -> None:
    cut = replace(bandit_log, terminated=np.zeros(bandit_log.num_episodes, bool))
    finding = only(audit(cut), "few rows can train", "stop")
    assert "--ends terminated" in finding.remedy


def test_a_horizon_that_does_not_reach(walk_log: Dataset, shifted: Shifted) -> None:
    reward = np.zeros_like(walk_log.reward)
    reward[walk_log.offsets[1:] - 2] = np.random.default_rng(0).normal(size=walk_log.num_episodes)
    late = replace(walk_log, reward=reward, episode_return=reward[walk_log.offsets[1:] - 2] * 1.0)
    names = [finding.name for finding in audit(late, gamma=0.1).findings]
    assert "horizon too short" not in names  # a tenth of the episodes is one or two steps long
    long = late.select(np.flatnonzero(late.lengths > 4), "long")
    assert "horizon too short" in [finding.name for finding in audit(long, gamma=0.1).findings]


def test_very_little_data(walk_log: Dataset) -> None:
    few = walk_log.select(np.arange(4), "few")
    assert "very little data" in [finding.name for finding in audit(few).findings]


def test_illegal_actions_are_named(masked_log: Dataset) -> None:
    legal = masked_log.legal.copy()
    row = int(masked_log.offsets[3]) + 2
    legal[row, masked_log.action[row]] = False
    legal[row, (masked_log.action[row] + 1) % 3] = True
    finding = only(audit(replace(masked_log, legal=legal)), "values that cannot be", "stop")
    assert "episode 3, step 2" in finding.seen


def test_an_action_that_does_not_exist(walk_log: Dataset) -> None:
    action = walk_log.action.copy()
    action[walk_log.offsets[2]] = 9
    finding = only(audit(replace(walk_log, action=action)), "values that cannot be", "stop")
    assert "episode 2, step 0: action 9" in finding.seen


def test_no_action_at_all(walk_log: Dataset) -> None:
    with pytest.raises(ValueError, match="no row holds an action"):
        audit(replace(walk_log, action=np.full_like(walk_log.action, -1)))
