"""Transition columns: by hand, against a slow reference, and where logs have holes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

from rbve.data.dataset import NO_ACTION, Dataset, Episode
from rbve.data.transitions import Bootstrap, Transitions, View, reward_to_go, transitions

GAMMA = 0.5  # every number below is exact in float32
MODES: tuple[Bootstrap, ...] = ("state", "pair", "none")


def episode(actions: list[int], rewards: list[float], terminated: bool) -> Episode:
    return Episode.from_steps(np.zeros((len(actions) + 1, 1)), actions, rewards, terminated)


# Rows 0–3 terminate, 4–7 are truncated, 8–9 and 10–11 are one step long (terminated, truncated).
# Action and reward of every row differ from those of its neighbours, across episodes too.
ADJACENT = Dataset.from_episodes(
    [
        episode([1, 2, 3], [1, 2, 4], terminated=True),
        episode([4, 5, 6], [8, 16, 32], terminated=False),
        episode([7], [64], terminated=True),
        episode([8], [128], terminated=False),
    ],
    actions=10,
)
# row: V̂ = r + γ V̂(next row) within the episode
V_HAT = {0: 3.0, 1: 4.0, 2: 4.0, 4: 24.0, 5: 32.0, 6: 32.0, 8: 64.0, 10: 128.0}
TAKEN = {0: 1, 1: 2, 2: 3, 4: 4, 5: 5, 6: 6, 8: 7, 10: 8}


class Expected(NamedTuple):
    row: int
    next_row: int
    reward: float
    discount: float
    next_action: int | None


ONE_STEP_STATE = [
    Expected(0, 1, 1, 0.5, 2),
    Expected(1, 2, 2, 0.5, 3),
    Expected(2, 3, 4, 0, None),  # terminated: not action 4 of the following episode
    Expected(4, 5, 8, 0.5, 5),
    Expected(5, 6, 16, 0.5, 6),
    Expected(6, 7, 32, 0.5, None),  # truncated: the final observation keeps its value
    Expected(8, 9, 64, 0, None),
    Expected(10, 11, 128, 0.5, None),
]
ONE_STEP_PAIR = [
    Expected(0, 1, 1, 0.5, 2),
    Expected(1, 2, 2, 0.5, 3),
    Expected(2, 3, 4, 0, None),
    Expected(4, 5, 8, 0.5, 5),
    Expected(5, 6, 16, 0.5, 6),
    # row 6 and row 10: truncated, no logged pair follows
    Expected(8, 9, 64, 0, None),
]
THREE_STEP_STATE = [
    Expected(0, 3, 1 + 2 / 2 + 4 / 4, 0, None),
    Expected(1, 3, 2 + 4 / 2, 0, None),
    Expected(2, 3, 4, 0, None),
    Expected(4, 7, 8 + 16 / 2 + 32 / 4, 0.125, None),
    Expected(5, 7, 16 + 32 / 2, 0.25, None),  # two steps are left: γ², not γ³
    Expected(6, 7, 32, 0.5, None),
    Expected(8, 9, 64, 0, None),
    Expected(10, 11, 128, 0.5, None),
]
THREE_STEP_PAIR = [
    Expected(0, 3, 1 + 2 / 2 + 4 / 4, 0, None),
    Expected(1, 3, 2 + 4 / 2, 0, None),
    Expected(2, 3, 4, 0, None),
    Expected(4, 6, 8 + 16 / 2, 0.25, 6),  # the last logged pair is row 6
    Expected(5, 6, 16, 0.5, 6),
    Expected(8, 9, 64, 0, None),
]


def columns_of(found: Transitions) -> list[Expected]:
    return [
        Expected(
            int(found.row[i]),
            int(found.next_row[i]),
            float(found.reward[i]),
            float(found.discount[i]),
            int(found.next_action[i]) if found.has_next_action[i] else None,
        )
        for i in range(len(found.row))
    ]


@pytest.mark.parametrize(
    ("n_step", "bootstrap", "expected"),
    [
        (1, "state", ONE_STEP_STATE),
        (1, "pair", ONE_STEP_PAIR),
        (1, "none", ONE_STEP_STATE),
        (3, "state", THREE_STEP_STATE),
        (3, "pair", THREE_STEP_PAIR),
        (3, "none", THREE_STEP_STATE),
    ],
)
def test_by_hand(n_step: int, bootstrap: Bootstrap, expected: list[Expected]) -> None:
    found = transitions(ADJACENT, View(GAMMA, n_step), bootstrap)
    assert columns_of(found) == expected
    rows = [e.row for e in expected]
    assert found.g.tolist() == [V_HAT[row] for row in rows]
    assert found.action.tolist() == [TAKEN[row] for row in rows]


def test_a_long_episode_by_hand() -> None:
    # Windows of 3 that do not reach the end of a truncated episode: the discount is γ³ there.
    actions, rewards = [1, 2, 3, 4, 5], [1.0, 2.0, 4.0, 8.0, 16.0]
    data = Dataset.from_episodes([episode(actions, rewards, terminated=False)], 6)
    view = View(GAMMA, 3)
    assert columns_of(transitions(data, view, "pair")) == [
        Expected(0, 3, 3, 0.125, 4),
        Expected(1, 4, 6, 0.125, 5),
        Expected(2, 4, 8, 0.25, 5),
        Expected(3, 4, 8, 0.5, 5),
    ]
    assert columns_of(transitions(data, view, "state")) == [
        Expected(0, 3, 3, 0.125, 4),
        Expected(1, 4, 6, 0.125, 5),
        Expected(2, 5, 12, 0.125, None),
        Expected(3, 5, 16, 0.25, None),
        Expected(4, 5, 16, 0.5, None),
    ]
    assert transitions(data, view, "state").g.tolist() == [5, 8, 12, 16, 16]


def test_dtypes_and_missing_actions() -> None:
    found = transitions(ADJACENT, View(GAMMA))
    kinds = [column.dtype.name for column in found]
    assert kinds == ["int64", "int64", "int32", "float32", "float32", "int32", "bool", "float32"]
    assert (found.next_action[~found.has_next_action] == 0).all()


def random_dataset(seed: int) -> Dataset:
    rng = np.random.default_rng(seed)
    episodes = []
    for _ in range(rng.integers(1, 9)):
        length = int(rng.integers(1, 13))
        made = episode(
            [int(a) for a in rng.integers(0, 5, length)],
            [float(r) for r in rng.normal(scale=3, size=length)],
            terminated=bool(rng.random() < 0.5),
        )
        unknown = rng.random(length + 1) < (0.2 if seed % 3 == 0 else 0)
        action = np.where(unknown, NO_ACTION, made.action)
        episodes.append(made._replace(action=action))
    return Dataset.from_episodes(episodes, 5)


def slow_reference(data: Dataset, view: View, bootstrap: Bootstrap) -> dict[str, list[float]]:
    """One episode and one decision at a time, in Python floats."""
    names = ("row", "next_row", "action", "reward", "discount", "next_action", "has_next", "g")
    columns: dict[str, list[float]] = {name: [] for name in names}
    for index in range(data.num_episodes):
        ep = data.episode(index)
        start = int(data.offsets[index])
        decisions = len(ep.action) - 1
        rewards = [float(r) for r in ep.reward[:decisions]]
        if view.clip_rewards:
            rewards = [min(max(r, -1.0), 1.0) for r in rewards]
        for t in range(decisions):
            if ep.action[t] < 0:
                continue
            end = min(t + view.n_step, decisions)
            if bootstrap == "pair" and not ep.terminated and end == decisions:
                end = decisions - 1
            over = ep.terminated and end == decisions
            next_action = int(ep.action[end]) if end < decisions else -1
            if bootstrap == "pair" and (end == t or (next_action < 0 and not over)):
                continue
            values = (
                start + t,
                start + end,
                int(ep.action[t]),
                math.fsum(view.gamma ** (k - t) * rewards[k] for k in range(t, end)),
                0.0 if over else view.gamma ** (end - t),
                max(next_action, 0),
                next_action >= 0,
                math.fsum(view.gamma ** (k - t) * rewards[k] for k in range(t, decisions)),
            )
            for name, value in zip(names, values, strict=True):
                columns[name].append(value)
    return columns


@pytest.mark.parametrize("seed", range(40))
def test_equals_the_slow_reference(seed: int) -> None:
    data = random_dataset(seed)
    for gamma in (0, 0.9, 1):
        for n_step in range(1, 6):
            for bootstrap in MODES:
                view = View(gamma, n_step, clip_rewards=seed % 2 == 0)
                expected = slow_reference(data, view, bootstrap)
                found = transitions(data, view, bootstrap)
                case = f"gamma {gamma}, n {n_step}, {bootstrap}"
                for column, (name, values) in zip(found, expected.items(), strict=True):
                    np.testing.assert_allclose(
                        column, values, rtol=1e-6, atol=1e-6, err_msg=f"{case}: {name}"
                    )


@pytest.mark.parametrize("seed", range(10))
def test_an_episode_reads_the_same_alone_as_among_others(seed: int) -> None:
    data = random_dataset(seed)
    view = View(0.9, 3)
    for bootstrap in MODES:
        together = transitions(data, view, bootstrap)
        for index in range(data.num_episodes):
            alone = transitions(Dataset.from_episodes([data.episode(index)], 5), view, bootstrap)
            start, stop = data.offsets[index : index + 2]
            mine = (together.row >= start) & (together.row < stop)
            np.testing.assert_array_equal(together.row[mine] - start, alone.row)
            np.testing.assert_array_equal(together.next_row[mine] - start, alone.next_row)
            for ours, theirs in zip(together[2:], alone[2:], strict=True):
                np.testing.assert_array_equal(ours[mine], theirs)


def test_reward_to_go_is_summed_in_float64() -> None:
    rewards = np.full(3001, 0.1, np.float32)
    rewards[-1] = 0
    found = reward_to_go(rewards, np.array([0, 3001]), 1.0)
    assert found.dtype == np.float64
    assert found[0] == pytest.approx(3000 * float(np.float32(0.1)), rel=1e-13)


def test_a_fragment_takes_its_episode_s_return() -> None:
    fragment = episode([1, 2], [1, 2], terminated=False)._replace(complete=False)
    data = Dataset.from_episodes(
        [fragment._replace(episode_return=77.0), episode([3], [4], terminated=True)], 4
    )
    found = transitions(data, View(GAMMA))
    assert found.g.tolist() == [77, 77, 4]
    assert found.reward.tolist() == [1, 2, 4]


def test_a_sarsa_tuple_holds_both_actions() -> None:
    # (s, a, r, s', a') cut out of an episode; its final row is a state, not a decision.
    def sarsa(action: int, reward: float, next_action: int, ended: bool) -> Episode:
        last = NO_ACTION if ended else next_action
        return Episode(
            np.zeros((2, 1)), np.array([action, last]), np.array([reward, 0.0]), ended, False, 9.0
        )

    data = Dataset.from_episodes([sarsa(1, 2, 3, False), sarsa(2, 4, 0, True)], 4)
    for n_step in (1, 3):
        for bootstrap in MODES:
            found = transitions(data, View(GAMMA, n_step), bootstrap)
            assert columns_of(found) == [Expected(0, 1, 2, 0.5, 3), Expected(2, 3, 4, 0, None)]


def test_unknown_actions_are_dropped() -> None:
    data = Dataset.from_episodes([episode([1, -1, 3, 4], [1, 2, 4, 8], terminated=True)], 5)
    # The reward of the unknown action still counts in V̂ and in windows across it.
    v_hat = {0: 4.0, 2: 8.0, 3: 8.0}

    one_state = transitions(data, View(GAMMA), "state")
    assert columns_of(one_state) == [
        Expected(0, 1, 1, 0.5, None),
        Expected(2, 3, 4, 0.5, 4),
        Expected(3, 4, 8, 0, None),
    ]
    assert one_state.g.tolist() == list(v_hat.values())
    # No pair to bootstrap from at row 1: row 0 goes too.
    assert columns_of(transitions(data, View(GAMMA), "pair")) == [
        Expected(2, 3, 4, 0.5, 4),
        Expected(3, 4, 8, 0, None),
    ]
    # A window of 2 reaches over the gap.
    assert columns_of(transitions(data, View(GAMMA, 2), "pair")) == [
        Expected(0, 2, 2, 0.25, 3),
        Expected(2, 4, 8, 0, None),
        Expected(3, 4, 8, 0, None),
    ]


def test_clipped_rewards_reach_sums_and_v_hat() -> None:
    data = Dataset.from_episodes([episode([0, 1, 0], [5, -0.25, -7], terminated=True)], 2)
    found = transitions(data, View(GAMMA, 2, clip_rewards=True))
    assert found.reward.tolist() == [1 - 0.125, -0.25 - 0.5, -1]
    assert found.g.tolist() == [1 - 0.125 - 0.25, -0.25 - 0.5, -1]
    assert data.reward.tolist() == [5, -0.25, -7, 0]


def test_the_defaults_of_a_view() -> None:
    assert View() == View(gamma=0.99, n_step=1, clip_rewards=False)


@pytest.mark.parametrize("gamma", [-0.1, 1.1, math.nan, math.inf])
def test_a_view_refuses_a_wrong_gamma(gamma: float) -> None:
    with pytest.raises(ValueError, match=rf"gamma must lie in \[0, 1\]; got {gamma}"):
        View(gamma)


@pytest.mark.parametrize("n_step", [0, -3])
def test_a_view_refuses_a_wrong_window(n_step: int) -> None:
    with pytest.raises(ValueError, match=f"n_step must be at least 1; got {n_step}"):
        View(n_step=n_step)


def test_an_unknown_bootstrap_is_refused() -> None:
    with pytest.raises(ValueError, match="state, pair, return or none; got 'pairs'"):
        transitions(ADJACENT, View(), "pairs")  # type: ignore[arg-type]
