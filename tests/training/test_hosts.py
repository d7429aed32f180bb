"""Processes on several machines share the batches of a run, here two processes of one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.ports import free_port

from rbve.data import load
from rbve.spec import Spec
from rbve.tensors import read_tensors
from rbve.training.run import CHECKPOINT, train_members

SCRIPT = Path(__file__).parents[1] / "support" / "one_host.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    "plan",
    [
        {"rows": "memory"},
        {"rows": "disk"},
        {"memory": 4, "batch_size": 4},
        {"memory": 4, "batch_size": 4, "sequence": 4, "burn_in": 2, "rows": "disk"},
    ],
)
def test_two_processes_give_the_parameters_of_one(
    plan: dict[str, object], small_job: Callable[..., Spec], catch_path: Path, tmp_path: Path
) -> None:
    job = small_job("rbve", {"steps": 40, "every": 20, **plan}, target_period=7, seed=3)
    port, text = str(free_port()), json.dumps(job.to_json())
    processes = [
        subprocess.Popen(
            [sys.executable, SCRIPT, str(rank), "2", port, catch_path, tmp_path, text],
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    words = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], "".join(words)
    train_members([job], [load(catch_path)], [tmp_path / "one"])
    alone, first, second = (
        read_tensors(tmp_path / name / CHECKPOINT)[0] for name in ("one", "0", "1")
    )
    assert alone.keys() == first.keys()
    for key, value in alone.items():
        np.testing.assert_array_equal(first[key], second[key], err_msg=key)
        np.testing.assert_allclose(first[key], value, rtol=1e-4, atol=1e-5, err_msg=key)
    rows = [(tmp_path / name / "rows.jsonl").read_bytes() for name in ("0", "1")]
    assert rows[0] == rows[1]
