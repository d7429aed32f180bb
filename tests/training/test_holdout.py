"""Runs that are judged by held-out episodes resume, and share a program, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from rbve import rows
from rbve.data import Dataset
from rbve.spec import Spec
from rbve.tensors import read_tensors
from rbve.training.run import CHECKPOINT, POLICY, Progress, train_members

STOP = 40


class Stopped(Exception):
    pass


def stop(progress: Progress) -> None:
    if progress.step == STOP:
        raise Stopped


def jobs_of(memory: int) -> list[Spec]:
    """Members that differ in seed, in data, and in which episodes are held out."""
    own = {"path": "catch", "fingerprint": "f", "steps": 70, "every": 20, "batch_size": 4}
    base = Spec.of(algorithm="bve", hidden=(8,), memory=memory, target_period=9, **own).resolved()
    return [
        base,
        base.varied(seed=1, keep=0.4, holdout=0.5),
        base.varied(holdout_seed=3),
    ]


def train(jobs: Sequence[Spec], catch: Dataset, out: Path, stopping: bool = False) -> list[Path]:
    folders = [out / job.id for job in jobs]
    data = [job.data.of(catch) for job in jobs]
    held = [job.data.held_out(catch) for job in jobs]
    told = stop if stopping else lambda progress: None
    train_members(jobs, data, folders, told, held_out=held)
    return folders


def assert_same(one: Path, other: Path) -> None:
    for name in (CHECKPOINT, POLICY):
        tensors, others = read_tensors(one / name)[0], read_tensors(other / name)[0]
        assert tensors.keys() == others.keys()
        for key, value in tensors.items():
            np.testing.assert_array_equal(value, others[key], err_msg=f"{name} {key}")
    content = (one / rows.FILE).read_bytes()
    assert content == (other / rows.FILE).read_bytes()
    assert content.count(b'"heldout_value_error"') == 4  # at 20, 40, 60 and 70


@pytest.mark.parametrize("memory", [0, 4])
def test_resumed_and_alone_equal_uninterrupted_together(
    memory: int, catch: Dataset, tmp_path: Path
) -> None:
    jobs = jobs_of(memory)
    assert len({job.id for job in jobs}) == 3
    together = train(jobs, catch, tmp_path / "together")
    with pytest.raises(Stopped):
        train(jobs, catch, tmp_path / "cut", stopping=True)
    cut = train(jobs, catch, tmp_path / "cut")
    for one, other in zip(together, cut, strict=True):
        assert_same(one, other)
    for job, folder in zip(jobs[1:], together[1:], strict=True):
        assert_same(folder, train([job], catch, tmp_path / "alone")[0])
