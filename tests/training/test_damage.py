"""Damaged runs: the checkpoint before serves, other members go on, and a line says what to do."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rbve import rows
from rbve.data import Dataset
from rbve.evaluation.follow import SNAPSHOTS
from rbve.spec import Spec
from rbve.sweep.run import run_jobs
from rbve.training.member import PREVIOUS, MemberRun
from rbve.training.run import CHECKPOINT, POLICY, is_finished, train_members

PLAN = {"steps": 60, "every": 20}


def flip(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)


@pytest.fixture(scope="module")
def job(small_job: Callable[..., Spec]) -> Spec:
    return small_job("bve", PLAN)


@pytest.fixture(scope="module")
def whole(job: Spec, catch: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    train_members([job], [catch], [folder])
    return folder


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def assert_same(one: Path, other: Path) -> None:
    for name in (rows.FILE, POLICY, CHECKPOINT):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def again(job: Spec, catch: Dataset, folder: Path) -> list[str]:
    """What is said when the run is trained again."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        train_members([job], [catch], [folder])
    return [str(each.message) for each in told]


def test_a_damaged_checkpoint_falls_back_on_the_one_before(
    job: Spec, catch: Dataset, whole: Path, copy: Path
) -> None:
    assert is_finished(copy)
    flip(copy / CHECKPOINT, -3)
    assert not is_finished(copy)
    (told,) = again(job, catch, copy)
    assert "checksum does not match" in told
    assert told.endswith("going on from the checkpoint before it, at update 40")
    assert is_finished(copy)
    assert_same(whole, copy)


def test_killed_between_two_checkpoints(job: Spec, catch: Dataset, whole: Path, copy: Path) -> None:
    (copy / CHECKPOINT).unlink()
    assert again(job, catch, copy) == []
    assert_same(whole, copy)


def test_a_damaged_policy_is_written_again(
    job: Spec, catch: Dataset, whole: Path, copy: Path
) -> None:
    flip(copy / POLICY, -3)
    assert not is_finished(copy)
    assert again(job, catch, copy) == []
    assert_same(whole, copy)


def test_every_flip_in_rows_is_noticed(job: Spec, catch: Dataset, whole: Path, copy: Path) -> None:
    size = (copy / rows.FILE).stat().st_size
    for place in np.random.default_rng(0).integers(0, size, 12):
        shutil.rmtree(copy)
        shutil.copytree(whole, copy)
        flip(copy / rows.FILE, int(place))
        assert not is_finished(copy)
        try:
            (told,) = again(job, catch, copy)
        except ValueError as error:
            told = str(error)
        assert "rows that the checkpoint counted" in told
        if "going on" in told:
            assert_same(whole, copy)
        else:
            assert told.endswith(f"delete {copy} to train it from the start")


def test_rows_added_to_a_finished_run_are_dropped(
    job: Spec, catch: Dataset, whole: Path, copy: Path
) -> None:
    with open(copy / rows.FILE, "a") as file:
        file.write('{"step": 60, "metric": "return", "value": 9.0, "n": 1}\n')
    assert again(job, catch, copy) == []
    assert_same(whole, copy)


def test_other_members_go_on(small_job: Callable[..., Spec], tmp_path: Path) -> None:
    jobs = [small_job(name, PLAN, seed=seed) for name in ("bve", "dqn") for seed in (0, 1)]
    first = jobs[0]
    folders = run_jobs([first], tmp_path)
    for name in (CHECKPOINT, PREVIOUS):
        flip(folders[0] / name, -3)
    with pytest.raises(ValueError, match="all other runs are trained; ") as caught:
        run_jobs(jobs, tmp_path)
    assert str(caught.value).endswith(f"delete {folders[0]} to train it from the start")
    assert [is_finished(tmp_path / job.id) for job in jobs] == [False, True, True, True]
    shutil.rmtree(folders[0])
    run_jobs(jobs, tmp_path)
    assert is_finished(folders[0])


def test_a_kill_between_two_files_loses_no_stage(
    job: Spec, catch: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The policy of an interval is kept before the checkpoint that says the interval is done."""
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        (folder / SNAPSHOTS).mkdir(parents=True)
    train_members([job], [catch], [one])
    stages = sorted((one / SNAPSHOTS).iterdir())
    assert len(stages) == 3
    save = MemberRun.save
    for moment in ("before", "after"):

        def killed(member: MemberRun, moment: str = moment) -> None:
            if moment == "after":
                save(member)
            raise InterruptedError

        monkeypatch.setattr(MemberRun, "save", killed)
        with pytest.raises(InterruptedError):
            train_members([job], [catch], [other])
    monkeypatch.undo()
    train_members([job], [catch], [other])
    assert_same(one, other)
    for stage in stages:
        assert (other / SNAPSHOTS / stage.name).read_bytes() == stage.read_bytes()
