"""Logs of one row per decision, as CSV and as Parquet: what episodes they become."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.logs import joined_with_notes as joined
from support.logs import said

from rbve.data import load, transitions, write
from rbve.data.formats import read
from rbve.data.logs import LogOptions
from rbve.data.transitions import View

Make = Callable[..., Path]


# The new user's file: columns of one's own, names as actions, no end flag

VISITS = LogOptions(
    episode="visit",
    action="treatment",
    reward="outcome",
    observation=("age", "blood_pressure", "ward"),
)


def visits(make: Make) -> Path:
    return make(
        visit=["v1", "v1", "v2", "v3", "v3", "v3"],
        age=[61, 61, 35, 48, 48, 49],
        blood_pressure=[140.5, 128.0, 119.0, 150.25, 141.0, 133.5],
        ward=["B", "A", "B", "C", "C", "A"],
        treatment=["beta blocker", "none", "none", "aspirin", "none", "aspirin"],
        outcome=[0.0, 1.5, -1.0, 0.25, 0.5, 2.0],
        clerk=["x", "y", "z", "x", "y", "z"],
    )


def test_a_table_of_ones_own(make: Make) -> None:
    data, notes = joined(visits(make), VISITS)
    assert data.actions == ("aspirin", "beta blocker", "none")
    np.testing.assert_array_equal(data.action, [1, 2, -1, 2, -1, 0, 2, 0, -1])
    np.testing.assert_array_equal(data.reward, [0, 1.5, 0, -1, 0, 0.25, 0.5, 2, 0])
    np.testing.assert_array_equal(data.offsets, [0, 3, 5, 9])
    np.testing.assert_array_equal(data.episode_return, [1.5, -1, 2.75])
    assert data.terminated.all()
    assert data.complete.all()
    assert not data.finals_known.any()
    assert data.action.dtype == np.int32
    assert data.reward.dtype == np.float32
    # Raw values, categories as their index; the filler repeats the last row.
    np.testing.assert_array_equal(
        data.obs,
        [
            [61, 140.5, 1],
            [61, 128, 0],
            [61, 128, 0],
            [35, 119, 1],
            [35, 119, 1],
            [48, 150.25, 2],
            [48, 141, 2],
            [49, 133.5, 0],
            [49, 133.5, 0],
        ],
    )
    assert data.obs.dtype == np.float32
    assert data.features is not None
    age, pressure, ward = data.features.columns
    assert (age.name, age.kind) == ("age", "number")
    assert age.mean == pytest.approx(302 / 6, rel=1e-15)
    assert age.scale == pytest.approx(np.sqrt(15676 / 6 - (302 / 6) ** 2), rel=1e-12)
    assert pressure.mean == pytest.approx(812.25 / 6, rel=1e-15)
    assert ward.categories == ("A", "B", "C")
    assert said(notes, "terminated", "--ends truncated")
    assert data.provenance["source"].startswith("log.")


def test_a_table_of_ones_own_goes_into_a_store(make: Make, tmp_path: Path) -> None:
    write(read(visits(make), options=VISITS), tmp_path / "visits")
    stored = load(tmp_path / "visits")
    expected, _ = joined(tmp_path / visits(make).name, VISITS)
    np.testing.assert_array_equal(stored.obs, expected.obs)
    np.testing.assert_array_equal(stored.action, expected.action)
    assert stored.features == expected.features
    assert stored.actions == expected.actions
    # All six decisions train, the last ones too: nothing follows a termination.
    for bootstrap in ("state", "pair", "none"):
        found = transitions(stored, View(gamma=0.5), bootstrap)  # type: ignore[arg-type]
        assert len(found.row) == 6
        np.testing.assert_array_equal(found.discount, [0.5, 0, 0, 0.5, 0.5, 0])


def test_a_policy_takes_rows_of_the_log(make: Make) -> None:
    data, _ = joined(visits(make), VISITS)
    assert data.features is not None
    row = data.features.rows({"age": 49, "ward": "A", "blood_pressure": "133.5", "clerk": "x"})
    np.testing.assert_array_equal(row, data.obs[8:9])
    np.testing.assert_array_equal(data.features.encode(row)[0, 2:], [1, 0, 0])


# Ends


def steps(**more: Any) -> dict[str, list[Any]]:
    return {
        "episode": [1, 1, 2, 2, 2],
        "x": [0.5, 1.5, 2.5, 3.5, 4.5],
        "action": [0, 1, 1, 0, 1],
        "reward": [1.0, 2.0, 3.0, 4.0, 5.0],
        **more,
    }


def test_the_end_that_is_assumed_can_be_chosen(make: Make) -> None:
    path = make(**steps())
    data, notes = joined(path, LogOptions(ends="truncated"))
    np.testing.assert_array_equal(data.terminated, [False, False])
    assert not said(notes, "count as truncated")  # it was said, not assumed


def test_flags_tell_ends_apart(make: Make) -> None:
    data, notes = joined(
        make(**steps(terminated=[0, 1, 0, 0, 0], truncated=["no", "no", "no", "no", "yes"]))
    )
    np.testing.assert_array_equal(data.terminated, [True, False])
    assert not said(notes, "--ends")
    assert not said(notes, "without a flag")


def test_an_episode_without_a_flag_is_truncated(make: Make) -> None:
    data, notes = joined(make(**steps(terminated=[False, True, False, False, False])))
    np.testing.assert_array_equal(data.terminated, [True, False])
    assert said(notes, "1 episode ends without a flag")


def test_only_truncations_are_flagged(make: Make) -> None:
    data, notes = joined(make(**steps(truncated=[0, 1, 0, 0, 0])))
    np.testing.assert_array_equal(data.terminated, [False, True])
    assert said(notes, "without that flag", "terminated")


def test_flags_alone_cut_episodes_and_the_rest_is_kept(make: Make) -> None:
    log = steps(terminated=[0, 1, 0, 0, 0], truncated=[0, 0, 1, 0, 0])
    del log["episode"]
    data, notes = joined(make(**log))
    np.testing.assert_array_equal(data.lengths, [2, 1, 2])
    np.testing.assert_array_equal(data.terminated, [True, False, False])
    assert said(notes, "last 2 rows have no end", "truncated")
    assert not said(notes, "without a flag")


def test_flags_cut_after_the_final_row_that_follows(make: Make) -> None:
    data, notes = joined(
        make(
            x=[1, 2, 3, 4, 5, 6, 7],
            action=[0, 1, None, 1, 0, 1, None],
            reward=[1, 2, None, 3, 4, 5, 0],
            terminated=[0, 1, 0, 1, 0, 0, None],
            truncated=[0, 0, 0, 0, 0, 1, None],
        )
    )
    np.testing.assert_array_equal(data.offsets, [0, 3, 5, 8])
    np.testing.assert_array_equal(data.terminated, [True, True, False])
    np.testing.assert_array_equal(data.finals_known, [True, False, True])
    np.testing.assert_array_equal(data.obs[:, 0], [1, 2, 3, 4, 4, 5, 6, 7])
    assert not said(notes, "no end")


# Final observations


def test_an_empty_action_marks_the_final_observation(make: Make) -> None:
    data, _ = joined(
        make(
            episode=[1, 1, 1, 2, 3, 3],
            x=[1.5, 2.5, 3.5, 4.5, 5.5, 6.5],
            action=[0, 1, None, 1, 0, None],
            reward=[1, 2, None, 3, 4, 0],
            truncated=[0, 1, None, 1, 0, 1],
        )
    )
    np.testing.assert_array_equal(data.offsets, [0, 3, 5, 7])
    np.testing.assert_array_equal(data.obs[:, 0], [1.5, 2.5, 3.5, 4.5, 4.5, 5.5, 6.5])
    np.testing.assert_array_equal(data.action, [0, 1, -1, 1, -1, 0, -1])
    np.testing.assert_array_equal(data.reward, [1, 2, 0, 3, 0, 4, 0])
    np.testing.assert_array_equal(data.finals_known, [True, False, True])
    assert not data.terminated.any()  # the flag may stand in the final row


def test_the_next_observation_of_the_last_row_is_the_final_one(make: Make) -> None:
    data, _ = joined(
        make(**steps(next_observation_x=[1.5, 9.5, 3.5, 4.5, 8.5])), LogOptions(observation=("x",))
    )
    np.testing.assert_array_equal(data.obs[:, 0], [0.5, 1.5, 9.5, 2.5, 3.5, 4.5, 8.5])
    assert data.finals_known.all()


def test_a_missing_next_observation_leaves_a_filler(make: Make) -> None:
    data, _ = joined(
        make(**steps(after=[1.5, None, 3.5, 4.5, 8.5])),
        LogOptions(observation=("x",), next_observation=("after",), ends="truncated"),
    )
    np.testing.assert_array_equal(data.obs[:, 0], [0.5, 1.5, 1.5, 2.5, 3.5, 4.5, 8.5])
    np.testing.assert_array_equal(data.finals_known, [False, True])
