"""What an audit reads of large data, and that it says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbve.audit import _reading as reading
from rbve.audit import audit
from rbve.data import Dataset, Episode
from rbve.data.dataset import MappedRows


class Counting:
    """A column on disk that notes how much of it is read at a time."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.most, self.total = values, 0, 0
        self.shape, self.dtype, self.ndim = values.shape, values.dtype, values.ndim

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> np.ndarray:
        found = self.values[index]
        self.most, self.total = max(self.most, found.nbytes), self.total + found.nbytes
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise AssertionError("the whole column was asked for")


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "CHUNK_BYTES", 2000)
    monkeypatch.setattr(reading, "SAMPLE_BYTES", 8000)
    monkeypatch.setattr(reading, "SAMPLE_ROWS", 400)
    monkeypatch.setattr(reading, "STRETCHES", 4)


def test_chunks_change_nothing(walk_log: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    before = audit(walk_log)
    monkeypatch.setattr(reading, "CHUNK_BYTES", 1000)
    after = audit(walk_log)
    assert after.scan.duplicate_columns == before.scan.duplicate_columns
    for old, new in zip(before.scan.columns, after.scan.columns, strict=True):
        assert (new.low, new.high) == (old.low, old.high)
        assert (new.mean, new.deviation) == pytest.approx((old.mean, old.deviation))


def test_small_data_is_read_in_chunks_and_whole(walk_log: Dataset, small_limits: None) -> None:
    column = Counting(walk_log.obs)
    found = audit(replace(walk_log, obs=column))
    assert found.scan.whole
    assert found.scan.rows == len(walk_log.action)
    assert column.most <= 2000
    assert not found.support.whole
    assert "regions rest on 400 decisions, drawn at random" in found.notes


def test_the_first_of_several_gaps_is_named(walk_log: Dataset, small_limits: None) -> None:
    obs = walk_log.obs.copy()
    obs[walk_log.offsets[[20, 90]]] = np.nan
    (finding,) = audit(replace(walk_log, obs=obs)).findings
    assert "in 2 of" in finding.seen
    assert "first in episode 20, step 0" in finding.seen


def test_large_data_is_sampled(
    walk_log: Dataset, small_limits: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = walk_log.obs.nbytes // 3
    monkeypatch.setattr(reading.reach, "__defaults__", (limit,))
    column = Counting(walk_log.obs)
    found = audit(replace(walk_log, obs=column))
    assert not found.scan.whole
    assert limit / 2 < found.scan.rows * 16 <= limit
    assert found.counts.transitions == walk_log.num_transitions  # counts stay exact
    assert found.support.counts == np.bincount(walk_log.action[walk_log.action >= 0]).tolist()
    assert any("drawn at random (seed 0)" in note for note in found.notes)
    assert column.most <= 2000
    assert found.findings == []


def test_stretches_hold_whole_episodes(walk_log: Dataset) -> None:
    found = reading.reach(walk_log, seed=1, limit=16 * 500)
    assert not found.whole
    assert found.rows is not None
    assert 0 < len(found.rows) <= 500
    expected = np.concatenate(
        [np.arange(walk_log.offsets[e], walk_log.offsets[e + 1]) for e in found.episodes]
    )
    assert np.array_equal(found.rows, expected)
    assert np.array_equal(np.diff(found.offsets), walk_log.lengths[found.episodes] + 1)
    assert not np.array_equal(found.rows, reading.reach(walk_log, 2, 16 * 500).rows)


def test_one_episode_beyond_the_limit_is_still_read(walk_log: Dataset) -> None:
    assert len(reading.reach(walk_log, seed=0, limit=16).episodes) == 1


def test_mapped_columns_and_chosen_rows(walk_log: Dataset, tmp_path: Path) -> None:
    file = np.memmap(tmp_path / "obs", walk_log.obs.dtype, "w+", shape=walk_log.obs.shape)
    file[:] = walk_log.obs
    expected = audit(walk_log)
    assert audit(replace(walk_log, obs=file)) == expected
    rows = MappedRows(file, np.arange(len(file)))
    assert audit(replace(walk_log, obs=rows)) == expected


def test_pictures(walk_log: Dataset) -> None:
    """A square whose place is the state: actions still differ over the state space."""
    place = np.clip(np.round(walk_log.obs[:, :2] * 6 + 16), 0, 28).astype(int)
    frames = np.zeros((len(place), 32, 32, 1), np.uint8)
    for frame, (x, y) in zip(frames, place, strict=True):
        frame[x : x + 4, y : y + 4] = 200
    found = audit(replace(walk_log, obs=frames))
    assert found.findings == []
    assert found.scan.columns == []  # entries of a picture are no columns
    assert found.scan.high == 200
    assert found.shift.verdicts == {"late": "ruled out", "early": "ruled out"}
    blind = audit(replace(walk_log, obs=np.full_like(frames, 200)))
    assert len(blind.support.cells) == 1
    assert found.support.entropy < blind.support.entropy - 0.02


def test_pictures_are_averaged_down() -> None:
    frames = np.arange(2 * 24 * 36 * 3, dtype=np.float64).reshape(2, 24, 36, 3)
    found = reading.smaller(frames)
    assert found.shape == (2, 12, 12, 3)
    assert found[1, 2, 3, 1] == pytest.approx(frames[1, 4:6, 9:12, 1].mean())
    board = np.zeros((2, 10, 5))
    assert reading.smaller(board).shape == board.shape


def test_boards_and_one_hot_states_may_hold_constants(walk_log: Dataset) -> None:
    rng = np.random.default_rng(0)
    board = np.zeros((len(walk_log.obs), 4, 3), np.float32)
    board[:, :2] = rng.normal(size=(len(board), 2, 3))
    assert audit(replace(walk_log, obs=board)).scan.columns == []
    visited = np.eye(9, dtype=np.float32)[rng.integers(7, size=len(board))]
    found = audit(replace(walk_log, obs=visited))
    assert "constant columns" not in [finding.name for finding in found.findings]


def test_equal_episodes_are_no_fault_where_states_recur(catch_log: Dataset) -> None:
    found = audit(catch_log.select(np.arange(300), "some"))
    assert found.scan.copies > 0
    assert found.scan.chance_copies
    assert "episodes logged twice" not in [finding.name for finding in found.findings]
    assert any("with an equal one before" in note for note in found.notes)


def test_equal_clicks_are_no_fault_where_contexts_recur(bandit_log: Dataset) -> None:
    """Rows that differ do so by their action or reward: the contexts show that states recur."""
    few = np.round(bandit_log.obs / np.array([10, 1]))
    found = audit(replace(bandit_log, obs=few, features=None, propensity=None))
    assert found.scan.copies > 3000
    assert [finding.name for finding in found.findings] == []


def test_the_share_of_repeated_rows() -> None:
    state = np.zeros((5, 2))
    still = Episode.from_steps(state, [1, 1, 1, 0], [0, 0, 0, 0], True)
    moving = Episode.from_steps(np.arange(6.0).reshape(3, 2), [1, 0], [0, 0], True)
    # The truncated fragment's last row equals the one before and is no decision.
    fragment = Episode(state[:2] + 9, np.array([1, 1]), np.zeros(2), False, False, 1.0)
    found = audit(Dataset.from_episodes([still, moving, fragment], 2))
    assert found.scan.repeated_rows == pytest.approx(2 / 4)


def test_many_actions(bandit_log: Dataset) -> None:
    """Sixty thousand ids must not cost a matrix of sixty thousand columns a row."""
    names = tuple(map(str, range(60_000)))
    found = audit(replace(bandit_log, actions=names, propensity=None))
    assert "holes in the action ids" in [finding.name for finding in found.findings]
