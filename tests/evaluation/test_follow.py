"""An evaluator beside training: every snapshot once, the same rows whenever it is stopped."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cli import run
from support.recordings import record_policy

from rbve import api, cli, rows
from rbve.evaluation import follow
from rbve.evaluation.evaluate import evaluate
from rbve.evaluation.follow import Evaluated, FollowPlan
from rbve.evaluation.rollout import EvaluationPlan
from rbve.policy import Policy
from rbve.spec import Spec
from rbve.sweep.run import run_jobs
from rbve.training.run import train_members

PLAN = FollowPlan(env="catch", episodes=30, seed=4)
STEPS = [70, 140, 210, 280, 300]


def trained(folder: Path, job: Spec, meanwhile: Callable[[int], None] = lambda step: None) -> None:
    data = api.load(job.data.path)
    train_members([job], [data], [folder], lambda progress: meanwhile(progress.step))


@pytest.fixture
def job(small_job: Callable[..., Spec]) -> Spec:
    return small_job("bve", {"env": None})


def table(folder: Path) -> dict[tuple[int, str], tuple[float, int]]:
    run = rows.read(folder / rows.EVALUATION)
    assert len({(row.step, row.metric) for row in run.rows}) == len(run.rows)
    return {(row.step, row.metric): (row.value, row.n) for row in run.rows}


def test_every_snapshot_is_played_while_training_goes_on(job: Spec, tmp_path: Path) -> None:
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
        alone[step] = evaluate(held[step], "catch", EvaluationPlan(30), PLAN.seed).figures()
        assert found[step, "return"] == alone[step]["return"]
    assert len({found[step, "value_error"] for step in STEPS}) == len(STEPS)
    final = np.mean([alone[step]["return"][0] for step in STEPS[-2:]])  # of five
    assert found[300, "final/return"] == (pytest.approx(final), 60)


def test_stopped_anywhere_it_gives_the_same_rows(
    job: Spec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    small_job: Callable[..., Spec], tmp_path: Path
) -> None:
    job = small_job("bve", {"eval_episodes": 3})  # training evaluates too, on 3 episodes
    run_jobs([job], tmp_path)
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


def test_a_run_that_begins_meanwhile_is_followed_too(job: Spec, tmp_path: Path) -> None:
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


def test_what_cannot_be_followed(job: Spec, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no rows\.jsonl below"):
        follow.follow(tmp_path, PLAN, once=True)
    trained(tmp_path / job.id, job)
    with pytest.raises(ValueError, match="say which with --env"):
        follow.follow(tmp_path, FollowPlan())
    follow.follow(tmp_path, PLAN)
    file = tmp_path / job.id / rows.EVALUATION
    header, *lines = file.read_text().splitlines()
    kept = [line for line in lines if "final" not in line and "finished" not in line]
    file.write_text("\n".join([header, *kept]) + "\n")
    assert json.loads(header)["facts"]["evaluated"]["episodes"] == 30
    with pytest.raises(ValueError, match="was evaluated otherwise"):
        follow.follow(tmp_path, FollowPlan(env="catch", episodes=31, seed=4))


def test_runs_that_lack_a_field_are_named_and_left_out(job: Spec, tmp_path: Path) -> None:
    """Such as those of theory, which train nothing."""
    whole = job.to_json()
    for number, place in enumerate(("view", "data", "evaluation.eval_episodes", "view.gamma")):
        outer, _, inner = place.partition(".")
        spec = json.loads(json.dumps(whole))
        del (spec[outer] if inner else spec)[inner or outer]
        rows.write(rows.Run("x", spec, {}, []), tmp_path / str(number) / rows.FILE)
        with pytest.raises(ValueError, match=f"not of a training run: {place} is missing"):
            follow.follow(tmp_path / str(number), PLAN, once=True)
    trained(tmp_path / job.id, job)
    with pytest.raises(ValueError, match=r"runs left out: 4 of 5 \(the others: 1, 2, 3\)"):
        follow.follow(tmp_path, PLAN)
    assert table(tmp_path / job.id)


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("--episodes", -2, "episodes must be at least 1; got -2"),
        ("--episodes", 0, "episodes must be at least 1; got 0"),
        ("--epsilon", 7, "epsilon must lie in [0, 1]; got 7.0"),
        ("--seed", -1, "seed must lie in [0, 2147483647]; got -1"),
        ("--seed", 2**31, "seed must lie in [0, 2147483647]; got 2147483648"),
    ],
)
def test_numbers_are_checked_as_evaluate_does(
    flag: str, value: int, message: str, job: Spec, tmp_path: Path
) -> None:
    trained(tmp_path / job.id, job)
    policy = tmp_path / job.id / follow.POLICY
    before = sorted(tmp_path.rglob("*"))
    for command in (("follow", tmp_path, "--once"), ("evaluate", policy)):
        assert run(*command, "--env", "catch", flag, value) == (2, "", f"rbve: {message}\n")
    assert sorted(tmp_path.rglob("*")) == before


def test_no_random_actions_and_one_episode_are_what_they_say(job: Spec, tmp_path: Path) -> None:
    """Not taken for numbers that were left out."""
    trained(tmp_path / job.id, job)
    follow.follow(tmp_path, FollowPlan(env="catch", episodes=1, epsilon=0.0))
    found = rows.read(tmp_path / job.id / rows.EVALUATION)
    assert found.facts["evaluated"] == {"env": "catch", "episodes": 1, "epsilon": 0.0, "seed": 0}
    assert {row.n for row in found.rows if row.metric == "return"} == {1}


def test_finished_runs_are_compared_with_what_is_asked(job: Spec, tmp_path: Path) -> None:
    for name in ("a", "b"):
        trained(tmp_path / name, job)
    asked = ("follow", tmp_path, "--env", "catch", "--seed", 4, "--episodes")
    assert run(*asked, 30).err.endswith("all 2 runs are evaluated\n")
    held = {file: file.read_bytes() for file in tmp_path.rglob("*.*")}
    assert run(*asked, 30) == (0, "", "all 2 runs are evaluated\n")
    code, _, told = run(*asked, 31)
    assert code == 2
    assert told.startswith(f"rbve: {tmp_path / 'a' / rows.EVALUATION}: was evaluated otherwise")
    assert told.endswith("runs left out: 2 of 2 (the others: b)\n")
    assert "was evaluated otherwise" in run("follow", tmp_path, "--env", "cartpole").err
    assert {file: file.read_bytes() for file in tmp_path.rglob("*.*")} == held
    shutil.rmtree(tmp_path / "b")
    assert run(*asked, 30).err == "the run is evaluated\n"


def test_runs_of_another_game_are_named_and_left_out(job: Spec, tmp_path: Path) -> None:
    """Those that come first do not keep the others from being evaluated."""
    data = tmp_path / "data"
    record_policy("memory_len:3", data, None, episodes=9)
    plan: dict[str, Any] = {"steps": 20, "every": 10, "batch_size": 4, "hidden": (4,)}
    other = Spec.of(algorithm="bve", path=data, target_period=5, **plan)
    runs = tmp_path / "runs"
    trained(runs / "alien", other)
    shutil.copytree(runs / "alien", runs / "begun")
    (runs / "begun" / follow.POLICY).unlink()  # as if training went on
    trained(runs / "native", job)
    code, _, told = run("follow", runs, "--env", "catch", "--episodes", 5)
    assert code == 2
    assert "native: step 300: return" in told
    assert follow.is_evaluated(runs / "native")
    line = told.splitlines()[-1]
    assert line.startswith(f"rbve: {runs / 'alien'}: catch has observations")
    assert line.endswith("runs left out: 2 of 3 (the others: begun)")
    assert not list(runs.rglob(follow.WAITING))
    shutil.rmtree(data)  # then its first snapshot will tell
    with pytest.raises(ValueError, match=r"alien: catch has .*: 1 of 3$"):
        follow.follow(runs, FollowPlan(env="catch", episodes=5), once=True)
    assert (runs / "begun" / follow.WAITING).is_dir()


def test_more_runs_than_files_may_be_open(tmp_path: Path) -> None:
    """Each is locked while it is followed."""
    for number in range(80):
        file = tmp_path / str(number) / rows.FILE
        rows.write(rows.Run(str(number), {}, {}, []), file)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = len(os.listdir("/proc/self/fd")) + 20
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, before[1]))
    try:
        with pytest.raises(ValueError, match=r"not of a training run: .*: 80 of 80"):
            follow.follow(tmp_path, FollowPlan(), once=True)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_what_is_not_finished_is_told(job: Spec, tmp_path: Path) -> None:
    for name in ("a", "b"):
        trained(tmp_path / name, job)
    (tmp_path / "b" / follow.POLICY).unlink()
    told = run("follow", tmp_path, "--env", "catch", "--episodes", 3, "--once").err
    assert told.endswith("1 of 2 runs evaluated to the end; run it again for the others\n")
    assert (tmp_path / "b" / follow.WAITING).is_dir()


def test_a_process_beside_training(job: Spec, tmp_path: Path) -> None:
    """One run is finished before it starts, the other goes on while it plays."""
    trained(tmp_path / "finished", job)
    command = ("follow", str(tmp_path), "--env", "catch", "--episodes", "5")
    beside: subprocess.Popen[str] | None = None
    waiting = tmp_path / "going-on" / follow.WAITING

    def meanwhile(step: int) -> None:
        nonlocal beside
        if step > 70:
            return
        beside = subprocess.Popen(
            [sys.executable, "-m", "rbve.cli", *command], stderr=subprocess.PIPE, text=True
        )
        until = time.monotonic() + 120
        while not waiting.is_dir() and beside.poll() is None and time.monotonic() < until:
            time.sleep(0.02)

    try:
        trained(tmp_path / "going-on", job, meanwhile)
        assert beside is not None
        told = beside.communicate(timeout=120)[1]
    finally:
        if beside is not None:
            beside.kill()
    assert beside.returncode == 0, told
    assert told.endswith("all 2 runs are evaluated\n")
    steps = {
        name: sorted(step for step, metric in table(tmp_path / name) if metric == "return")
        for name in ("finished", "going-on")
    }
    assert steps == {"finished": [300], "going-on": STEPS[1:]}
    assert not waiting.exists()


@pytest.mark.filterwarnings("ignore:V̂ is the same")  # so early nobody has scored
def test_an_atari_game(tmp_path: Path) -> None:
    """Frames joined from outside JAX, snapshot by snapshot; a game cut short has no score."""
    pytest.importorskip("ale_py", reason='needs pip install "rbve[atari]"')
    game = "atari:Pong,max_steps=5"
    record_policy(game, tmp_path / "pong", None, episodes=2)
    plan: dict[str, Any] = {"steps": 4, "every": 2, "batch_size": 2, "stack": 4, "torso": "mlp"}
    path = tmp_path / "pong"
    job = Spec.of(algorithm="bve", path=path, hidden=(4,), target_period=5, **plan)
    folder = tmp_path / "runs" / job.id
    (folder / follow.WAITING).mkdir(parents=True)
    trained(folder, job)
    follow.follow(tmp_path / "runs", FollowPlan(env=game, episodes=3))
    found = table(folder)
    for step in (2, 4):
        assert found[step, "episode_length"] == (5, 3)
        assert found[step, "return"][1] == 3
    assert np.isfinite(found[4, "final/return"][0])
    assert not any("normalised" in metric for _, metric in found)
