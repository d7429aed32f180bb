"""A run of more updates goes on from a finished shorter one beside it, and equals the whole run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.run_folders import assert_same_folder

from rbve import rows
from rbve.data import Dataset
from rbve.evaluation.follow import SNAPSHOTS
from rbve.spec import Spec
from rbve.sweep.run import run_jobs
from rbve.training.run import CHECKPOINT, Progress, train_members

Maker = Callable[..., Spec]
EVERY = 50


def job_of(small_job: Maker, steps: int, **more: object) -> Spec:
    plan = {"steps": steps, "every": EVERY, "env": "catch", **more}
    return small_job("rbve", plan, target_period=45, seed=3).resolved()


def trained(job: Spec, data: Dataset, out: Path) -> list[int]:
    """The steps at which rows were written."""
    steps: list[int] = []

    def note(progress: Progress) -> None:
        steps.append(progress.step)

    train_members([job], [data], [out / job.id], note)
    return steps


@pytest.fixture(scope="module")
def whole(catch: Dataset, small_job: Maker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole")
    trained(job_of(small_job, 200), catch, out)
    return out


def test_more_updates_go_on_from_fewer(
    whole: Path, catch: Dataset, small_job: Maker, tmp_path: Path
) -> None:
    longer = job_of(small_job, 200)
    trained(job_of(small_job, 50), catch, tmp_path)
    assert trained(job_of(small_job, 100), catch, tmp_path) == [100]
    assert trained(longer, catch, tmp_path) == [150, 200]
    assert_same_folder(whole / longer.id, tmp_path / longer.id)


def test_the_header_names_the_code_that_began(
    catch: Dataset, small_job: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorter, longer = job_of(small_job, 50), job_of(small_job, 100)
    with monkeypatch.context() as patch:
        patch.setattr(rows, "code_version", lambda: {"version": "0", "commit": "earlier"})
        trained(shorter, catch, tmp_path)
    trained(longer, catch, tmp_path)
    run = rows.read(tmp_path / longer.id / rows.FILE)
    assert run.code["commit"] == "earlier"
    assert (run.job, run.spec["steps"]) == (longer.id, 100)


@pytest.mark.parametrize(
    "other",
    [{"steps": 75, "every": 25}, {"steps": 75}, {"gamma": 0.9}, {"batch_size": 8}, {"steps": 250}],
)
def test_other_runs_are_not_continued(
    other: dict[str, object], whole: Path, catch: Dataset, small_job: Maker, tmp_path: Path
) -> None:
    """Of another interval, of updates that end between two rows, of other settings, of more."""
    longer = job_of(small_job, 200)
    trained(job_of(small_job, **{"steps": 100, **other}), catch, tmp_path)  # type: ignore[arg-type]
    assert trained(longer, catch, tmp_path) == [50, 100, 150, 200]
    assert_same_folder(whole / longer.id, tmp_path / longer.id)


def test_damaged_and_unfinished_runs_are_not_continued(
    catch: Dataset, small_job: Maker, tmp_path: Path
) -> None:
    shorter, longer = job_of(small_job, 50), job_of(small_job, 100)
    trained(shorter, catch, tmp_path)
    with open(tmp_path / shorter.id / rows.FILE, "a") as file:
        file.write("{}\n")
    assert trained(longer, catch, tmp_path) == [50, 100]


def test_a_run_that_keeps_its_stages_begins_anew(
    catch: Dataset, small_job: Maker, tmp_path: Path
) -> None:
    shorter, longer = job_of(small_job, 50), job_of(small_job, 100)
    trained(shorter, catch, tmp_path)
    (tmp_path / longer.id / SNAPSHOTS).mkdir(parents=True)
    assert trained(longer, catch, tmp_path) == [50, 100]
    assert len(list((tmp_path / longer.id / SNAPSHOTS).iterdir())) == 2


def test_stopped_after_it_went_on(
    whole: Path, catch: Dataset, small_job: Maker, tmp_path: Path
) -> None:
    class Stopped(Exception):
        pass

    def stop(progress: Progress) -> None:
        raise Stopped

    longer = job_of(small_job, 200)
    trained(job_of(small_job, 100), catch, tmp_path)
    with pytest.raises(Stopped):
        train_members([longer], [catch], [tmp_path / longer.id], stop)
    assert (tmp_path / longer.id / CHECKPOINT).exists()
    assert trained(longer, catch, tmp_path) == [200]
    assert_same_folder(whole / longer.id, tmp_path / longer.id)


def test_a_sweep_goes_on_from_what_is_there(
    catch_path: Path, small_job: Maker, tmp_path: Path
) -> None:
    jobs = [small_job("bve", {"steps": n, "every": EVERY, "env": None}) for n in (50, 100)]
    jobs = [job.varied(path=str(catch_path)) for job in jobs]
    steps: list[int] = []
    for job in jobs:
        run_jobs([job], tmp_path, lambda progress: steps.append(progress.step))
    assert steps == [50, 100]
