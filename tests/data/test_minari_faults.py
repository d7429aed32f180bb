"""Minari datasets that are wrong, damaged or hostile: one line that says where and what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from rbve.data import load
from rbve.data.formats import read, recognise
from rbve.data.hdf5 import opened

BOX = {"type": "Box", "dtype": "float32", "shape": [2], "low": [0, 0], "high": [9, 9]}
ACTIONS = {"type": "Discrete", "dtype": "int64", "start": 0, "n": 2}


def store(path: Path, space: Any = BOX, action_space: Any = ACTIONS, **changes: Any) -> Path:
    """Three episodes of two steps, laid out as minari 0.5.4 does it.

    `changes` replace or, if None, remove what the second episode holds.
    """
    folder = path / "x" / "data"
    folder.mkdir(parents=True)
    metadata = {
        "total_episodes": 3,
        "total_steps": 6,
        "data_format": "hdf5",
        "observation_space": json.dumps(space),
        "action_space": json.dumps(action_space),
        "dataset_id": "x-v0",
        "minari_version": "0.5.4",
    }
    (folder / "metadata.json").write_text(json.dumps(metadata))
    with h5py.File(folder / "main_data.hdf5", "w", track_order=True) as file:
        for index in range(3):
            episode: dict[str, Any] = {
                "observations": np.arange(6, dtype=np.float32).reshape(3, 2) + index,
                "actions": np.array([0, 1]),
                "rewards": np.array([0.5, 1]),
                "terminations": np.array([False, True]),
                "truncations": np.array([False, False]),
                "infos/action_mask": np.ones((3, 2), np.int8),
            }
            if index == 1:
                episode |= {name.replace("__", "/"): value for name, value in changes.items()}
            group = file.create_group(f"episode_{index}")
            for name, values in episode.items():
                if callable(values):
                    values(group, name, path)
                elif values is not None:
                    group.create_dataset(name, data=values)
    return path / "x"


def test_the_layout_reads(tmp_path: Path) -> None:
    path = store(tmp_path)
    assert recognise(path / "data" / "main_data.hdf5") == recognise(path) == "minari"
    found = load(path)
    np.testing.assert_array_equal(found.obs[3:6], [[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(found.action, [0, 1, -1] * 3)


WRONG_VALUES: dict[str, tuple[dict[str, Any], str]] = {
    "early end": ({"terminations": [True, True]}, "step 0: 'terminations' says that the episode"),
    "early cut": ({"truncations": [True, False]}, "step 0: 'truncations' says that the episode"),
    "no final observation": (
        {"observations": np.zeros((2, 2), np.float32)},
        r"'observation' has shape \(2, 2\); for 2 actions its space needs \(3, 2\)",
    ),
    "other observations": ({"observations": np.zeros((3, 3))}, r"needs \(3, 2\)"),
    "wider type": (
        {"observations": np.zeros((3, 2))},
        "observations are float64, those of the first episode float32",
    ),
    "words": ({"observations": np.full((3, 2), b"a")}, r"'observations': holds \|S1; it needs num"),
    "action beyond": ({"actions": [0, 2]}, "step 1: action 2 is not one of the 2 actions from 0"),
    "action below": ({"actions": [-1, 0]}, "step 0: action -1 is not one of the 2 actions"),
    "action that wraps": ({"actions": np.array([0, 1 << 32])}, "step 1: action 4294967296"),
    "fractional": ({"actions": [0.5, 1]}, "'actions' holds float64 of shape"),
    "no steps": ({"actions": np.zeros(0, int)}, "at least one decision"),
    "short rewards": ({"rewards": [1.0]}, r"'rewards' holds float64 of shape \(1,\); it needs 2"),
    "nan": ({"rewards": [1, np.nan]}, "step 1: the reward is not finite"),
    "huge": ({"rewards": [1e300, 1]}, "step 0: the reward is not finite"),
    "mask width": (
        {"infos__action_mask": np.ones((3, 3), bool)},
        r"'action_mask' has shape \(3, 3",
    ),
    "mask rows": ({"infos__action_mask": np.ones((2, 2), bool)}, r"it needs \(3, 2\), one row per"),
    "mask values": ({"infos__action_mask": np.full((3, 2), 7)}, "one 0 or 1 per action"),
    "illegal": (
        {"infos__action_mask": np.array([[1, 1], [1, 0], [0, 0]])},
        "step 1: action 1 was taken and 'legal' says it is not",
    ),
    "mask missing": ({"infos__action_mask": None}, "'legal' must be there in all episodes"),
    "missing": ({"rewards": None}, "lacks 'rewards'"),
    "a group": ({"rewards": None, "rewards__x": [1.0]}, "'rewards' is not a dataset"),
}


@pytest.mark.parametrize("fault", WRONG_VALUES)
def test_wrong_values_are_named(tmp_path: Path, fault: str) -> None:
    changes, message = WRONG_VALUES[fault]
    path = store(tmp_path, **changes)
    with pytest.raises(ValueError, match=f"x/data.*episode 1.*{message}") as caught:
        load(path)
    assert "\n" not in str(caught.value)


def external_link(group: Any, name: str, path: Path) -> None:
    with h5py.File(path / "secret.h5", "w") as file:
        file["rewards"] = [7.0, 7.0]
    group[name] = h5py.ExternalLink(str(path / "secret.h5"), "rewards")


def soft_link(group: Any, name: str, path: Path) -> None:
    group[name] = h5py.SoftLink("/episode_0/rewards")


def virtual(group: Any, name: str, path: Path) -> None:
    with h5py.File(path / "secret.h5", "w") as file:
        file["rewards"] = [7.0, 7.0]
    layout = h5py.VirtualLayout((2,), float)
    layout[:] = h5py.VirtualSource(path / "secret.h5", "rewards", (2,))
    group.create_virtual_dataset(name, layout)


def raw_elsewhere(group: Any, name: str, path: Path) -> None:
    (path / "secret.bin").write_bytes(bytes(16))
    group.create_dataset(name, (2,), float, external=[(str(path / "secret.bin"), 0, 16)])


def never_written(group: Any, name: str, path: Path) -> None:
    group.create_dataset(name, (1 << 40,), float, chunks=(1 << 20,))


def huge_chunks(group: Any, name: str, path: Path) -> None:
    made = group.create_dataset(name, (2,), "u1", chunks=(1 << 28,), maxshape=(None,),
                                compression="gzip")  # fmt: skip
    made.id.write_direct_chunk((0,), b"x" * 30)


def null_space(group: Any, name: str, path: Path) -> None:
    group.create_dataset(name, data=h5py.Empty("f8"))


def words(group: Any, name: str, path: Path) -> None:
    group.create_dataset(name, data=["a", "b"])


HOSTILE: dict[Callable[..., None], str] = {
    external_link: "'rewards' is a link",
    soft_link: "'rewards' is a link",
    virtual: "its data lies in other files",
    raw_elsewhere: "its data lies in other files",
    never_written: "is more than the file holds",
    huge_chunks: "is more than the file holds",
    null_space: "'rewards' is empty",
    words: "holds object; it needs numbers",
}


@pytest.mark.parametrize("trick", HOSTILE)
def test_other_files_and_absurd_sizes_are_refused(
    tmp_path: Path, trick: Callable[..., None]
) -> None:
    path = store(tmp_path, rewards=trick)
    with pytest.raises(ValueError, match=f"episode 1: 'rewards'|{HOSTILE[trick]}") as caught:
        load(path)
    assert re.search(HOSTILE[trick], str(caught.value))


def box(shape: Any) -> dict[str, Any]:
    return {"type": "Box", "dtype": "float32", "shape": shape}


def dict_of(**inner: Any) -> dict[str, Any]:
    return {"type": "Dict", "subspaces": inner}


SPACES: list[tuple[Any, Any, str]] = [
    (BOX, box([2]), "the action space is Box; this library learns discrete actions only"),
    (BOX, {"type": "MultiDiscrete", "nvec": [2]}, "the action space is MultiDiscrete"),
    (BOX, ACTIONS | {"n": 1 << 40}, "Discrete of 1099511627776 values; it needs 1 to 65536"),
    (BOX, ACTIONS | {"start": 1 << 40}, "from 1099511627776 on; damaged"),
    (BOX, [], "the action space describes no space"),
    (dict_of(a=BOX, note={"type": "Text"}), ACTIONS, "'note' is Text; observations must be num"),
    (dict_of(a=BOX, image=box([7, 7, 3])), ACTIONS, r"'image' has shape \(7, 7, 3\)"),
    (dict_of(a=BOX, b=dict_of()), ACTIONS, "'b': Dict of nothing"),
    (box([0]), ACTIONS, r"cannot have the shape \[0\]"),
    (box("many"), ACTIONS, "cannot have the shape many"),
    (dict_of(a=box([1 << 50]), b=BOX), ACTIONS, "more than 65536 columns"),
    ({"type": "MultiDiscrete", "nvec": [60000, 60000]}, ACTIONS, "more than 65536 columns and cat"),
]


@pytest.mark.parametrize(("space", "actions", "message"), SPACES)
def test_spaces_that_cannot_be_read(tmp_path: Path, space: Any, actions: Any, message: str) -> None:
    path = store(tmp_path, space, actions)
    with pytest.raises(ValueError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_a_key_cannot_lead_elsewhere(tmp_path: Path) -> None:
    path = store(tmp_path, dict_of(**{"a/b": BOX}))
    with h5py.File(path / "data" / "main_data.hdf5", "a") as file:
        del file["episode_0/observations"]
        file["episode_0/observations/a/b"] = np.zeros((3, 2))
    with pytest.raises(ValueError, match="episode 0: 'a/b' cannot be a name in a file"):
        load(path)


def test_values_outside_of_a_category(tmp_path: Path) -> None:
    path = store(tmp_path, {"type": "MultiDiscrete", "nvec": [9, 9]})
    with pytest.raises(ValueError, match="'observation' holds float32; it needs whole numbers"):
        load(path)
    space = {"type": "MultiDiscrete", "nvec": [9, 4], "start": [0, 1]}
    path = store(tmp_path / "2", space, observations=np.array([[8, 1], [0, 4], [3, 5]]))
    with h5py.File(path / "data" / "main_data.hdf5", "a") as file:
        del file["episode_0/observations"]
        file["episode_0/observations"] = np.ones((3, 2), int)
    with pytest.raises(ValueError, match="episode 1, step 2: 'observation' is 5, which its space"):
        load(path)


METADATA: dict[str, tuple[dict[str, Any], str]] = {
    "count": ({"total_episodes": 4}, "holds 3 episodes, and .*metadata.json says 4"),
    "none": ({"total_episodes": 0}, "0 episodes; the dataset is empty or damaged"),
    "format": ({"data_format": "zarr"}, "data format 'zarr'; known: hdf5, arrow, parquet"),
    "old": ({"action_space": None}, "lacks 'action_space'; load and save the dataset with minari"),
    "ours": ({"rbve": {"schema": 9}}, "the entry 'rbve' is damaged"),
    "names": (
        {"rbve": {"schema": 1, "actions": ["a"], "columns": [], "provenance": {}}},
        "the entry 'rbve' is damaged",
    ),
    "features": (
        {
            "rbve": {
                "schema": 1,
                "actions": ["a", "b"],
                "columns": [],
                "provenance": {},
                "features": [{"name": "x", "kind": "number", "mean": 0, "scale": 1}],
            }
        },
        r"names 1 features, and observations have the shape \(2,\)",
    ),
}


@pytest.mark.parametrize("fault", METADATA)
def test_metadata_that_does_not_fit(tmp_path: Path, fault: str) -> None:
    path = store(tmp_path)
    file = path / "data" / "metadata.json"
    changes, message = METADATA[fault]
    said = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({key: value for key, value in said.items() if value is not None}))
    with pytest.raises(ValueError, match=message):
        load(path)


def test_broken_files(tmp_path: Path) -> None:
    path = store(tmp_path)
    file = path / "data" / "main_data.hdf5"
    content = file.read_bytes()
    for size in (0, 100, len(content) // 2, len(content) - 1):
        file.write_bytes(content[:size])
        with pytest.raises(ValueError, match=r"main_data.hdf5: .*damaged"):
            load(path)
    (path / "data" / "metadata.json").write_text("{")
    with pytest.raises(ValueError, match=r"metadata.json: not valid JSON"):
        load(path)


def test_values_of_variable_length(tmp_path: Path) -> None:
    """Read from the file's heaps, over several chunks; libhdf5 would crash on damaged ones."""
    values = [np.arange(n % 50, dtype=np.uint8) for n in range(3000)]
    with h5py.File(tmp_path / "x.h5", "w") as file:
        made = file.create_dataset("a", (3000,), h5py.vlen_dtype(np.uint8), chunks=(700,))
        for index, value in enumerate(values):
            made[index] = value
    with opened(tmp_path / "x.h5") as file:
        assert file.column("a").blobs() == [value.tobytes() for value in values]
    content = (tmp_path / "x.h5").read_bytes()
    (tmp_path / "x.h5").write_bytes(content.replace(b"GCOL", b"GCOX"))
    with opened(tmp_path / "x.h5") as file, pytest.raises(ValueError, match="no heap where"):
        file.column("a").blobs()


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no Minari dataset of version 0\.5"):
        read(tmp_path, "minari")
