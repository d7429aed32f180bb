"""Arrow files of Minari datasets that are broken or do not fit, named by file and episode."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from rbve.data import load

BOX = {"type": "Box", "dtype": "float32", "shape": [2], "low": [0, 0], "high": [9, 9]}
FLAGS = pa.array([False, False, False])
COLUMNS = {name: FLAGS for name in ("actions", "rewards", "terminations", "truncations")}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three episodes of two steps, laid out as minari 0.5.4 does it."""
    folder = tmp_path / "x" / "data"
    folder.mkdir(parents=True)
    metadata = {
        "total_episodes": 3,
        "total_steps": 6,
        "data_format": "arrow",
        "observation_space": json.dumps(BOX),
        "action_space": json.dumps({"type": "Discrete", "start": 0, "n": 2}),
    }
    (folder / "metadata.json").write_text(json.dumps(metadata))
    for index in range(3):
        obs = pa.array(np.arange(6, dtype=np.float32) + index)
        write_rows(
            folder / str(index),
            observations=pa.FixedSizeListArray.from_arrays(obs, 2),
            actions=pa.array([0, 1, 0]),
            rewards=pa.array([0.5, 1, 0]),
            terminations=pa.array([False, True, False]),
            truncations=FLAGS,
        )
    return tmp_path / "x"


def write_rows(folder: Path, **columns: pa.Array) -> None:
    folder.mkdir(exist_ok=True)
    batch = pa.record_batch(columns)
    with pa.ipc.new_file(str(folder / "part-0.arrow"), batch.schema) as file:
        file.write_batch(batch)


def test_the_layout_reads(path: Path) -> None:
    found = load(path)
    np.testing.assert_array_equal(found.obs[3:6], [[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(found.action, [0, 1, -1] * 3)
    np.testing.assert_array_equal(found.reward, [0.5, 1, 0] * 3)


def test_broken_files(path: Path) -> None:
    file = path / "data" / "1" / "part-0.arrow"
    content = file.read_bytes()
    for size in (0, 9, len(content) // 2, len(content) - 1):
        file.write_bytes(content[:size])
        with pytest.raises(
            ValueError, match=r"1/part-0.arrow: episode 1: cannot be read .*damaged"
        ):
            load(path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (COLUMNS | {"actions": pa.array([0, None, 0])}, "'actions': has rows without value"),
        (COLUMNS | {"rewards": pa.array(["a", "b", "c"])}, "'rewards': holds string; it needs num"),
        (COLUMNS | {"observations": pa.array([[1.0], [1.0, 2.0], [3.0, 4.0]])}, "same count"),
        (COLUMNS | {"observations": pa.array([[1.0], [1.0, 2.0, 4.0], [3.0, 4.0]])}, "lengths"),
        (COLUMNS | {"observations": pa.array([[1.0]] * 3)}, r"has shape \(1,\) a row; its space"),
        ({"actions": FLAGS}, "lacks 'observations'"),
    ],
)
def test_columns_that_do_not_fit(path: Path, columns: dict[str, pa.Array], message: str) -> None:
    observations = {"observations": pa.array([[1.0, 2.0]] * 3)} if len(columns) > 1 else {}
    write_rows(path / "data" / "1", **(observations | columns))
    with pytest.raises(ValueError, match=rf"1/part-0.arrow: episode 1.*{message}"):
        load(path)


def test_folders_that_do_not_fit(path: Path) -> None:
    file = path / "data" / "1" / "part-0.arrow"
    (file.parent / "part-1.arrow").write_bytes(file.read_bytes())
    with pytest.raises(ValueError, match="1: needs one data file; has 2"):
        load(path)
    file.parent.rename(file.parent.with_name("7"))
    with pytest.raises(ValueError, match="1: not a folder of an episode"):
        load(path)
    file.parent.with_name("7").rename(file.parent.with_name("old"))
    with pytest.raises(ValueError, match=r"holds 2 episodes, and .*metadata.json says 3"):
        load(path)
