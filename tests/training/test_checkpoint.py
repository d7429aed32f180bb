"""Files of weights: equal content gives equal bytes, and damage anywhere is one clear line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from rbve import Policy
from rbve.data import Dataset
from rbve.tensors import read_tensors, write_tensors
from rbve.training.run import CHECKPOINT, POLICY, is_finished, train_members

TENSORS = {
    "state.0": np.linspace(-1, 1, 7, dtype=np.float32),
    "state.1": np.array(3, np.int32),
    "sums.loss": np.zeros((2, 3), np.float32),
}
INFO = {"step": 70, "rows": 12, "finished": False, "job": {"seed": 0, "lam": 0.5}, "nan": None}


def test_equal_content_gives_equal_bytes(tmp_path: Path) -> None:
    for k in range(4):
        turned = dict(sorted(INFO.items(), reverse=bool(k % 2)))
        write_tensors(tmp_path / str(k), dict(reversed(TENSORS.items())), turned)
    files = [(tmp_path / str(k)).read_bytes() for k in range(4)]
    assert len(set(files)) == 1
    tensors, info = read_tensors(tmp_path / "0")
    assert info == INFO
    for name, value in TENSORS.items():
        assert tensors[name].dtype == value.dtype
        np.testing.assert_array_equal(tensors[name], value)


def test_every_flip_in_a_header_is_noticed_or_harmless(tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    write_tensors(file, TENSORS, INFO)
    whole = file.read_bytes()
    size = 8 + int.from_bytes(whole[:8], "little")
    rng = np.random.default_rng(0)
    noticed = 0
    for place in range(size + 8):
        for bit in (1 << int(rng.integers(8)), 0x20, 0x01):
            damaged = bytearray(whole)
            damaged[place] ^= bit
            file.write_bytes(damaged)
            words = ""
            try:
                tensors, info = read_tensors(file)
            except ValueError as error:
                words = str(error)
            if words:
                assert words.startswith(f"{file}: ")
                assert "\n" not in words
                noticed += 1
                continue
            assert info == INFO, f"byte {place}"
            assert tensors.keys() == TENSORS.keys()
            for name, value in TENSORS.items():
                assert tensors[name].dtype == value.dtype
                np.testing.assert_array_equal(tensors[name], value)
    assert noticed > 2.5 * size


@pytest.mark.parametrize(
    "content", [5, [], {}, {"crc32": "1", "info": {}}, {"crc32": 1, "info": []}, {"info": {}}]
)
def test_other_json_is_refused(content: object, tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    file.write_bytes(save(TENSORS, {"rbve": json.dumps(content)}))
    with pytest.raises(ValueError, match="not a file of rbve, or damaged"):
        read_tensors(file)


def test_files_of_earlier_versions_and_folders_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    file.write_bytes(save(TENSORS, {"info": "{}", "crc32": "0"}))
    with pytest.raises(ValueError, match="of an earlier version; train or record it again"):
        read_tensors(file)
    with pytest.raises(ValueError, match="is a folder"):
        read_tensors(tmp_path)


def test_policies_that_are_trained_twice_are_the_same_file(
    catch: Dataset, small_job, tmp_path: Path
) -> None:
    job = small_job("rbve", {"steps": 20, "every": 20})
    for name in ("one", "two"):
        train_members([job], [catch], [tmp_path / name])
    for name in (POLICY, CHECKPOINT):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert is_finished(tmp_path / "one")
    tensors, info = read_tensors(tmp_path / "one" / POLICY)
    for bad in (np.nan, np.inf):
        tensors["weights"] = tensors["weights"].copy()
        tensors["weights"][3] = bad
        write_tensors(tmp_path / "bad.safetensors", tensors, info)
        with pytest.raises(ValueError, match="weights are not all finite"):
            Policy.load(tmp_path / "bad.safetensors")
