"""Checks of things added to a copy of the package, run with that copy on the path.

python additions.py FOLDER KIND ... prints a JSON object: kind -> "" or what failed.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import rbve
from support.cli import run

SMALL = ("--eval-episodes", 2, "--batch-size", 8, "--hidden", 4, "--steps", 20, "--every", 10)


def rbve_command(*arguments: object) -> str:
    done = run(*arguments)
    assert done.code == 0, done.err
    return done.out + done.err


def data(folder: Path) -> Path:
    """Uniform play in the environment that was added."""
    path = folder / "data"
    if not path.exists():
        rbve_command("record", "coin", "--policy", "uniform", "--episodes", 20, "--out", path)
    return path


def trained(folder: Path, *flags: object) -> Path:
    """The run of `rbve train` with these flags."""
    out = folder / "-".join(str(flag).strip("-") for flag in flags)
    rbve_command("train", data(folder), *SMALL, *flags, "--out", out)
    (run_folder,) = (file.parent for file in out.glob("*/policy.safetensors"))
    return run_folder


def environment(folder: Path) -> None:
    policy = trained(folder, "--algorithm", "bve") / "policy.safetensors"
    told = json.loads(
        rbve_command("evaluate", policy, "--env", "coin", "--episodes", 5, "--json").splitlines()[0]
    )
    assert told["episode_length"] == 1.0
    assert "coin" in rbve_command_help("evaluate")


def rbve_command_help(*command: str) -> str:
    return " ".join(run(*command, "--help").out.split())


def algorithm(folder: Path) -> None:
    assert trained(folder, "--algorithm", "doubled").name.startswith("doubled-")
    assert "doubled" in rbve_command_help("train")


def format_(folder: Path) -> None:
    (folder / "log.coins").write_text("0 1.0\n1 -1.0\n1 1.0\n")
    assert "coins: Coins, a toss a line" in rbve_command_help("convert")
    rbve_command("convert", folder / "log.coins", folder / "coins")
    store = rbve.load(folder / "coins")
    assert store.num_episodes == 3
    assert store.reward.tolist()[::2] == [1.0, -1.0, 1.0]


def form(folder: Path) -> None:
    assert "names: The actions, a line each" in rbve_command_help("export")
    rbve_command("export", trained(folder, "--algorithm", "bve"), folder / "coin.names")
    assert (folder / "coin.names").read_text() == "heads\ntails"


def metric(folder: Path) -> None:
    run_folder = trained(folder, "--algorithm", "bve")
    assert '"metric": "final/greed"' in (run_folder / "rows.jsonl").read_text()
    out = rbve_command("report", run_folder, "--out", folder / "metric.html")
    assert "greed" in out.lower()
    assert "greed" in (folder / "metric.html").read_text().lower()
    (table,) = (folder / "metric-figures").glob("summary.csv")
    assert "greed" in table.read_text().splitlines()[0]


def estimator(folder: Path) -> None:
    result = rbve.ope(data(folder), lambda obs: np.full((len(obs), 2), 0.5), fit_steps=1)
    (halved,) = (each for each in result["policy"].estimates if each.label == "Halved")
    assert halved.value == pytest.approx(result.behaviour / 2)


def torso(folder: Path) -> None:
    assert trained(folder, "--algorithm", "bve", "--torso", "halving")
    assert "halving" in rbve_command_help("train")


def head(folder: Path) -> None:
    run_folder = trained(folder, "--algorithm", "with_shifted")
    assert rbve.Policy.load(run_folder / "policy.safetensors").decide([1.0]) in ("heads", "tails")


def optimiser(folder: Path) -> None:
    plain, usual = (
        rbve.Policy.load(trained(folder, "--algorithm", name) / "policy.safetensors")
        for name in ("with_plain", "bve")
    )
    assert plain.q_values([[1.0]]).tolist() != usual.q_values([[1.0]]).tolist()


def log_column(folder: Path) -> None:
    log = folder / "costs.csv"
    log.write_text("episode,age,action,reward,fee\na,1,x,1,3\na,2,y,0,4\nb,3,x,1,5\n")
    assert "--cost" in rbve_command_help("convert")
    rbve_command("convert", log, folder / "costs", "--cost", "fee")
    assert rbve.load(folder / "costs").obs_shape == (1,)  # the age alone: a cost is known too late
    log.write_text(log.read_text().replace(",3\n", ",-3\n"))
    refused = run("convert", log, folder / "refused", "--cost", "fee")
    assert refused.code == 2
    assert "a cost is not negative" in refused.err


def experiment(folder: Path) -> None:
    assert "tossed: Tossed, a coin once" in rbve_command_help("reproduce")
    rbve_command("reproduce", "tossed", "--out", folder / "study")
    rbve_command("report", folder / "study", "--out", folder / "study.html")
    assert "Is one toss like another?" in (folder / "study.html").read_text()


def figure(folder: Path) -> None:
    if not (folder / "study.html").exists():
        experiment(folder)
    assert "tossed: luck in every toss" in (folder / "study.html").read_text()


def claim(folder: Path) -> None:
    if not (folder / "study.html").exists():
        experiment(folder)
    assert "Coins are fair" in (folder / "study.html").read_text()


def executor(folder: Path) -> None:
    assert trained(folder, "--algorithm", "bve", "--executor", "in_turn")
    assert "in_turn: One bundle after another" in rbve_command_help("train")


def logger(folder: Path) -> None:
    place = trained(folder, "--algorithm", "bve", "--log", "lines").parent
    (file,) = place.glob("*.txt")
    assert [int(line.split()[0]) for line in file.read_text().splitlines()][:2] == [10, 20]


def behaviour(folder: Path) -> None:
    rbve_command("record", "coin", "--policy", "stubborn", "--episodes", 5, "--out", folder / "one")
    assert set(rbve.load(folder / "one").action.tolist()) == {0, -1}


def command(folder: Path) -> None:
    assert "Count the episodes of a store." in " ".join(run("--help").out.split())
    assert rbve_command("count", data(folder)).strip() == "20"


CHECKS: dict[str, Callable[[Path], None]] = {
    "environment": environment,
    "algorithm": algorithm,
    "format": format_,
    "form": form,
    "metric": metric,
    "estimator": estimator,
    "torso": torso,
    "head": head,
    "optimiser": optimiser,
    "log column": log_column,
    "experiment": experiment,
    "figure": figure,
    "claim": claim,
    "executor": executor,
    "logger": logger,
    "behaviour": behaviour,
    "command": command,
}


def main() -> None:
    folder = Path(sys.argv[1])
    failures = {}
    for kind in sys.argv[2:]:
        try:
            CHECKS[kind](folder)
            failures[kind] = ""
        except BaseException:
            failures[kind] = traceback.format_exc()
    print(json.dumps({"package": rbve.__path__[0], "failures": failures}))


if __name__ == "__main__":
    main()
