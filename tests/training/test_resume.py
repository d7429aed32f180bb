"""A run stopped at a checkpoint and resumed equals one that never stopped, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.run_folders import assert_same_folder
from support.tiers import fast_and_slow

from rbve import algorithms, rows
from rbve.data import Dataset
from rbve.spec import Spec
from rbve.tensors import read_tensors
from rbve.training.run import CHECKPOINT, Progress, is_finished, train_members
from rbve.training.update import DRAWS

STEPS, EVERY, PERIOD = 300, 70, 45
STOP = 140  # neither a multiple of the target period nor of the drawn blocks


# Algorithms of the fast tier: between them every head and every kind of target.
FAST = {"bc", "bcq", "iql", "iqn", "mc", "qr_cql", "rbve", "rem"}


class Stopped(Exception):
    pass


def stop_at(step: int) -> Callable[[Progress], None]:
    def on_progress(progress: Progress) -> None:
        if progress.step == step:
            raise Stopped

    return on_progress


def test_the_fast_tier_has_every_head_and_target() -> None:
    every = {name: algorithms.load(name) for name in algorithms.names()}
    for kind in ("head", "bootstrap"):
        fast = {getattr(every[name], kind) for name in FAST}
        assert fast == {getattr(each, kind) for each in every.values()}


def test_the_numbers_do_not_align() -> None:
    assert STOP % EVERY == 0
    assert all(STOP % other for other in (PERIOD, DRAWS))
    assert STEPS % EVERY


@pytest.mark.parametrize("name", fast_and_slow(algorithms.names(), FAST))
def test_resumed_equals_uninterrupted(
    name: str, catch: Dataset, small_job: Callable[..., Spec], tmp_path: Path
) -> None:
    job = small_job(name, {"steps": STEPS, "every": EVERY}, target_period=PERIOD, seed=3)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    train_members([job], [catch], [whole])
    with pytest.raises(Stopped):
        train_members([job], [catch], [cut], stop_at(STOP))
    assert read_tensors(cut / CHECKPOINT)[1]["step"] == STOP
    assert not is_finished(cut)
    # As if the process had died between the rows of the next interval and its checkpoint.
    with open(cut / rows.FILE, "a") as file:
        file.write('{"step": 210, "metric": "train/loss", "value": 9.0, "n": 70}\n{"step": 2')
    steps = []
    train_members([job], [catch], [cut], lambda progress: steps.append(progress.step))
    assert steps == [210, 280, 300]
    assert is_finished(cut)
    assert_same_folder(whole, cut)


def test_a_finished_run_is_left_alone(
    catch: Dataset, small_job: Callable[..., Spec], tmp_path: Path
) -> None:
    job = small_job("bve", {"steps": 20, "every": 20})
    train_members([job], [catch], [tmp_path])
    before = (tmp_path / rows.FILE).read_bytes()
    steps = []
    train_members([job], [catch], [tmp_path], lambda progress: steps.append(progress.step))
    assert steps == []
    assert (tmp_path / rows.FILE).read_bytes() == before


def test_members_resume_from_different_steps(
    catch: Dataset, small_job: Callable[..., Spec], tmp_path: Path
) -> None:
    """Stopped after the first of two members: they go on from different checkpoints."""
    jobs = [small_job("dqn", seed=seed) for seed in range(2)]
    whole = [tmp_path / f"whole{seed}" for seed in range(2)]
    cut = [tmp_path / f"cut{seed}" for seed in range(2)]
    train_members(jobs, [catch] * 2, whole)
    with pytest.raises(Stopped):
        train_members(jobs, [catch] * 2, cut, stop_at(STOP))
    assert [read_tensors(folder / CHECKPOINT)[1]["step"] for folder in cut] == [STOP, STOP - EVERY]
    train_members(jobs, [catch] * 2, cut)
    for one, other in zip(whole, cut, strict=True):
        assert_same_folder(one, other)


def test_the_checkpoint_of_another_job_is_refused(
    catch: Dataset, small_job: Callable[..., Spec], tmp_path: Path
) -> None:
    plan = {"steps": 20, "every": 20}
    train_members([small_job("bve", plan, seed=0)], [catch], [tmp_path])
    with pytest.raises(ValueError, match="belongs to another job"):
        train_members([small_job("bve", plan, seed=1)], [catch], [tmp_path])
