"""A metric is one file: it then appears in rows, evaluations, tables, pages and CSV files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.cli import run

import rbve
from rbve import rows
from rbve.evaluation import metric, metrics, offline
from rbve.report import table
from rbve.report.summary import group
from rbve.spec import Spec
from rbve.training.run import POLICY, train_members

OWN = '''"""The square of an episode's length."""

from rbve.evaluation.metric import Metric

METRIC = Metric("squared_length", "squared length", "squared steps", "neither")


def per_episode(record):
    return record.lengths * record.lengths
'''
OFFLINE = '''"""How many episodes the data has."""

from rbve.evaluation.metric import Metric

METRIC = Metric("episodes_seen", "episodes seen", "episodes of the data", "neither")


def evaluate(case):
    return float(case.dataset.num_episodes), 1
'''


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for package, name, text in (
        (metrics, "squared_length", OWN),
        (offline, "episodes_seen", OFFLINE),
    ):
        folder = tmp_path / name
        folder.mkdir()
        (folder / f"{name}.py").write_text(text)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    yield
    for name in ("metrics.squared_length", "offline.episodes_seen"):
        sys.modules.pop(f"rbve.evaluation.{name}", None)


@pytest.mark.usefixtures("added")
def test_one_file_is_enough(small_job: Callable[..., Spec], catch: Any, tmp_path: Path) -> None:
    job = small_job("bc", {"eval_episodes": 4})
    folder = tmp_path / "runs" / job.id
    train_members([job], [catch], [folder])
    found = rows.read(folder / rows.FILE)
    assert found.last("squared_length") == found.last("final/squared_length") == 81
    assert found.last("final/episodes_seen") == catch.num_episodes
    called = rbve.evaluate(folder / POLICY, "catch", 3)
    assert called["squared_length"] == 81
    shown = run("evaluate", folder, "--env", "catch", "--episodes", 3, "--json")
    assert json.loads(shown.out)["squared_length"] == 81
    (problem,) = group([found])
    assert {"squared steps", "episodes of the data"} <= set(table.columns(problem))
    (line, *_) = table.lines(problem)
    assert line.cells[table.columns(problem).index("squared steps")] == "81.0"
    assert "squared_length_mean" in table.as_csv([problem]).splitlines()[0]
    (method,) = table.as_json([problem])["problems"][0]["methods"]
    assert method["squared_length"]["mean"] == 81
    page = tmp_path / "page.html"
    assert run("report", tmp_path / "runs", "--out", page).code == 0
    assert "squared steps" in page.read_text()


def test_names_and_words() -> None:
    known = metric.registered()
    assert list(known) == [
        "return", "episode_length", "clipped_return", "normalised_return", "overestimation",
        "start_overestimation", "value_error", "action_gap", "heldout_overestimation",
        "heldout_value_error", "heldout_value_rmse", "heldout_action_gap", "heldout_log_loss",
        "heldout_agreement", "heldout_coverage", "values_outside",
    ]  # fmt: skip
    assert all(each.name == name and each.label and each.heading for name, each in known.items())
    assert [name for name, each in known.items() if each.values] == [
        "overestimation", "start_overestimation", "value_error", "action_gap",
        "heldout_overestimation", "heldout_value_error", "heldout_value_rmse", "heldout_action_gap",
        "values_outside",
    ]  # fmt: skip


@pytest.mark.parametrize("package", [metric.METRICS, metric.OFFLINE])
def test_every_file_keeps_the_contract(package: str) -> None:
    for module in metric.modules(package):
        functions = {"per_episode", "derived"} if package == metric.METRICS else {"evaluate"}
        assert isinstance(module.METRIC, metric.Metric)
        assert len(functions & set(dir(module))) == 1, module.__name__
        assert module.__doc__


def test_words_need_no_jax() -> None:
    code = (
        "import sys; from rbve.evaluation import metric; metric.registered(); "
        "print('jax' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"
