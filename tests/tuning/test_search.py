"""A search is trials of ordinary jobs; the worse end early, and it goes on where it was cut."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.cli import run

import rbve
from rbve import rows
from rbve.tuning.search import JOURNAL, Tuning

pytest.importorskip("optuna", reason='Optuna is not installed: pip install "rbve[tune]"')
PLAN: dict[str, Any] = {
    "search": ("learning_rate=1e-4..1e-2,log", "hidden=4,8"), "trials": 6, "at_once": 6,
    "steps": 90, "rungs": 2, "set": ("batch_size=16",), "criterion": "heldout_value_rmse",
    "algorithm": ("bve",),
}  # fmt: skip


@pytest.fixture(scope="module")
def found(catch_path: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tuning, Path]:
    out = tmp_path_factory.mktemp("tune")
    return rbve.tune(catch_path, out, **PLAN), out


def final(out: Path, job: str) -> float | None:
    return rows.read(out / "runs" / job / rows.FILE).last("final/heldout_value_rmse")


def test_the_best_third_goes_on(found: tuple[Tuning, Path]) -> None:
    tuning, out = found
    assert [each.number for each in tuning.trials] == list(range(6))
    finished = [each for each in tuning.trials if each.state == "finished"]
    stopped = [each for each in tuning.trials if each.state == "stopped"]
    assert (len(finished), len(stopped)) == (2, 4)
    assert {each.steps for each in finished} == {90}
    assert {each.steps for each in stopped} == {30}
    for each in tuning.trials:
        assert each.value == final(out, each.job)
    assert not tuning.maximise
    assert tuning.best == min(finished, key=lambda each: each.value or 0.0)
    first = {  # where the finished ones stood when the others were stopped
        each.number: final(out, job)
        for each in finished
        for job in [jobs_of(out)[each.tried["learning_rate"], each.tried["hidden"], 30]]
    }
    assert max(value or 0.0 for value in first.values()) <= min(e.value or 0.0 for e in stopped)


def jobs_of(out: Path) -> dict[tuple[str, str, int], str]:
    """(learning rate, hidden, steps) -> run."""
    runs = [rows.read(file) for file in (out / "runs").glob(f"*/{rows.FILE}")]
    return {
        (
            f"{each.field('learning_rate'):.4g}",
            "x".join(map(str, each.field("hidden"))),
            each.field("steps"),
        ): each.job
        for each in runs
    }


def test_a_trial_is_the_job_that_train_would_run(
    found: tuple[Tuning, Path], catch_path: Path, tmp_path: Path
) -> None:
    tuning, out = found
    assert tuning.best is not None
    folder = out / "runs" / tuning.best.job
    spec = rows.read(folder / rows.FILE).spec
    own = {"learning_rate": spec["optimiser"]["learning_rate"], "hidden": spec["network"]["hidden"]}
    own |= {"every": 30, "batch_size": 16, "holdout": 0.3, "holdout_seed": 0}
    rbve.train(
        catch_path, "bve", steps=90, out=tmp_path, env="none", seed=0,
        target_period=spec["optimiser"]["target_period"], **own,
    )  # fmt: skip
    assert (tmp_path / tuning.best.job / rows.FILE).read_bytes() == (
        folder / rows.FILE
    ).read_bytes()
    saved = (out / "policy.safetensors").read_bytes()
    assert saved == (folder / "policy.safetensors").read_bytes()


def test_the_page_tells_history_importance_and_all_trials(found: tuple[Tuning, Path]) -> None:
    tuning, out = found
    page = (out / "index.html").read_text()
    for words in ("What each trial reached", "All trials", "partly the luckiest", "learning_rate"):
        assert words in page
    assert sum(tuning.importance.values()) == pytest.approx(1.0) or not tuning.importance
    assert (out / "figures" / "reached.csv").read_text().count("\n") == 7


def test_the_same_call_tries_nothing_again_and_more_trials_go_on(
    found: tuple[Tuning, Path], catch_path: Path
) -> None:
    tuning, out = found
    told: list[Any] = []
    again = rbve.tune(catch_path, out, on_progress=told.append, **PLAN)
    assert (again.trials, told) == (tuning.trials, [])
    more = rbve.tune(catch_path, out, **{**PLAN, "trials": 8})
    assert more.trials[:6] == tuning.trials
    assert len(more.trials) == 8


def test_another_search_in_the_folder_is_refused(
    found: tuple[Tuning, Path], catch_path: Path
) -> None:
    with pytest.raises(ValueError, match="a search with another algorithm; give another --out"):
        rbve.tune(
            catch_path, found[1], **{**PLAN, "search": ("lam=0.1..1",), "algorithm": ("rbve",)}
        )


def test_bad_input_is_one_line(catch_path: Path, tmp_path: Path) -> None:
    for flags, words in (
        (("--criterion", "heldout_value_rsme"), "Did you mean 'heldout_value_rmse'?"),
        (("--criterion", "return"), 'criterion "return" needs an environment'),
        (("--search", "lamb=0..1"), "lamb: neither a field nor a setting"),
        (("--set", "lam=1,2"), "--set keeps one value"),
        (("--env", "catch", "--criterion", "offline"), "is of held-out episodes"),
    ):
        done = run("tune", catch_path, "--out", tmp_path / "out", *flags)
        assert done.code == 2
        assert words in done.err
        assert len(done.err.splitlines()) == 1


def test_the_environments_return(catch_path: Path, tmp_path: Path) -> None:
    flags = ("--env", "auto", "--trials", 2, "--steps", 60, "--rungs", 1, "--eval-episodes", 4)
    done = run("tune", catch_path, *flags, "--set", "hidden=4", "--out", tmp_path, "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert (told["criterion"], told["maximise"]) == ("return", True)
    assert {each["state"] for each in told["trials"]} == {"finished"}


@pytest.mark.slow
def test_the_offline_criterion_is_the_number_select_ranks_by(
    catch_path: Path, tmp_path: Path
) -> None:
    plan = {**PLAN, "criterion": "offline", "trials": 2, "at_once": 2, "rungs": 1, "fit_steps": 60}
    tuning = rbve.tune(catch_path, tmp_path, **plan)
    from rbve.off_policy.rule import guess

    policies = {e.job: tmp_path / "runs" / e.job / "policy.safetensors" for e in tuning.trials}
    judged = rbve.ope(catch_path, policies, fit_steps=60)
    assert {e.job: e.value for e in tuning.trials} == {
        each.policy: pytest.approx(guess(each, judged.returns)) for each in judged.judgements
    }


@pytest.mark.slow
def test_a_search_that_is_killed_comes_to_the_same_trials(catch_path: Path, tmp_path: Path) -> None:
    flags = "--algorithm bve --criterion heldout_value_rmse --trials 8 --at-once 4 --steps 2700"
    words = [*flags.split(), "--set", "batch_size=16", "--search", "learning_rate=1e-4..1e-2,log"]
    start = [sys.executable, "-m", "rbve.cli", "tune", str(catch_path), *words, "--out"]
    whole = subprocess.run([*start, str(tmp_path / "whole"), "--json"], capture_output=True)
    assert whole.returncode == 0, whole.stderr
    for seconds in (2, 4, 6, 8):  # after the study begins
        with subprocess.Popen(
            [*start, str(tmp_path / "cut")], stderr=subprocess.DEVNULL
        ) as process:
            while process.poll() is None and not (tmp_path / "cut" / JOURNAL).exists():
                time.sleep(0.05)
            time.sleep(seconds)
            process.kill()
    cut = subprocess.run([*start, str(tmp_path / "cut"), "--json"], capture_output=True)
    assert cut.returncode == 0, cut.stderr
    assert json.loads(cut.stdout) == json.loads(whole.stdout)
