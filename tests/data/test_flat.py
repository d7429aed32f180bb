"""Flat arrays as offline RL saves them: where episodes end, and what is unknown about them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbve.data import Dataset, flat, load
from rbve.data.formats import read

FLAT: dict[str, Any] = {
    "observations": np.arange(12, dtype=np.float32).reshape(6, 2),
    "actions": np.array([2, 0, 2, 0, 0, 2]),
    "rewards": np.array([1, 2, 4, 8, 16, 32.5]),
    "terminals": np.array([0, 1, 0, 0, 0, 0], bool),
    "timeouts": np.array([0, 0, 1, 0, 0, 0], bool),
}
NEXT = np.array([[2, 3], [90, 91], [80, 81], [8, 9], [10, 11], [70, 71]], np.float32)


def flat_file(tmp_path: Path, **changes: Any) -> Path:
    held = {name: values for name, values in (FLAT | changes).items() if values is not None}
    np.savez(tmp_path / "flat.npz", **held)
    return tmp_path / "flat.npz"


def joined(path: Path) -> tuple[Dataset, str]:
    source = read(path)
    return Dataset.join(source.parts), "\n".join(source.notes)


@pytest.mark.parametrize("bytes_at_once", [1, 400, 1 << 26])
def test_flat_arrays_are_cut_at_their_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_at_once: int
) -> None:
    monkeypatch.setattr(flat, "PART_BYTES", bytes_at_once)
    data, notes = joined(flat_file(tmp_path, next_observations=NEXT))
    np.testing.assert_array_equal(data.offsets, [0, 3, 5, 9])
    np.testing.assert_array_equal(data.terminated, [True, False, False])
    np.testing.assert_array_equal(data.action, [2, 0, -1, 2, -1, 0, 0, 2, -1])
    np.testing.assert_array_equal(data.reward, [1, 2, 0, 4, 0, 8, 16, 32.5, 0])
    np.testing.assert_array_equal(data.episode_return, [3, 4, 56.5])
    np.testing.assert_array_equal(data.obs[:, 0], [0, 2, 90, 4, 80, 6, 8, 10, 70])
    assert data.obs.dtype == np.float32
    assert data.final_observed is None
    assert data.complete.all()
    assert data.actions == ("0", "1", "2")
    assert "3 actions, as ids 0 to 2 occur; ids 1 never occur" in notes
    assert "the last 3 rows have no end mark; they are kept as a truncated episode" in notes
    assert "next_observations" not in notes


def test_without_next_observations_final_ones_are_unknown(tmp_path: Path) -> None:
    data, _ = joined(flat_file(tmp_path))
    np.testing.assert_array_equal(data.obs[:, 0], [0, 2, 2, 4, 4, 6, 8, 10, 10])
    np.testing.assert_array_equal(data.finals_known, [False] * 3)
    assert data.provenance["source"] == "flat.npz"
    assert data.provenance["arrays"]["truncated"] == "timeouts"


@pytest.mark.parametrize(
    ("changes", "offsets", "terminated", "note"),
    [
        ({"timeouts": None}, [0, 3, 8], [True, False], "last 4 rows"),
        ({"terminals": None}, [0, 4, 8], [False, False], "last 3 rows"),
        ({"terminals": None, "timeouts": None, "dones": np.array([0, 1, 1, 0, 0, 1.0])},
         [0, 3, 5, 9], [True, True, True], "'dones' count as terminated"),
        ({"terminals": None, "dones": np.array([0, 1, 1, 0, 0, 1])},
         [0, 3, 5, 9], [True, False, True], "3 actions"),
        ({"timeouts": None, "dones": np.array([[0], [1], [1], [0], [0], [1]], np.uint8)},
         [0, 3, 5, 9], [True, False, False], "3 actions"),
        ({"terminals": None, "terminated": np.array([0, 0, 0, 0, 0, 1]), "timeouts": None,
          "truncated": np.array([0, 0, 0, 0, 0, 1])}, [0, 7], [True], "3 actions"),
        ({"actions": np.array([[0], [1], [1], [0], [0], [1.0]]), "timeouts": None},
         [0, 3, 8], [True, False], "2 actions, as ids 0 to 1 occur"),
        # The row of the time limit is not marked; what came next tells.
        ({"timeouts": None, "next_observations": NEXT}, [0, 3, 5, 9], [True, False, False],
         "in 1 rows without an end mark 'next_observations' is not"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("bytes_at_once", [1, 1 << 26])
def test_which_ends_there_are(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    offsets: list[int],
    terminated: list[bool],
    note: str,
    bytes_at_once: int,
) -> None:
    monkeypatch.setattr(flat, "PART_BYTES", bytes_at_once)
    monkeypatch.setattr(flat, "WORK_BYTES", 1)
    data, notes = joined(flat_file(tmp_path, **changes))
    np.testing.assert_array_equal(data.offsets, offsets)
    np.testing.assert_array_equal(data.terminated, terminated)
    assert note in notes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"terminals": None, "timeouts": None}, "no array says where episodes end; save 'termi"),
        ({"rewards": None}, "lacks the array 'rewards'; it holds observations, actions, term"),
        ({"truncated": FLAT["timeouts"]}, "arrays 'timeouts' and 'truncated' say the same"),
        ({"rewards": np.zeros(5)}, "array 'rewards' has 5 rows and 'actions' 6"),
        ({"actions": np.zeros((6, 2))}, r"array 'actions' has the shape \(2,\) .*discrete set"),
        ({"actions": np.array([0, 1, 0.5, 0, 0, 0])}, "array 'actions', row 2: action 0.5"),
        ({"actions": np.array([0, 1, 0, -1, 0, 0])}, "array 'actions', row 3: action -1"),
        ({"actions": np.array([0, 1, 0, 1, np.nan, 0])}, "array 'actions', row 4: action nan"),
        ({"actions": np.array([0, 1, 0, 1, 0, 5000])}, "array 'actions', row 5: action 5000"),
        ({"terminals": np.array([0, 1, 0, 2, 0, 0])}, "array 'terminals', row 3: 2 marks no end"),
        ({"rewards": np.array([0, 0, 0, 0, 1e39, 0])}, "episode 2, step 1: the reward is not fin"),
        ({"next_observations": NEXT[:, :1]}, r"array 'next_observations' holds .* shape \(1,\)"),
        ({"next_observations": NEXT.astype(int)}, "array 'next_observations' holds int64"),
        ({name: values[:0] for name, values in FLAT.items()}, "the arrays are empty"),
        ({"observations": np.zeros((6, 0))}, r"array 'observations': rows of shape \(0,\)"),
    ],
)  # fmt: skip
def test_flat_arrays_that_cannot_be_read_are_named(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=rf"flat\.npz: {message}"):
        load(flat_file(tmp_path, **changes))


def test_an_archive_without_arrays(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "none.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(
        ValueError, match=r"none\.npz: lacks the array 'observations'; it holds none"
    ):
        load(tmp_path / "none.npz")


def test_big_endian_arrays_are_turned(tmp_path: Path) -> None:
    path = flat_file(
        tmp_path,
        observations=FLAT["observations"].astype(">f4"),
        rewards=FLAT["rewards"].astype(">f8"),
        actions=FLAT["actions"].astype(">i2"),
    )
    data, _ = joined(path)
    assert next(read(path).parts).obs.dtype.isnative
    np.testing.assert_array_equal(data.obs[:, 1], [1, 3, 3, 5, 5, 7, 9, 11, 11])
    np.testing.assert_array_equal(data.action, [2, 0, -1, 2, -1, 0, 0, 2, -1])
