"""Folders of finished runs, compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rbve import rows
from rbve.tensors import read_tensors
from rbve.training.run import CHECKPOINT, POLICY


def assert_same_folder(one: Path, other: Path) -> None:
    for name in (CHECKPOINT, POLICY):
        tensors, info = read_tensors(one / name)
        others, other_info = read_tensors(other / name)
        assert info == other_info, name
        assert tensors.keys() == others.keys()
        for key, value in tensors.items():
            assert value.dtype == others[key].dtype
            np.testing.assert_array_equal(value, others[key], err_msg=f"{name} {key}")
    assert (one / rows.FILE).read_bytes() == (other / rows.FILE).read_bytes()
