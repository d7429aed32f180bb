"""A copy of the package gets a thing of every kind, by the files CONTRIBUTING names: all work."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.additions import CHECKS

import rbve

ROOT = Path(__file__).parent.parent
PACKAGE = Path(next(iter(rbve.__path__)))

# kind -> file -> content; a file that is there already gets "line before" -> "lines after it".
ADDED: dict[str, dict[str, str | tuple[str, str]]] = {
    "algorithm": {
        "rbve/algorithms/doubled.py": '''"""BVE with doubled rewards."""
from rbve.algorithms import bve
from rbve.algorithms.bve import BOOTSTRAP, HEAD, Config

def loss(views, batch, config, options, td, key):
    batch = batch._replace(reward=2 * batch.reward)
    return bve.loss(views, batch, config, options, td, key)
'''
    },
    "format": {
        "rbve/data/formats/coins.py": '''"""Coins, a toss a line: its side and what it paid."""
import numpy as np
from rbve.data.dataset import Dataset, Episode
from rbve.data.source import parts_of

def recognises(path):
    return path.suffix == ".coins"

def read(path):
    tosses = [line.split() for line in path.read_text().splitlines()]
    obs = np.ones((2, 1), np.float32)
    episodes = [
        Episode(obs, np.array([int(side), -1]), np.array([float(paid), 0.0]), terminated=True)
        for side, paid in tosses
    ]
    return parts_of(Dataset.from_episodes(episodes, ("heads", "tails")))
'''
    },
    "environment": {
        "rbve/envs/coin.py": '''"""A coin that is tossed once: heads pays 1."""
import jax.numpy as jnp
from rbve.envs.base import Env, Step

def reset(key):
    return jnp.int32(0), jnp.ones(1)

def step(state, action, key):
    action = jnp.asarray(action, jnp.int32)
    paid = jnp.where(action == 0, 1.0, 0.0)
    return state, Step(jnp.ones(1), paid, jnp.bool_(True), jnp.bool_(False), action)

def make():
    return Env("coin", (1,), ("heads", "tails"), 1, reset, step)
'''
    },
    "form": {
        "rbve/exports/names.py": '''"""The actions, a line each."""
from rbve.files import write_atomically

SUFFIX = ".names"

def write(shipment, path):
    write_atomically(path, "\\n".join(shipment.policy.actions).encode())
'''
    },
    "metric": {
        "rbve/evaluation/metrics/greed.py": '''"""Greed: the mean reward of a step."""
from rbve.evaluation.metric import Metric

METRIC = Metric("greed", "greed", "greed", "higher")

def per_episode(record):
    return record.mean(record.reward)
'''
    },
    "estimator": {
        "rbve/off_policy/estimators/halved.py": '''"""Half of the mean return."""
from rbve.off_policy.estimators import Estimator

ESTIMATOR = Estimator("Halved")

def estimate(case):
    return case.returns / 2
'''
    },
    "torso": {
        "rbve/networks/torsos/halving.py": '''"""Half as many units as asked for."""
from rbve.networks.torsos import mlp
from rbve.networks.torsos.mlp import HIDDEN, TAKES

def fit(shape):
    return 1

def make(shape, hidden, key):
    return mlp.make(shape, [units // 2 for units in hidden], key)
'''
    },
    "head": {
        "rbve/networks/heads/shifted.py": '''"""One value per action, counted from 1."""
from rbve.networks.heads.q import Q
from rbve.types import Head

class Shifted(Q):
    def __call__(self, x, key):
        q = super().__call__(x, key).q + 1
        return Head(q=q, ranked=q)
''',
        "rbve/algorithms/with_shifted.py": '''"""BVE with another head."""
from rbve.algorithms.bve import BOOTSTRAP, Config, loss

HEAD = "shifted"
''',
    },
    "optimiser": {
        "rbve/training/optimisers/plain.py": '''"""Gradient descent."""
import optax

def optimiser(options):
    return optax.sgd
''',
        "rbve/algorithms/with_plain.py": '''"""BVE with another optimiser."""
from rbve.algorithms.bve import BOOTSTRAP, HEAD, Config, loss

optimiser = "plain"
''',
    },
    "log column": {
        "rbve/data/logs/roles.py": (
            "    # Flag column: 0 marks a piece cut out of a longer episode.\n",
            """    # Column: what a decision cost.
    cost: str | None = _role(
        "amount", hindsight=True, accepts=lambda values: values >= 0,
        fault="bad cost", needs="a cost is not negative",
    )
