"""Logs as CSV and as Parquet: lone transitions, fragments, masks, propensities."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from support.logs import joined_with_notes as joined
from support.logs import said

from rbve.data import transitions
from rbve.data.logs import LogOptions
from rbve.data.transitions import View

Make = Callable[..., Path]


def steps(**more: Any) -> dict[str, list[Any]]:
    return {
        "episode": [1, 1, 2, 2, 2],
        "x": [0.5, 1.5, 2.5, 3.5, 4.5],
        "action": [0, 1, 1, 0, 1],
        "reward": [1.0, 2.0, 3.0, 4.0, 5.0],
        **more,
    }


# Lone transitions and fragments


def test_lone_sarsa_tuples(make: Make) -> None:
    data, notes = joined(
        make(
            s=[1.0, 2.0, 3.0],
            s2=[10.0, 20.0, None],
            a=["up", "down", "up"],
            a2=["down", None, None],
            r=[0.5, 1.5, 2.5],
            end=[0, 0, 1],
        ),
        LogOptions(
            observation=("s",),
            next_observation=("s2",),
            action="a",
            next_action="a2",
            reward="r",
            terminated="end",
        ),
    )
    assert data.actions == ("down", "up")
    np.testing.assert_array_equal(data.offsets, [0, 2, 4, 6])
    np.testing.assert_array_equal(data.obs[:, 0], [1, 10, 2, 20, 3, 3])
    np.testing.assert_array_equal(data.action, [1, 0, 0, -1, 1, -1])
    np.testing.assert_array_equal(data.reward, [0.5, 0, 1.5, 0, 2.5, 0])
    np.testing.assert_array_equal(data.terminated, [False, False, True])
    np.testing.assert_array_equal(data.finals_known, [True, True, False])
    assert not data.complete.any()
    assert said(notes, "transition of its own", "--episode")
    # BVE trains on the pair and on the termination.
    found = transitions(data, View(gamma=0.5), "pair")
    np.testing.assert_array_equal(found.row, [0, 4])
    np.testing.assert_array_equal(found.next_action[:1], [0])
    np.testing.assert_array_equal(found.discount, [0.5, 0])


def test_categories_that_only_come_next(make: Make) -> None:
    data, _ = joined(
        make(
            s=["b", "c"],
            s2=["c", "a"],
            action=[0, 1],
            reward=[1, 1],
            legal_0=[1, 0],
            legal_1=[0, 1],
        ),
        LogOptions(observation=("s",), next_observation=("s2",)),
    )
    assert data.features is not None
    assert data.features.columns[0].categories == ("a", "b", "c")
    np.testing.assert_array_equal(data.obs[:, 0], [1, 2, 2, 0])
    # What is legal after a transition is unknown, so anything may be.
    assert data.legal is not None
    np.testing.assert_array_equal(data.legal, [[1, 0], [1, 1], [0, 1], [1, 1]])


def test_a_terminated_fragment_has_no_next_action(make: Make) -> None:
    data, _ = joined(
        make(
            episode=[1, 1, 2, 2],
            x=[1, 2, 3, 4],
            action=[0, 1, 1, 1],
            reward=[1, None, 2, None],
            terminated=[0, 1, 0, 0],
            complete=[0, 0, 0, 0],
        )
    )
    np.testing.assert_array_equal(data.action, [0, -1, 1, 1])
    np.testing.assert_array_equal(data.terminated, [True, False])  # in the final row, too
    assert data.finals_known.all()


def test_a_terminated_tuple_has_no_next_action(make: Make) -> None:
    data, _ = joined(
        make(
            x=[1, 2],
            next_observation_x=[3, 4],
            action=[0, 1],
            next_action=[1, 1],
            reward=[1, 1],
            terminated=[1, 0],
        )
    )
    np.testing.assert_array_equal(data.action, [0, -1, 1, 1])


def test_tuples_without_flags_go_on(make: Make) -> None:
    data, notes = joined(make(x=[1, 2], next_observation_x=[3, 4], action=[0, 1], reward=[1, 1]))
    assert not data.terminated.any()
    assert said(notes, "every transition goes on")


def test_fragments_know_their_return(make: Make) -> None:
    data, _ = joined(
        make(
            **steps(
                complete=[True, True, False, False, False],
                episode_return=[None, None, 70.5, 70.5, 70.5],
            )
        )
    )
    np.testing.assert_array_equal(data.complete, [True, False])
    np.testing.assert_array_equal(data.episode_return, [3, 70.5])


# Masks, propensities, executed actions


def test_optional_columns(make: Make) -> None:
    data, _ = joined(
        make(
            **steps(
                legal_0=[1, 1, 0, 1, 0],
                legal_1=[1, 1, 1, 0, 1],
                legal_2=[0, 0, 0, 1, 0],
                executed=[0, 0, 1, 0, 2],
                propensity=[0.5, 0.25, 1.0, 0.125, 0.75],
            )
        )
    )
    assert data.actions == ("0", "1", "2")
    assert data.legal is not None
    assert data.executed is not None
    assert data.propensity is not None
    np.testing.assert_array_equal(data.executed, [0, 0, -1, 1, 0, 2, -1])
    np.testing.assert_array_equal(
        data.legal[[0, 1, 3, 4, 5]],
        np.array([[1, 1, 0], [1, 1, 0], [0, 1, 0], [1, 0, 1], [0, 1, 0]], bool),
    )
    np.testing.assert_array_equal(data.propensity[[0, 1, 3, 4, 5]], [0.5, 0.25, 1, 0.125, 0.75])
    assert data.propensity.dtype == np.float32
    np.testing.assert_array_equal(data.obs[:2, 0], [0.5, 1.5])
    assert data.obs.shape == (7, 1)


def test_mask_columns_are_matched_by_name(make: Make) -> None:
    log = steps(ok_wait=[1, 1, 1, 0, 0], ok_go=[0, 1, 0, 1, 1], ok_stop=[1, 1, 1, 0, 0])
    log["action"] = ["stop", "wait", "wait", "go", "go"]
    data, _ = joined(make(**log), LogOptions(legal="ok_*"))
    assert data.legal is not None
    assert data.actions == ("wait", "go", "stop")  # as the masks have them
    np.testing.assert_array_equal(data.action[[0, 1, 3, 4, 5]], [2, 0, 0, 1, 1])
    np.testing.assert_array_equal(data.legal[0], [True, False, True])
    data, _ = joined(make(**log), LogOptions(legal="ok_*", actions=("go", "stop", "wait")))
    assert data.legal is not None
    np.testing.assert_array_equal(data.legal[0], [False, True, True])
    np.testing.assert_array_equal(data.action[0], 1)


def test_masks_of_the_next_state(make: Make) -> None:
    data, _ = joined(
        make(
            x=[1, 2],
            next_observation_x=[3, 4],
            action=[0, 1],
            reward=[1, 1],
            legal_0=[1, 0],
            legal_1=[0, 1],
            after_0=[0, 1],
            after_1=[1, 1],
        ),
        LogOptions(next_legal="after_*"),
    )
    assert data.legal is not None
    np.testing.assert_array_equal(data.legal, [[1, 0], [0, 1], [0, 1], [1, 1]])
