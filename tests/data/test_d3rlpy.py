"""d3rlpy's replay buffer, from files laid out as d3rlpy 2.8.1 (dump version 2.1) writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from rbve.data import Dataset, load
from rbve.data.formats import read, recognise, writable

EPISODES = [([0, 3], [0.25, -1], True), ([1], [2], False), ([3, 3, 0], [0, 0, 5], False)]


def dump(path: Path, **changes: Any) -> Path:
    """Three episodes as ReplayBuffer.dump stores them; None removes an entry."""
    held: dict[str, Any] = {
        "columns": ["observations", "actions", "rewards", "terminated"],
        "num_episodes": len(EPISODES),
        "version": "2.1",
    }
    for index, (actions, rewards, terminated) in enumerate(EPISODES):
        steps = np.arange(len(actions))
        held[f"observations_{index}"] = np.stack([steps, steps + 10 * index], 1).astype(np.float32)
        held[f"actions_{index}"] = np.array(actions)[:, None]
        held[f"rewards_{index}"] = np.array(rewards, np.float32)[:, None]
        held[f"terminated_{index}"] = terminated
    with h5py.File(path / "buffer.h5", "w") as file:
        for name, values in (held | changes).items():
            if values is not None:
                file.create_dataset(name, data=values)
    return path / "buffer.h5"


def test_every_value_is_read(tmp_path: Path) -> None:
    path = dump(tmp_path)
    assert recognise(path) == "d3rlpy"
    source = read(path)
    assert source.total == 3
    found = Dataset.join(source.parts)
    assert source.position() == 3
    np.testing.assert_array_equal(found.offsets, [0, 3, 5, 9])
    # The row after the last step repeats its observation.
    np.testing.assert_array_equal(
        found.obs,
        [[0, 0], [1, 1], [1, 1], [0, 10], [0, 10], [0, 20], [1, 21], [2, 22], [2, 22]],
    )
    assert found.obs.dtype == np.float32
    np.testing.assert_array_equal(found.action, [0, 3, -1, 1, -1, 3, 3, 0, -1])
    np.testing.assert_array_equal(found.reward, [0.25, -1, 0, 2, 0, 0, 0, 5, 0])
    np.testing.assert_array_equal(found.terminated, [True, False, False])
    np.testing.assert_array_equal(found.finals_known, [False, False, False])
    np.testing.assert_array_equal(found.episode_return, [-0.75, 2, 5])
    assert found.complete.all()
    assert found.actions == ("0", "1", "2", "3")
    assert found.provenance == {"source": "buffer.h5", "format": "d3rlpy", "version": "2.1"}
    assert "no final observation" in source.notes[0]
    assert "taken to be 0 to 3, the largest seen; never seen: 2" in source.notes[1]
    assert "d3rlpy" not in writable()


def test_whole_floats_are_discrete_actions(tmp_path: Path) -> None:
    """As for d3rlpy; frames and flags of other types are read too."""
    frames = np.arange(2 * 12, dtype=np.uint8).reshape(2, 3, 2, 2)
    path = dump(
        tmp_path,
        num_episodes=1,
        observations_0=frames,
        actions_0=np.array([1.0, 0.0]),
        rewards_0=np.array([1, 2]),
        terminated_0=0,
    )
    source = read(path)
    found = Dataset.join(source.parts)
    np.testing.assert_array_equal(found.obs, frames[[0, 1, 1]])
    np.testing.assert_array_equal(found.action, [1, 0, -1])
    np.testing.assert_array_equal(found.reward, [1, 2, 0])
    np.testing.assert_array_equal(found.terminated, [False])
    assert found.obs.dtype == np.uint8
    assert len(source.notes) == 1


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "continuous": (
        {"actions_1": np.array([[0.5]])},
        r"episode 1, step 0: action 0.5; discrete actions are 0, 1, 2, ... \(continuous ones",
    ),
    "several": ({"actions_2": np.zeros((3, 2))}, r"episode 2: actions have shape \(2,\)"),
    "negative": ({"actions_1": np.array([[-1]])}, "episode 1, step 0: action -1"),
    "absurd": ({"actions_1": np.array([[1 << 40]])}, "episode 1, step 0: action 1099511627776"),
    "nan action": ({"actions_1": np.array([[np.nan]])}, "episode 1, step 0: action nan"),
    "no steps": ({"actions_1": np.zeros((0, 1), int)}, "episode 1: .*at least one decision"),
    "tuples": (
        {"observations_1": None, "observations_1_0": np.zeros((1, 2))},
        "episode 1: observations are tuples of arrays",
    ),
    "rows": ({"observations_1": np.zeros((2, 2))}, r"1 actions and observations of shape \(2, 2\)"),
    "shape": ({"observations_1": np.zeros((1, 3), "f4")}, r"episode 1: observations have shape"),
    "type": ({"observations_1": np.zeros((1, 2))}, "episode 1: observations are float64, those"),
    "rewards": ({"rewards_1": np.zeros((1, 2))}, r"1 actions and rewards of shape \(1, 2\)"),
    "nan": ({"rewards_1": np.array([[np.nan]])}, "episode 1, step 0: the reward is not finite"),
    "flag": ({"terminated_1": 0.5}, "episode 1: 'terminated' is float64"),
    "missing": ({"rewards_1": None}, "lacks 'rewards_1'"),
    "count": ({"num_episodes": 4}, "lacks 'actions_3'"),
    "none": ({"num_episodes": 0}, "the buffer is empty or damaged"),
    "version": ({"version": "3.0"}, "a dump of version '3.0'; this library reads 2.x"),
    "words": ({"rewards_1": ["a"]}, "'rewards_1': holds object; it needs numbers"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named(tmp_path: Path, fault: str) -> None:
    changes, message = FAULTS[fault]
    with pytest.raises(ValueError, match=rf"buffer.h5.*{message}") as caught:
        load(dump(tmp_path, **changes))
    assert "\n" not in str(caught.value)


def test_version_1_is_told_what_to_do(tmp_path: Path) -> None:
    """As MDPDataset.dump of d3rlpy 1 wrote it."""
    with h5py.File(tmp_path / "old.h5", "w") as file:
        for name in ("observations", "actions", "rewards", "terminals", "episode_terminals"):
            file[name] = np.zeros(3)
        file["discrete_action"] = True
        file["version"] = "1.0"
    assert recognise(tmp_path / "old.h5") == "d3rlpy"
    with pytest.raises(ValueError, match=r"old.h5: a dataset of d3rlpy 1; load it with .*load_v1"):
        load(tmp_path / "old.h5")


def test_what_is_no_dump(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = 1
    with pytest.raises(ValueError, match=r"other.h5: no dataset of a known format"):
        load(tmp_path / "other.h5")
    with pytest.raises(ValueError, match=r"other.h5: lacks 'version', 'columns' or 'num_episodes'"):
        load(tmp_path / "other.h5", "d3rlpy")
    (tmp_path / "text.h5").write_text("no HDF5")
    with pytest.raises(ValueError, match=r"text.h5: not an HDF5 file"):
        load(tmp_path / "text.h5", "d3rlpy")
    path = dump(tmp_path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ValueError, match=r"buffer.h5: cannot be read .*damaged"):
        load(path)
