"""Stopped between any two device calls and resumed, a run equals one that never stopped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rbve import rows, stopping
from rbve.data import Dataset
from rbve.spec import Spec
from rbve.tensors import read_tensors
from rbve.training import run
from rbve.training.run import CHECKPOINT, POLICY, train_members


def stop_at(count: int) -> Callable[[], None]:
    calls = iter(range(count, -1, -1))

    def check() -> None:
        if next(calls, 0) == 0:
            raise stopping.Stopped

    return check


@pytest.mark.parametrize("kind", ["memory", "disk", "vectorised"])
def test_stopped_in_the_middle_equals_uninterrupted(
    kind: str,
    catch: Dataset,
    small_job: Callable[..., Spec],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = {"steps": 200, "every": 90, "rows": "disk" if kind == "disk" else "memory"}
    jobs = [small_job("rbve", plan, seed=seed) for seed in (0, 1)]
    whole, cut = ([tmp_path / name / str(k) for k in range(2)] for name in ("whole", "cut"))

    def train(folders: list[Path]) -> None:
        train_members(jobs, [catch] * 2, folders, vectorise=kind == "vectorised")

    train(whole)
    monkeypatch.setattr(run, "SECONDS_PER_CALL", 1e-9)  # calls of a few updates
    stops, between = 0, 0
    for count in (3, 1, 7, 2, 11, 5, 400):
        with monkeypatch.context() as patch:
            patch.setattr("rbve.stopping.check", stop_at(count))
            try:
                train(cut)
            except stopping.Stopped:
                stops += 1
        for folder in cut:
            if (folder / CHECKPOINT).exists():
                tensors, _ = read_tensors(folder / CHECKPOINT)
                between += any(name.startswith("sums.") for name in tensors)
    assert stops >= 4
    assert between >= 4, "checkpoints between two rows"
    for one, other in zip(whole, cut, strict=True):
        for name in (rows.FILE, POLICY, CHECKPOINT):
            assert (one / name).read_bytes() == (other / name).read_bytes(), name
