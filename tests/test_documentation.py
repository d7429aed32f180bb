"""Code shown to users runs as shown."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from support import cli

import rbve
from rbve import algorithms
from rbve.types import Batch

ROOT = Path(__file__).parent.parent
needs_icu = pytest.mark.skipif(
    not any(importlib.metadata.distributions(name="icu-sepsis")),
    reason='the arrays of icu-sepsis: pip install "rbve[icu]"',
)
BLOCK = re.compile(r"```(python|bash)\n(.*?)```", re.DOTALL)


def blocks(file: str, language: str, word: str = "") -> str:
    """Those that hold the word."""
    every = BLOCK.findall((ROOT / file).read_text())
    found = [body for kind, body in every if kind == language and word in body]
    assert found, f"{file} shows no {language}"
    return "\n".join(found)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


def run(command: list[str], folder: Path, codes: Sequence[int] = (0,)) -> str:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    assert done.returncode in codes, done.stderr[-2000:]
    return done.stdout


def shortened(text: str, shorter: dict[str, str]) -> str:
    """The text with smaller numbers where it has these."""
    for shown, less in shorter.items():
        assert text.count(shown) == 1, shown
        text = text.replace(shown, less)
    return text


def test_python_in_the_readme_runs(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As shown, but for how much is recorded and for how long it trains."""
    monkeypatch.chdir(elsewhere)
    fewer = {"keep=0.1\n": "keep=0.1, episodes=100\n", "20_000": "200", "2_000": "100"}
    exec(shortened(blocks("README.md", "python"), fewer), {})
    assert "'return':" in capsys.readouterr().out
    assert (elsewhere / "report.html").exists()


@pytest.mark.slow
def test_python_in_the_readme_runs_as_shown(elsewhere: Path) -> None:
    printed = run([sys.executable, "-c", blocks("README.md", "python")], elsewhere)
    assert "'return':" in printed
    assert (elsewhere / "report.html").exists()


@pytest.mark.slow
def test_commands_in_the_readme_run(elsewhere: Path) -> None:
    commands = [
        line for line in blocks("README.md", "bash").splitlines() if line.startswith("rbve ")
    ]
    assert len(commands) >= 4
    for command in commands:
        advice = command.startswith("rbve select")  # its exit code says what to do
        run(["bash", "-c", command], elsewhere, (0, 3, 4) if advice else (0,))
    assert (elsewhere / "catch-noisy.html").exists()
    assert (elsewhere / "select" / "visits" / "card.html").exists()


@pytest.mark.slow
def test_example_algorithm_works_and_is_short(elsewhere: Path) -> None:
    assert len((ROOT / "examples" / "ranked_cql.py").read_text().splitlines()) <= 40
    (elsewhere / "tests").symlink_to(ROOT / "tests")
    shorter = {
        "rbve record": "--policy uniform --episodes 400",
        "rbve train": "--steps 400",
        "pytest": "-n0 -k ranked_cql",
    }
    for command in blocks("docs/adding-an-algorithm.md", "bash").splitlines():
        added = [more for part, more in shorter.items() if part in command]
        shown = run(["bash", "-c", " ".join([command, *added])], elsewhere)
    assert "[100%]" in shown  # of the contract tests
    page = (elsewhere / "ranked-cql.html").read_text()
    assert "ranked_cql" in page


@pytest.mark.parametrize("memory", [0, 4])
def test_parts_of_an_algorithm_of_ones_own(
    memory: int, catch_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code of that page is one algorithm file, and the call that loads its policy."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/adding-an-algorithm.md").read_text()
    *parts, load = [body for kind, body in BLOCK.findall(page) if kind == "python"]
    Path("mine.py").write_text("\n".join(['"""Implicit Q-learning."""', *parts]))
    plan = {"memory": memory, "batch_size": 8, "hidden": (8,), "polyak": 0.01}
    trained = rbve.train(catch_path, "mine.py", steps=20, out="runs", spec=plan)
    next(Path("runs").iterdir()).rename("runs/mine")
    scope: dict[str, Any] = {"rbve": rbve}
    exec(load, scope)
    frame = np.ones((10, 5), np.float32)
    assert scope["policy"].start().decide(frame) == trained.start().decide(frame)
    # One sequence of three steps: two of one episode, then a lone one that is cut.
    flat = {name: jnp.zeros(3) for name in Batch._fields}
    flat |= {"reward": jnp.array([1.0, 2.0, 4.0]), "discount": jnp.full(3, 0.5)}
    batch = Batch(**flat)._replace(follows=jnp.array([[True], [False], [False]]))
    goals = algorithms.load("mine.py").loss.__globals__["lambda_returns"]
    found = goals(batch, jnp.array([10.0, 20.0, 40.0]), 0.25)
    assert found.tolist() == [1 + 0.5 * (0.75 * 10 + 0.25 * 12), 12, 24]


