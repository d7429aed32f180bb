"""Algorithm files outside the package: executed once, and only where a caller names them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cli import run

import rbve
from rbve import algorithms, rows
from rbve.data import Dataset
from rbve.paper._pages.command import settings
from rbve.policy import Policy
from rbve.spec import Spec
from rbve.tensors import read_tensors, write_tensors
from rbve.training.run import CHECKPOINT, POLICY, train_members
from rbve.types import Tower

MINE = '''"""Mine: L = E (r + γ Q' − Q)²."""
from dataclasses import dataclass
from typing import NamedTuple

from rbve import ops
from rbve.algorithms import {base}

HEAD, BOOTSTRAP = {base}.HEAD, {base}.BOOTSTRAP


class Config(NamedTuple):
    threshold: float = 0.3
    logit_penalty: float = 0.01


@dataclass(frozen=True)
class Options:
    double: bool = True
    heads: int = 5


def loss(views, batch, config, options, td, key):
    return {base}.loss(views, batch, config, options, td, key)
'''
PLAN = {"steps": 20, "every": 20, "env": None}
LEAST = "\n\ndef scores(head, legal, config, options):\n    return ops.mask(-head.q, legal)\n"


@pytest.fixture
def train(small_job: Callable[..., Spec], catch: Dataset, tmp_path: Path) -> Callable[..., Path]:
    def make(file: Path) -> Path:
        folder = tmp_path / f"run-{file.stem}"
        train_members([small_job(str(file), PLAN)], [catch], [folder])
        return folder

    return make


def write(file: Path, base: str = "dqn", more: str = "") -> Path:
    file.write_text(MINE.format(base=base) + more)
    return file


def test_a_file_is_executed_once_for_each_content(tmp_path: Path) -> None:
    log = tmp_path / "log"
    more = f"\nwith open({str(log)!r}, 'a') as file:\n    file.write('x')\n"
    file = write(tmp_path / "mine.py", more=more)
    first, second = algorithms.load(str(file)), algorithms.load(str(file))
    assert log.read_text() == "x"
    assert first.options is second.options
    assert first.options() == second.options()
    write(file, more=more.replace("'x'", "'y'"))
    assert algorithms.load(str(file)).version != first.version
    assert log.read_text() == "xy"


def test_files_of_one_name_stay_apart(tmp_path: Path) -> None:
    for folder, base in (("one", "dqn"), ("two", "bcq")):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "mine.py", base)
    one, two = (algorithms.load(str(tmp_path / name / "mine.py")) for name in ("one", "two"))
    assert (one.head, two.head) == ("q", ("q", Tower("policy")))
    assert one.options is not two.options


@pytest.mark.parametrize(
    ("base", "more"), [("dqn", ""), ("bcq", "\nscores = bcq.scores\n"), ("rem", "")]
)
def test_a_policy_needs_its_algorithm_file_no_more(
    train: Callable[..., Path], tmp_path: Path, base: str, more: str
) -> None:
    file = write(tmp_path / "mine.py", base, more)
    folder = train(file)
    obs = np.random.default_rng(0).normal(size=(5, 10, 5)).astype(np.float32)
    before = Policy.load(folder / POLICY, algorithm=file)
    file.unlink()
    policy = Policy.load(folder / POLICY)
    np.testing.assert_array_equal(policy.scores(obs), before.scores(obs))
    assert policy.algorithm.name == str(file)
    assert policy.algorithm.values
    policy.save(tmp_path / "again.safetensors")
    again = Policy.load(tmp_path / "again.safetensors")
    np.testing.assert_array_equal(again.act(obs), policy.act(obs))
    assert dataclasses.asdict(again.options) == {"double": True, "heads": 5}
    assert rbve.evaluate(policy, "catch", episodes=2)["episode_length"] == 9


def test_scores_of_its_own_need_the_file_by_name(
    train: Callable[..., Path], tmp_path: Path
) -> None:
    file = write(tmp_path / "least.py", more=LEAST)
    policy = train(file) / POLICY
    words = r"least\.py has scores of its own.*algorithm='least\.py'.*--algorithm least\.py"
    with pytest.raises(ValueError, match=words):
        Policy.load(policy)
    obs = np.ones((10, 5), np.float32)
    loaded = Policy.load(policy, algorithm=file)
    assert loaded.act(obs) == np.argmin(loaded.q_values(obs))
    found = run("evaluate", policy, "--env", "catch", "--episodes", 2)
    assert found.code == 2
    assert found.err.count("\n") == 1
    assert "--algorithm least.py" in found.err
    shown = run("evaluate", policy, "--env", "catch", "--episodes", 2, "--algorithm", file)
    assert shown.code == 0, shown.err
    data = ("--out", tmp_path / "data", "--episodes", 2)
    recorded = run("record", "catch", "--policy", policy, "--algorithm", file, *data)
    assert recorded.code == 0, recorded.err


def test_follow_takes_the_file_for_the_runs_that_need_it(
    train: Callable[..., Path], small_job: Callable[..., Spec], catch: Dataset, tmp_path: Path
) -> None:
    file = write(tmp_path / "least.py", more=LEAST)
    train(file)
    train_members([small_job("bve", PLAN)], [catch], [tmp_path / "run-bve"])
    command = ("follow", tmp_path, "--env", "catch", "--episodes", 2, "--once")
    assert "--algorithm least.py" in run(*command).err
    found = run(*command, "--algorithm", file)
    assert (found.code, found.err.splitlines()[-1]) == (0, "all 2 runs are evaluated")


def test_an_edited_file_is_told(train: Callable[..., Path], tmp_path: Path) -> None:
    file = write(tmp_path / "mine.py")
    folder = train(file)
    write(file, more="\n# edited\n")
    Policy.load(folder / POLICY)  # nothing of the file is used
    with pytest.warns(UserWarning, match=r"mine\.py is not the file it was trained with"):
        Policy.load(folder / POLICY, algorithm=file)
    with pytest.raises(
        ValueError, match=r"head 'q', that of bcq is 'q\+tower:policy'; give .*mine\.py"
    ):
        Policy.load(folder / POLICY, algorithm="bcq")


@pytest.mark.parametrize(
    "change",
    [
        {"scores": "bcq"},
        {"scores": "os"},
        {"scores": "bcq", "head": "q_policy", "config": {}},
        {"options": {"not a name": 1}},
        {"options": {"import": 1}},
        {"config": {"_hidden": 1.0}},
    ],
    ids=str,
)
def test_settings_that_do_not_fit_are_refused(
    train: Callable[..., Path], tmp_path: Path, change: dict[str, Any]
) -> None:
    file = train(write(tmp_path / "mine.py")) / POLICY
    arrays, info = read_tensors(file)
    write_tensors(file, arrays, info | change)
    with pytest.raises(ValueError, match="damaged; its settings do not fit"):
        Policy.load(file)


def renamed(content: Any, name: str) -> Any:
    """JSON in which every algorithm has this name."""
    if isinstance(content, list):
        return [renamed(each, name) for each in content]
    if not isinstance(content, dict):
        return content
    return {
        key: name if key == "algorithm" else renamed(value, name) for key, value in content.items()
    }


@pytest.mark.parametrize("known", [True, False], ids=["scores", "no scores"])
def test_no_file_runs_what_it_names(
    train: Callable[..., Path], tmp_path: Path, known: bool
) -> None:
    """A policy, a checkpoint, rows and the snapshots of a run that name somebody's code."""
    folder = train(write(tmp_path / "mine.py"))
    marker, evil = tmp_path / "marker", tmp_path / "evil.py"
    write(evil, more=f"\nopen({str(marker)!r}, 'w').close()\n")
    for file in (folder / POLICY, folder / CHECKPOINT):
        arrays, info = read_tensors(file)
        info = renamed(info, str(evil))
        if not known:
            info["scores"] = None
        write_tensors(file, arrays, info)
    run_rows = rows.read(folder / rows.FILE)
    rows.write(run_rows._replace(spec=renamed(run_rows.spec, str(evil))), folder / rows.FILE)
    assert str(evil) in json.dumps(rows.read(folder / rows.FILE).spec)
    policy = folder / POLICY
    for command in (
        ("evaluate", policy, "--env", "catch", "--episodes", 2),
        ("record", "catch", "--policy", policy, "--episodes", 2, "--out", tmp_path / "data"),
        ("follow", folder, "--env", "catch", "--episodes", 2, "--once"),
        ("report", folder, "--out", tmp_path / "page.html"),
        ("pack", tmp_path, "--out", tmp_path / "packed"),
    ):
        assert "Traceback" not in run(*command).err
        assert not marker.exists(), command
    assert settings(rows.read(folder / rows.FILE).spec)
    assert not marker.exists()
    algorithms.load(str(evil))
    assert marker.exists()  # as it would have been


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("jnp.mean(value), metrics", r"floats of shape \(16,\); it returned float32 of shape \(\)"),
        ("value[:, None], metrics", r"it returned float32 of shape \(16, 1\)"),
        ("0.0, metrics", "it returned a float"),
        ("value > 0, metrics", r"floats of shape \(16,\); it returned bool of shape \(16,\)"),
        ("value", r"an array and a dict of arrays; it returned float32 of shape \(16,\)"),
        (
            "(value, metrics, 1)",
            r"it returned a tuple of 3 \(float32 of shape \(16,\), a dict, a int",
        ),
        ("value, {'q': views.now.q}", r"'q' is float32 of shape \(16, 3\)"),
    ],
)
def test_a_loss_of_another_shape_is_refused(
    train: Callable[..., Path], tmp_path: Path, said: str, words: str
) -> None:
    wrong = (
        "    value, metrics = dqn.loss(views, batch, config, options, td, key)\n    return " + said
    )
    source = MINE.format(base="dqn").split("    return dqn.loss")[0] + wrong
    file = tmp_path / "mine.py"
    file.write_text(source.replace("from rbve import ops", "import jax.numpy as jnp"))
    with pytest.raises(ValueError, match=f"loss of .*mine.py needs to return.*{words}"):
        train(file)


def test_metrics_may_be_single_numbers(train: Callable[..., Path], tmp_path: Path) -> None:
    first = "    value, metrics = dqn.loss(views, batch, config, options, td, key)\n"
    own = first + "    return value, {'largest': value.max(), 'two': 2.0}\n"
    file = tmp_path / "mine.py"
    file.write_text(MINE.format(base="dqn").split("    return dqn.loss")[0] + own)
    found = rows.read(train(file) / rows.FILE)
    assert found.last("train/largest") > found.last("train/loss")  # type: ignore[operator]
    assert found.last("train/two") == 2
