"""An evaluator beside training: every snapshot once, the same rows whenever it is stopped."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rbve import api, cli, rows
from rbve.evaluation import follow
from rbve.evaluation.follow import Evaluated, Plan
from rbve.policy import Policy
from rbve.sweep import local
from rbve.training.run import train_members
from rbve.training.spec import Job

PLAN = Plan(env="catch", episodes=30, seed=4)
STEPS = [70, 140, 210, 280, 300]


def trained(folder: Path, job: Job, meanwhile: Callable[[int], None] = lambda step: None) -> None:
    data = api.load(job.data.path)
    train_members([job], [data], [folder], lambda progress: meanwhile(progress.step))


@pytest.fixture
def job(small_job: Callable[..., Job]) -> Job:
    return small_job("bve", {"env": None})


def table(folder: Path) -> dict[tuple[int, str], tuple[float, int]]:
    run = rows.read(folder / rows.EVALUATION)
    assert len({(row.step, row.metric) for row in run.rows}) == len(run.rows)
    return {(row.step, row.metric): (row.value, row.n) for row in run.rows}


def test_every_snapshot_is_played_while_training_goes_on(job: Job, tmp_path: Path) -> None:
    folder = tmp_path / job.id
    (folder / follow.WAITING).mkdir(parents=True)
    seen: list[Evaluated] = []
    held: dict[int, Policy] = {}

    def meanwhile(step: int) -> None:
        waiting = sorted((folder / follow.WAITING).iterdir())
        if step < 300:
            held[step] = Policy.load(waiting[-1])
            assert held[step].info["step"] == step
        if step == 210:  # two snapshots wait by now, the first has been played
            follow.follow(tmp_path, PLAN, seen.append, once=True)
            assert not list((folder / follow.WAITING).iterdir())

    trained(folder, job, meanwhile)
    follow.follow(tmp_path, PLAN, seen.append)  # ends by itself: the run is finished
    assert [found.step for found in seen] == STEPS
    assert not (folder / follow.WAITING).exists()
    found = table(folder)
    held[300] = Policy.load(folder / "policy.safetensors")
    alone = {}
    for step in STEPS:
        assert found[step, "return"][1] == 30
        alone[step] = follow.play_policy(
            held[step], follow.settled_plan(PLAN, job.to_json()["spec"], folder), step
        )
        assert found[step, "return"] == alone[step]["return"]
    assert len({found[step, "value_error"] for step in STEPS}) == len(STEPS)
    final = np.mean([alone[step]["return"][0] for step in STEPS[-2:]])  # of five
    assert found[300, "final/return"] == (pytest.approx(final), 60)


def test_stopped_anywhere_it_gives_the_same_rows(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("whole", "stopped"):
        folder = tmp_path / name / job.id
        (folder / follow.WAITING).mkdir(parents=True)
        trained(folder, job)
    follow.follow(tmp_path / "whole", PLAN)
    expected = (tmp_path / "whole" / job.id / rows.EVALUATION).read_bytes()

    class Killed(Exception):
        pass

    write, unlink = rows.write, Path.unlink
    countdown = 0

    def tick(before: bool) -> None:
        nonlocal countdown
        countdown -= 1
        if countdown == 0:
            raise Killed

    def slow_write(run: rows.Run, file: Path) -> None:
        tick(True)
        write(run, file)
        tick(False)

    def slow_unlink(self: Path, missing_ok: bool = False) -> None:
        if self.parent.name == follow.WAITING:
            tick(True)
        unlink(self, missing_ok)

    monkeypatch.setattr(rows, "write", slow_write)
    monkeypatch.setattr(Path, "unlink", slow_unlink)
    kills = 0
    while True:
        countdown = 1 + kills % 4
        try:
            follow.follow(tmp_path / "stopped", PLAN)
            break
        except Killed:
            kills += 1
            assert kills < 50
    assert kills >= 4
    assert (tmp_path / "stopped" / job.id / rows.EVALUATION).read_bytes() == expected


def test_reports_read_what_the_follower_measured(
    small_job: Callable[..., Job], tmp_path: Path
) -> None:
    job = small_job("bve", {"eval_episodes": 3})  # training evaluates too, on 3 episodes
    local.run([job], tmp_path)
    (own,) = rows.find([tmp_path])
    assert {row.n for row in own.rows if row.metric == "return"} == {3}
    follow.follow(tmp_path, PLAN)
    (merged,) = rows.find([tmp_path])
    assert {(row.step, row.n) for row in merged.rows if row.metric == "return"} == {(300, 30)}
    assert merged.facts["env"] == "catch"
    assert [row for row in merged.rows if row.metric == "train/loss"] == [
        row for row in own.rows if row.metric == "train/loss"
    ]
    assert merged.last("final/return") == merged.last("return")


def test_a_run_that_begins_meanwhile_is_followed_too(job: Job, tmp_path: Path) -> None:
    trained(tmp_path / "made", job)
    shutil.copytree(tmp_path / "made", tmp_path / "out" / "first")
    seen: list[Path] = []

    def meanwhile(found: Evaluated) -> None:
        seen.append(found.folder)
        if len(seen) == 1:
            shutil.copytree(tmp_path / "made", tmp_path / "out" / "second")

    follow.follow(tmp_path / "out", PLAN, meanwhile, pause=0.0)
    assert [folder.name for folder in seen] == ["first", "second"]


def test_waiting_for_runs_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", stop)
    with pytest.raises(SystemExit) as left:
        cli.main(["follow", str(tmp_path / "typo")])
    assert left.value.code == 130
    assert f"waiting for runs below {tmp_path / 'typo'}\n" in capsys.readouterr().err


def test_what_cannot_be_followed(job: Job, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no rows\.jsonl below"):
        follow.follow(tmp_path, PLAN, once=True)
    trained(tmp_path / job.id, job)
    with pytest.raises(ValueError, match="say which with --env"):
        follow.follow(tmp_path, Plan())
    follow.follow(tmp_path, PLAN)
    file = tmp_path / job.id / rows.EVALUATION
    header, *lines = file.read_text().splitlines()
    kept = [line for line in lines if "final/" not in line]
    file.write_text("\n".join([header, *kept]) + "\n")
    assert json.loads(header)["facts"]["evaluated"]["episodes"] == 30
    with pytest.raises(ValueError, match="was evaluated otherwise"):
        follow.follow(tmp_path, Plan(env="catch", episodes=31, seed=4))