@pytest.mark.slow
def test_the_page_on_memory(elsewhere: Path) -> None:
    for command in blocks("docs/memory.md", "bash").splitlines():
        shown = run(["bash", "-c", command], elsewhere)
    assert "R-BVE" in shown
    code = blocks("docs/memory.md", "python")
    *figures, last = run([sys.executable, "-c", code], elsewhere).splitlines()
    assert "'return': 1.0" in "".join(figures)
    action, _, bit = last.partition(" where the bit was ")
    assert (int(action), float(bit)) in ((1, 1.0), (0, -1.0))


@pytest.mark.slow
def test_an_environment_of_ones_own(elsewhere: Path) -> None:
    (elsewhere / "corridor.py").write_text(blocks("docs/environments.md", "python", "Corridor"))
    commands = [
        line for line in blocks("docs/environments.md", "bash").splitlines() if "corridor" in line
    ]
    assert len(commands) == 3
    for command in commands:
        shown = run(["bash", "-c", command], elsewhere)
    assert "return" in shown


@pytest.mark.slow
def test_the_page_on_shipping(elsewhere: Path) -> None:
    for command in blocks("docs/shipping.md", "bash").splitlines():
        shown = run(["bash", "-c", command], elsewhere)
    assert "supported" in shown or "no support" in shown
    for code in BLOCK.findall((ROOT / "docs/shipping.md").read_text()):
        if code[0] == "python":
            run([sys.executable, "-W", "ignore", "-c", code[1]], elsewhere)


@needs_icu
def test_exact_values_of_icu_sepsis(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(elsewhere)
    exec(blocks("docs/environments.md", "python", "icu_sepsis"), {})
    printed = capsys.readouterr().out
    assert [round(float(each), 4) for each in printed.split()[:2]] == [0.7820, 0.8751]
    assert "Dataset(1,000 episodes" in printed


@needs_icu
@pytest.mark.slow
def test_commands_of_icu_sepsis(elsewhere: Path) -> None:
    for command in blocks("docs/environments.md", "bash", "icu_sepsis").splitlines():
        shown = run(["bash", "-c", command], elsewhere)
    assert "R-BVE" in shown


def test_studies_page_shows_the_scales() -> None:
    from rbve.paper.experiments import SCALES

    text = (ROOT / "docs" / "studies.md").read_text()
    for name, scale in SCALES.items():
        (line,) = [each for each in text.splitlines() if each.startswith(f"| {name} |")]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[1].split(",")[0] == str(scale.datasets)
        assert cells[2] == f"{scale.steps:,}"
        assert cells[3] == str(scale.settings)
        assert cells[4] == f"{scale.evaluations} times {scale.eval_episodes} episodes"


def test_a_study_of_ones_own(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As shown, but for how much is recorded and for how long it trains."""
    monkeypatch.chdir(elsewhere)
    fewer = {"Scale(2, 500, episodes=0.05": "Scale(1, 20, episodes=0.01"}
    code = shortened(blocks("docs/studies.md", "python"), fewer)
    (elsewhere / "scarce_catch.py").write_text(code)
    for command in blocks("docs/studies.md", "bash").splitlines():
        rbve_, *arguments = shlex.split(command)
        done = cli.run(*arguments)
        assert (rbve_, done.code) == ("rbve", 0), done.err
    assert_study_was_shown(elsewhere)


@pytest.mark.slow
def test_a_study_of_ones_own_as_shown(elsewhere: Path) -> None:
    (elsewhere / "scarce_catch.py").write_text(blocks("docs/studies.md", "python"))
    for command in blocks("docs/studies.md", "bash").splitlines():
        run(["bash", "-c", command], elsewhere)
    assert_study_was_shown(elsewhere)


def assert_study_was_shown(elsewhere: Path) -> None:
    page = (elsewhere / "mine.html").read_text()
    assert "Does ranking help BVE more, the fewer episodes of catch there are?" in page
    assert (elsewhere / "mine-figures" / "scarce-catch-overestimation.csv").is_file()


@pytest.mark.slow
def test_the_results_page_shows_the_rows() -> None:
    check = [sys.executable, str(ROOT / "tools" / "readme_results.py"), "--check"]
    assert run(check, ROOT) == ""  # nor did it fail
