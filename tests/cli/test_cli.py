"""Every command end to end on tiny inputs; what goes wrong is one line and exit code 2."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.cli import run

from rbve import rows
from rbve.cli import _parse
from rbve.data import Episode, load
from rbve.data.formats.native import StoreWriter
from rbve.training.member import PREVIOUS
from rbve.training.run import CHECKPOINT, POLICY

TRAIN = ("--steps", "40", "--every", "20", "--eval-episodes", "4", "--batch-size", "8")

OWN = '''"""Behaviour cloning of a kind: raise the value of what was done."""

from typing import NamedTuple

from rbve import ops

HEAD = "q"
BOOTSTRAP = "none"


class Config(NamedTuple):
    pull: float = 1.0


def loss(views, batch, config, options, td, key):
    q = ops.select(views.now.q, batch.action)
    return config.pull * td.penalty(q - batch.g), {"q": q}
'''


def succeed(*arguments: object) -> str:
    result = run(*arguments)
    assert result.code == 0, result.err
    return result.out


def complain(*arguments: object) -> str:
    """The one line that a command has to say about bad input."""
    result = run(*arguments)
    assert result.code == 2, result
    assert result.out == ""
    assert result.err.startswith("rbve: ")
    assert result.err.count("\n") == 1
    assert "Traceback" not in result.err
    return result.err


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recorded store `data` and trained `runs`."""
    path = tmp_path_factory.mktemp("cli")
    command = ("record", "catch", "--episodes", 60, "--policy", "uniform", "--json")
    figures = json.loads(succeed(*command, "--out", path / "data"))
    assert figures["episodes"] == 60
    assert figures["path"] == str(path / "data")
    (path / "train.json").write_text(succeed(*train_command(path), "--json"))
    return path


def train_command(path: Path) -> tuple[object, ...]:
    names = ("--algorithm", "rbve", "bve", "--set", "lam=0.005,0.5")
    return ("train", path / "data", "--out", path / "runs", *names, *TRAIN)


def policy_of(path: Path) -> Path:
    return sorted((path / "runs").glob(f"bve-*/{POLICY}"))[0]


def test_record_shows_what_it_recorded(tmp_path: Path) -> None:
    command = ("record", "catch", "--episodes", 5, "--policy", "uniform", "--out", tmp_path / "a")
    text = succeed(*command, "--seed", 1, 2)
    assert "episodes" in text
    one, two = load(tmp_path / "a" / "1"), load(tmp_path / "a" / "2")
    assert one.num_episodes == two.num_episodes == 5
    assert not np.array_equal(one.action, two.action)


def test_inspect(place: Path) -> None:
    figures = json.loads(succeed("inspect", place / "data", "--json"))
    assert figures["episodes"] == 60
    assert figures["transitions"] == 540
    assert figures["terminated_episodes"] == 60
    assert sum(action["count"] for action in figures["actions"].values()) == 540
    text = succeed("inspect", place / "data")
    assert "540" in text
    assert "left" in text


def test_train_makes_every_member(place: Path) -> None:
    runs = rows.find([place / "runs"])
    settings = sorted((run.spec["algorithm"], run.spec["settings"].get("lam")) for run in runs)  # type: ignore[arg-type]
    assert settings == [("bve", None), ("rbve", 0.005), ("rbve", 0.5)]
    assert all(run.last("final/return") == run.last("return") is not None for run in runs)
    assert json.loads((place / "train.json").read_text())


def test_train_again_trains_nothing(place: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in (place / "runs").rglob("*.*")}
    again = succeed(*train_command(place), "--json")
    assert again == (place / "train.json").read_text()
    assert {file: file.stat().st_mtime_ns for file in (place / "runs").rglob("*.*")} == before
    text = succeed(*train_command(place))
    assert "R-BVE" in text


