"""Batches split over devices: the parameters of one device, batch statistics of the whole batch."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pytest

from rbve.data import Dataset, Episode
from rbve.spec import Spec
from rbve.sweep.run import run_jobs
from rbve.tensors import read_tensors
from rbve.training.batches.table import transition_table
from rbve.training.run import CHECKPOINT, MemberRun, check_devices, team, train_members
from rbve.training.update import make_program

Maker = Callable[..., Spec]
PLAN = {"steps": 40, "every": 20, "stack": 2, "env": None, "torso": "board"}


def frames() -> Dataset:
    """Rewards that differ by far, so that the ranking weights do."""
    rng = np.random.default_rng(0)
    episodes = []
    for index in range(20):
        steps = 1 + index % 7
        obs = rng.integers(0, 256, (steps + 1, 6, 6, 1), np.uint8)
        reward = rng.normal(scale=3, size=steps)
        episodes.append(
            Episode.from_steps(obs, rng.integers(3, size=steps), reward, bool(index % 2))
        )
    return Dataset.from_episodes(episodes, 3)


def state(folder: Path) -> dict[str, np.ndarray]:
    return read_tensors(folder / CHECKPOINT)[0]


def test_there_are_several_devices() -> None:
    assert jax.local_device_count() >= 2  # conftest sees to it


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("rbve", "disk"),
        ("rbve", "memory"),
        *(
            pytest.param(name, rows, marks=pytest.mark.slow)
            for name, rows in (("bve", "disk"), ("dqn", "disk"), ("rem", "disk"), ("iqn", "memory"))
        ),
    ],
)
def test_two_devices_give_the_parameters_of_one(
    name: str, rows: str, small_job: Maker, tmp_path: Path
) -> None:
    job = small_job(name, {**PLAN, "rows": rows}, target_period=7, seed=3)
    found = []
    for devices in (1, 2):
        folder = tmp_path / str(devices)
        train_members([job], [frames()], [folder], devices=devices)
        found.append(state(folder))
    assert found[0].keys() == found[1].keys()
    for key, value in found[0].items():
        np.testing.assert_allclose(found[1][key], value, rtol=1e-5, atol=1e-5, err_msg=key)


def test_a_split_run_resumes_exactly(small_job: Maker, tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    def stop(progress: object) -> None:
        raise Stopped

    job = small_job("rbve", {**PLAN, "rows": "disk"})
    train_members([job], [frames()], [tmp_path / "whole"], devices=2)
    with pytest.raises(Stopped):
        train_members([job], [frames()], [tmp_path / "cut"], stop, devices=2)
    train_members([job], [frames()], [tmp_path / "cut"], devices=2)
    whole, cut = state(tmp_path / "whole"), state(tmp_path / "cut")
    for key, value in whole.items():
        np.testing.assert_array_equal(value, cut[key])


def test_images_stay_split(small_job: Maker, tmp_path: Path) -> None:
    """Devices exchange gradients and batch statistics, never pixels or activations."""
    job = small_job("rbve", {**PLAN, "rows": "disk"})
    table = transition_table([frames()], job.view, "pair", 2, in_memory=False)
    group = team(2, job.sampling.batch_size)
    program = make_program(job, table.items, group.split)
    member = MemberRun(job, frames(), tmp_path, program, table, 0)
    picked = table.columns[0].pick(np.zeros(4 * job.sampling.batch_size, np.int64))
    chunk = jax.tree.map(lambda v: v.reshape(4, -1, *v.shape[1:]), picked)
    given = (
        group.everywhere(member.state),
        jax.device_put(chunk, group.placed(None, "batch")),
        group.everywhere(member.inputs),
        4,
    )
    text = jax.jit(program.advance_given).lower(*given).compile().as_text()
    assert "all-reduce" in text
    gathered = re.findall(r"= \w+\[([\d,]*)\][^=]* all-gather", text)
    sizes = [np.prod([int(n) for n in shape.split(",") if n]) for shape in gathered]
    assert max(sizes, default=0) <= job.sampling.batch_size * 3  # at most a number per action
    assert "all-to-all" not in text


def test_uneven_batches_and_missing_devices_are_refused() -> None:
    with pytest.raises(ValueError, match="a batch of 33 cannot be split evenly over 2 devices"):
        check_devices(2, 4, 33)
    with pytest.raises(ValueError, match=r"devices must lie in \[1, 4\]"):
        check_devices(5, 4, 32)
    with pytest.raises(ValueError, match="devices must lie in"):
        team(10_000, 32)


def test_a_sweep_of_split_runs(small_job: Maker, tmp_path: Path) -> None:
    """Groups of devices take the jobs; each equals the run on one device."""
    jobs = [small_job("bve", {"steps": 20, "every": 20, "env": None}, seed=seed) for seed in (0, 1)]
    whole = run_jobs(jobs, tmp_path / "one")
    split = run_jobs(jobs, tmp_path / "two", devices=2)
    for one, two in zip(whole, split, strict=True):
        for key, value in state(one).items():
            np.testing.assert_allclose(state(two)[key], value, rtol=1e-5, atol=1e-5)