""",
        )
    },
    "experiment": {
        "rbve/paper/experiments/tossed.py": '''"""Tossed, a coin once."""
from rbve.paper.experiments import Data, Experiment, Method, Scale

EXPERIMENT = Experiment(
    question="Is one toss like another?",
    paper="Silent",
    data=(Data("coin", keep=1.0),),
    methods=(Method("bve"), Method("bc")),
    figure="methods",
    scales=(Scale(2, 20, 0.02, 1, 2, eval_episodes=2, batch_size=8, name="quick"),),
)
'''
    },
    "figure": {
        "rbve/paper/_pages/figures/luck.py": '''"""Every run's return."""
from rbve.report.chart import Chart, Panel, Point, Series

PLACE, TITLE, SHORT, ABOUT = 9, "", "", ""

def figures(study, name):
    points = tuple(Point(each.job, each.values["return"]) for each in study.of(name))
    panel = Panel(name, (Series("runs", "#0072B2", points),))
    title = "Luck in every toss"
    return [Chart(f"{name}-luck", title, "Dot: a run.", "rows", "run", "return", (panel,))]
'''
    },
    "claim": {
        "rbve/paper/claims/coins.py": '''"""What coins do."""
from rbve.paper.claims import Claim
from rbve.paper.judging.verdicts import Judgement

def fair(finals):
    return Judgement("partly", f"{len(finals)} runs")

CLAIMS = (Claim("Coins are fair", "nowhere", "always partly", fair, "coins", "tossed"),)
'''
    },
    "executor": {
        "rbve/sweep/executors/in_turn.py": '''"""One bundle after another, in this process."""
from rbve.sweep.worker import run_bundle

IN_PROCESS = True

def workers(devices):
    return 1

def run(bundles, out, on_progress, stores):
    for bundle in bundles:
        run_bundle(bundle, out, on_progress, stores)
    return []
'''
    },
    "logger": {
        "rbve/loggers/lines.py": '''"""A line per step in OUT/JOB.txt."""

class opened:
    def __init__(self, out, run):
        self.file = open(out / f"{run.job}.txt", "w")

    def add(self, step, figures):
        print(step, len(figures), file=self.file)

    def close(self):
        self.file.close()
'''
    },
    "behaviour": {
        "rbve/behaviours/kinds/stubborn.py": '''"""Always the first action: policy="stubborn"."""
from rbve.behaviours.rollouts import FixedPolicy

ORDER, LEARNS = 45, False

def claim(asked):
    stubborn = FixedPolicy("stubborn", lambda observation: 0)
    return stubborn if asked.policy == "stubborn" else None
'''
    },
    "command": {
        "rbve/cli/count.py": '''"""`rbve count`."""
from pathlib import Path
from tyro.conf import Positional
from rbve.cli import _console

def command(store: Positional[Path], /) -> None:
    """Count the episodes of a store."""
    from rbve import load
    _console.say(str(load(store).num_episodes))
'''
    },
}


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """kind -> what failed, where all were added to one copy of the package."""
    folder = tmp_path_factory.mktemp("copy")
    copy = folder / "rbve"
    # With compiled modules, which know their sources by time, but for those being written now.
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("*.pyc.*"))
    for files in ADDED.values():
        for name, content in files.items():
            file = folder / name
            if isinstance(content, str):
                assert not file.exists(), f"{name} is there already"
                file.write_text(content)
            else:
                before = file.read_text()
                assert before.count(content[0]) == 1
                file.write_text(before.replace(content[0], content[1] + content[0]))
    script = ROOT / "tests" / "support" / "additions.py"
    path = os.pathsep.join([str(folder), str(ROOT / "tests")])
    (folder / "work").mkdir()
    done = subprocess.run(
        [sys.executable, script, folder / "work", *CHECKS],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["package"] == str(copy)
    return told["failures"]


@pytest.mark.parametrize("kind", CHECKS)
def test_one_of_every_kind_works(kind: str, failures: dict[str, str]) -> None:
    assert not failures[kind], failures[kind]


def table() -> dict[str, list[str]]:
    """kind -> files to touch, as CONTRIBUTING.md says."""
    lines = (ROOT / "CONTRIBUTING.md").read_text().splitlines()
    rows = [line.strip("|").split("|") for line in lines if line.startswith("| a")]
    kinds = [re.sub(r"^an? ", "", row[0].strip()) for row in rows]
    return {k: re.findall(r"`(rbve/[^`]*)`", row[1]) for k, row in zip(kinds, rows, strict=True)}


def test_the_table_names_these_files() -> None:
    assert list(table()) == list(ADDED)
    assert set(ADDED) == set(CHECKS)
    for kind, named in table().items():
        touched = [
            re.sub(r"/[a-z_]+\.py$", "/NAME.py", file) if isinstance(content, str) else file
            for file, content in ADDED[kind].items()
        ]
        assert touched == named, kind
        assert 1 <= len(named) <= 2