def test_train_goes_on_after_an_interruption(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("train", place / "data", "--out", tmp_path, "--algorithm", "bve", *TRAIN)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("rbve.training.run.MemberRun.policy", interrupt)
        stopped = run(*command)
    assert stopped.code == 130
    assert stopped.err.startswith("rbve: interrupted")
    succeed(*command)
    (mine,) = rows.find([tmp_path])
    (other,) = (r for r in rows.find([place / "runs"]) if r.job == mine.job)
    assert mine == other


def test_evaluate(place: Path) -> None:
    command = ("evaluate", policy_of(place), "--env", "catch", "--episodes", 10)
    figures = json.loads(succeed(*command, "--json"))
    assert figures["episode_length"] == 9
    assert -1 <= figures["return"] <= 1
    low, high = figures["return_interval"]
    assert low <= figures["return"] <= high
    assert figures["episodes"] == 10
    text = succeed(*command)
    assert "action gap" in text
    assert f"[{low:,.4g}, {high:,.4g}] (95%, over 10 episodes)" in text
    alone = json.loads(succeed(*command[:-1], 1, "--json"))
    assert alone["return_interval"] is None


def test_figures_that_are_not_known_are_null_in_json(tmp_path: Path) -> None:
    """Every episode of this level ends by its time limit, so over-estimation is not known."""
    level, data = "collect:few", tmp_path / "data"
    succeed("record", level, "--policy", "uniform", "--episodes", 2, "--out", data)
    few = ("--env", "none", "--holdout", 0, "--steps", 2)
    succeed("train", data, *few, "--out", tmp_path / "runs")
    (policy,) = (tmp_path / "runs").glob(f"*/{POLICY}")
    figures = succeed("evaluate", policy, "--env", level, "--episodes", 2, "--json")
    assert json.loads(figures)["overestimation"] is None


def test_report(place: Path, tmp_path: Path) -> None:
    result = run("report", place / "runs", "--out", tmp_path / "page.html", "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)
    assert "page.html" in result.err
    assert "rbve" in (tmp_path / "page.html").read_text()


def test_an_algorithm_of_ones_own(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "pulling.py"
    file.write_text(OWN)
    command = ("train", place / "data", "--out", tmp_path / "runs", *TRAIN)
    text = succeed(*command, "--algorithm", file, "bve", "--set", "pull=2")
    assert "pulling" in text
    found = rows.find([tmp_path / "runs"])
    assert sorted(run.spec["settings"].get("pull", 0) for run in found) == [0, 2]
    (policy,) = (tmp_path / "runs").glob(f"pulling-*/{POLICY}")
    succeed("evaluate", policy, "--env", "catch", "--episodes", 2)
    succeed("report", tmp_path / "runs", "--out", tmp_path / "page.html")
    assert "pulling" in (tmp_path / "page.html").read_text()


def test_an_expert_of_the_online_agent_is_a_policy(tmp_path: Path) -> None:
    succeed("record", "catch", "--episodes", 12, "--out", tmp_path / "online")
    expert = tmp_path / "online" / "expert.safetensors"
    command = ("record", "catch", "--episodes", 8, "--policy", expert, "--epsilon", 0.25)
    succeed(*command, "--out", tmp_path / "noisy")
    assert load(tmp_path / "noisy").provenance["epsilon"] == 0.25


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["record", "--help"]])
def test_help_needs_no_jax(arguments: list[str]) -> None:
    code = f"""
import sys
from rbve.cli import main
try:
    main({arguments})
except SystemExit as stop:
    print(f"code {{stop.code}}", "jax" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] in ("code 0 False", "code None False")
    assert found.stderr == ""
    for word in ("rbve", "catch") if arguments[0] == "record" else ("train",):
        assert word in found.stdout


def test_exit_code_of_the_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rbve.cli", "inspect", str(tmp_path / "nothing")]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert found.stdout == ""
    assert found.stderr.count("\n") == 1
    assert "no such dataset" in found.stderr


def test_reproduce_says_what_it_made_and_how_to_look_at_it(tmp_path: Path) -> None:
    out = tmp_path / "study"
    found = run("reproduce", "divergence", "--scale", "quick", "--out", out)
    assert found.code == 0, found.err
    *figures, last = found.err.splitlines()
    assert all(Path(line.removeprefix("figure: ")).is_file() for line in figures)
    assert figures
    assert last == f"done: `rbve report {out} --out study.html` shows it"
    page = tmp_path / "study.html"
    succeed("report", out, "--out", page)
    assert "Divergence" in page.read_text()


def test_a_terminal_with_few_letters() -> None:
    plain = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "rbve.cli", "reproduce", "--help"]
    found = subprocess.run(
        command,
        capture_output=True,
        check=False,
        env={**os.environ, **plain, "PYTHONCOERCECLOCALE": "0"},
    )
    assert (found.returncode, found.stderr) == (0, b"")
    assert b"strength of the ranking term" in b" ".join(found.stdout.split())
    assert found.stdout.isascii()


# What goes wrong


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "DATA", "--algorithm", "rbv"], "unknown algorithm 'rbv'. Did you mean 'rbve'?"),
        (["train", "DATA", "--algorithm", "no.py"], "no such algorithm file"),
        (["train", "DATA", "--env", "cach"], "Did you mean 'catch'?"),
        (["train", "DATA", "--env", "cartpole"], "cartpole has observations"),
        (["train", "DATA", "--set", "lamb=1"], "Did you mean 'lam'?"),
        (["train", "DATA", "--set", "lam"], "NAME=VALUE"),
        (["train", "DATA", "--set", "lam=much"], "takes a number"),
        (["train", "DATA", "--set", "filter=nonsense"], "filter"),
        (["train", "DATA", "--step", "5"], "rbve: Unrecognized options: --step, 5; Perhaps"),
        (["train", "DATA", "--steps", "0"], "steps must lie in"),
        (["train", "DATA", "--steps", "many"], "steps"),
        (["train", "DATA", "--batch-size", "-1"], "batch_size must lie in"),
        (["train", "DATA", "--gamma", "1.5"], "gamma"),
        (["train", "DATA", "--learning-rate", "-1"], "learning_rate must be positive"),
        (["train", "DATA", "--td", "cube"], "td"),
        (["train", "DATA", "--keep", "0"], "share of episodes"),
        (["train", "NOWHERE"], "no such dataset"),
        (["train"], "DATA needs"),
        (["train", "DATA", "--algorithm"], "--algorithm needs"),
        (["train", "DATA", "--seed"], "--seed needs"),
        (["trian", "DATA"], "; Available subcommands: convert, demo"),
        (["record", "cach", "--out", "OUT"], "Did you mean 'catch'?"),
        (["record", "catch"], "rbve: Missing from rbve record: --out PATH; For full"),
        (["record", "catch", "--out", "OUT", "--episodes", "0"], "at least 1"),
        (["record", "catch", "--out", "OUT", "--episodes", "3", "--steps", "400"], "got 3 and 400"),
        (["record", "catch", "--out", "OUT", "--noise", "2"], "probability"),
        (["record", "catch", "--out", "OUT", "--policy", "NOWHERE"], "no such file"),
        (["record", "catch", "--out", "DATA", "--policy", "uniform"], "already holds a dataset"),
        (["record", "catch", "--out", "OUT", "--policy", "uniform", "--epsilon", "2"], "epsilon"),
        (["inspect", "NOWHERE"], "no such dataset"),
        (["convert", "no/run_1-*", "OUT"], "rbve: no/run_1-*: no file matches"),
        (["convert", "*", "OUT"], "rbve: *: no file matches"),
        (["convert", "x.csv", "OUT", "--decimal", ";"], "rbve: decimal must be"),
        (["inspect", "RUNS"], "no dataset of a known format"),
        (["evaluate", "POLICY", "--env", "cartpole"], "the policy takes"),
        (["evaluate", "POLICY", "--env", "catch", "--episodes", "0"], "at least 1"),
        (["evaluate", "MANIFEST", "--env", "catch"], "not a file of rbve"),
        (["evaluate", "DATA", "--env", "catch"], "data"),
        (["report"], "RUNS needs"),
        (["report", "NOWHERE"], "no such file or folder"),
        (["report", "DATA"], "no rows.jsonl below"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], words: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    known = {"NOWHERE": tmp_path / "nowhere", "RUNS": place / "runs", "OUT": tmp_path / "out"}
    known |= {"POLICY": policy_of(place), "DATA": place / "data"}
    known["MANIFEST"] = place / "data" / "manifest.json"
    given = [str(known.get(part, part)) for part in arguments]
    assert words in complain(*given)


def test_an_empty_store(tmp_path: Path) -> None:
    StoreWriter(tmp_path / "empty", 3)
    assert "empty" in complain("inspect", tmp_path / "empty")
    assert "empty" in complain("train", tmp_path / "empty", "--out", tmp_path / "runs")


def test_not_a_number_is_not_recorded(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", 2)
    episode = Episode.from_steps(np.zeros((3, 2)), [0, 1], [0.0, float("nan")], True)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="episode 0, step 1: the reward is not finite"):
        writer.append([episode])
    assert "empty" in complain("inspect", tmp_path / "store")


def flip_byte(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)


def test_a_flipped_byte_in_a_store(place: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(place / "data", store)
    flip_byte(store / "reward.bin", 37)
    for command in (["inspect", store], ["train", store, "--out", tmp_path / "runs"]):
        message = complain(*command)
        assert "reward.bin" in message
        assert "checksum" in message


def test_damaged_results(place: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    shutil.copytree(place / "runs", runs)
    command = ("train", place / "data", "--out", runs, "--algorithm", "bve", *TRAIN)
    (folder,) = runs.glob("bve-*")
    (folder / POLICY).unlink()
    (folder / PREVIOUS).unlink()
    flip_byte(folder / CHECKPOINT, -3)
    assert f"damaged; delete {folder.absolute()} to train it" in complain(*command)
    (folder / CHECKPOINT).write_bytes(b"nothing")
    assert "damaged" in complain(*command)
    (folder / CHECKPOINT).unlink()
    succeed(*command)
    flip_byte(folder / POLICY, -3)
    assert "damaged" in complain("evaluate", folder / POLICY, "--env", "catch")
    (folder / rows.FILE).write_text("nothing\n")
    assert "not a file of result rows" in complain("report", runs, "--out", tmp_path / "p.html")


def test_results_beside_another_jobs_checkpoint(place: Path, tmp_path: Path) -> None:
    command = ("train", place / "data", "--out", tmp_path, "--algorithm", "bve", *TRAIN)
    succeed(*command)
    (folder,) = tmp_path.glob("bve-*")
    (folder / POLICY).unlink()
    other = sorted((place / "runs").glob("rbve-*"))[0]
    shutil.copy(other / CHECKPOINT, folder / CHECKPOINT)
    assert "another job" in complain(*command)


def test_a_path_below_a_file(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    below = file / "out"
    complain("record", "catch", "--episodes", 5, "--policy", "uniform", "--out", below)
    complain("train", place / "data", "--out", below, *TRAIN)
    complain("report", place / "runs", "--out", below / "page.html")
    assert file.read_text() == ""


def test_a_full_disk(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    runs = tmp_path / "runs"
    command = ("train", place / "data", "--out", runs, "--algorithm", "bve", *TRAIN)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        record = ("record", "catch", "--episodes", 5, "--policy", "uniform")
        assert "No space left" in complain(*record, "--out", tmp_path / "data")
        assert "No space left" in complain(*command)
    succeed(*command)
    assert len(rows.find([runs])) == 1


@pytest.mark.parametrize("command", _parse.names())
def test_help_says_what_positional_arguments_are(command: str) -> None:
    shown = run(command, "--help").out
    assert "options" in shown
    assert not re.search(r" ([A-Z]+) +(?i:\1) \((required|default)", shown)
