"""From a log to a recommendation: candidates, finished runs, stages, groups, the card."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cli import run

import rbve
from rbve.data import load
from rbve.data.episode import Episode
from rbve.data.formats import write
from rbve.data.manifest import fingerprint
from rbve.off_policy import run as run_module
from rbve.off_policy.details import ActionsOfGroup
from rbve.off_policy.fits import Fits, Rest
from rbve.off_policy.judge import OpePlan
from rbve.off_policy.log import DecisionLog
from rbve.off_policy.options import SelectOptions
from rbve.off_policy.run import Question, answer
from rbve.off_policy.select import Selection, finished_runs
from rbve.off_policy.select import select as selecting
from rbve.parts import DataRef
from rbve.policy import Policy

QUICK: dict[str, Any] = {"steps": 600, "fit_steps": 600, "checkpoints": 2, "hidden": (16,)}
ROLES: dict[str, Any] = {
    "episode": "person", "action": "offer", "reward": "bought", "observation": ["age", "region"],
    "propensity": "propensity", "ends": "terminated",
}  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Offers drawn at random, each bought by the ages it suits: a better policy is easy to see."""
    folder = tmp_path_factory.mktemp("offers")
    rng = np.random.default_rng(0)
    lines = ["person,age,region,offer,propensity,bought"]
    for person in range(600):
        age, region = rng.uniform(20, 60), rng.choice(["north", "south"])
        offer = rng.choice(["young", "old"])
        bought = rng.random() < (0.9 if (offer == "old") == (age > 40) else 0.1)
        lines.append(f"{person},{age:.1f},{region},{offer},0.5,{int(bought)}")
    (folder / "offers.csv").write_text("\n".join(lines) + "\n")
    rbve.convert(folder / "offers.csv", folder / "store", **ROLES)
    return folder / "store"


@pytest.fixture(scope="module")
def selected(store: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Selection, Path]:
    out = tmp_path_factory.mktemp("select") / "out"
    asked = {"algorithm": ("bc", "bve"), "by": "region", "bellman": True}
    return rbve.select(store, out, **QUICK, **asked), out


def test_the_better_policy_is_deployed(selected: tuple[Selection, Path], store: Path) -> None:
    found, out = selected
    assert found.recommendation.decision == "deploy"
    name = str(found.recommendation.policy)
    assert name.startswith("bve")
    assert set(found.policies) == {"bc", "bc @300", "bve", "bve @300"}
    best = found.result[name].best
    assert best is not None
    assert best.difference == pytest.approx(0.4, abs=0.12)  # .9 in the place of .5
    shipped = rbve.Policy.load(out / "policy.safetensors")
    assert shipped.decide({"age": 55.0, "region": "north"}) == "old"
    assert shipped.decide({"age": 25.0, "region": "south"}) == "young"
    dataset = load(store)
    assert found.result.episodes == round(0.3 * dataset.num_episodes)


def test_fits_learn_from_the_episodes_that_trained(
    selected: tuple[Selection, Path], store: Path
) -> None:
    """One fit a policy, to all episodes that do not judge, by each policy's own choices there."""
    found, out = selected
    jobs = [Policy.load(file).info["job"] for file in (out / "fits").glob("*/policy.safetensors")]
    fits = [each["replicate"] for each in jobs if each["algorithm"] == "_fqe"]
    assert len(fits) == len(found.policies)
    assert all(name.endswith("-all") for name in fits)
    dataset = load(store)
    rows = np.arange(len(dataset.action))[:, None]
    trained = DataRef(holdout=0.3).of(replace(dataset, policy=rows))
    seen: list[Rest] = []

    def fit_values(log: DecisionLog, tables: Any, *others: Any) -> list[Fits]:
        seen.append(others[-1])
        raise InterruptedError

    table = np.random.default_rng(0).dirichlet([1, 1], dataset.num_transitions)
    targets = {"bve": found.policies["bve"], "table": table}
    question = Question(targets, fingerprint=fingerprint(store))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "fit_values", fit_values)
        patch.setattr(run_module, "behaviour_of", lambda *args: found.result.propensities)
        with pytest.raises(InterruptedError):
            answer(dataset, question, OpePlan())
    [rest] = seen
    np.testing.assert_array_equal(rest.log.dataset.obs, trained.obs)
    own, other = rest.policies
    assert ((own == 0) | (own == 1)).all()
    every = np.repeat(table, 2, axis=0)  # of one decision and a final row
    np.testing.assert_allclose(other, every[np.asarray(trained.policy)[:, 0]])


def test_the_card_tells_groups_and_bellman_errors(selected: tuple[Selection, Path]) -> None:
    found, out = selected
    assert found.details is not None
    groups = {each.name: each for each in found.details.groups}
    assert set(groups) == {"north", "south"}
    for each in groups.values():
        assert isinstance(each, ActionsOfGroup)
        assert sum(each.logged.values()) == pytest.approx(1)
        assert sum(each.chosen.values()) == pytest.approx(1)
    assert sum(each.decisions for each in groups.values()) == found.result.decisions
    assert set(found.result.bellman_errors) == {"bve", "bve @300"}  # cloning has no values
    card = (out / "card.html").read_text()
    said = (
        "Deploy this policy", "Candidates and their checkpoints", "What it was trained on",
        "600 episodes, 600 decisions", "180 episodes", "age, region", "<dt>Audit</dt>",
        "Where it differs from the behaviour", "gain by the fitted values", "Actions by region",
        "By region", "Bellman error", "Decisions with the least support", "Decisions explained",
        "nearest logged", "gap", "support", "What to doubt", "rbve.Policy.load(", "decide(row)",
    )  # fmt: skip
    assert [words for words in said if words not in card] == []


def test_the_same_call_trains_nothing_again(selected: tuple[Selection, Path], store: Path) -> None:
    found, out = selected
    files = {file: file.stat().st_mtime_ns for file in (out / "runs").rglob("*.safetensors")}
    files |= {file: file.stat().st_mtime_ns for file in (out / "fits").rglob("*.safetensors")}
    asked = {"algorithm": ("bc", "bve"), "by": "region", "bellman": True}
    again = rbve.select(store, out, **QUICK, **asked)
    assert {file: file.stat().st_mtime_ns for file in files} == files
    assert again.recommendation == found.recommendation


def test_finished_runs_are_candidates(
    selected: tuple[Selection, Path], store: Path, tmp_path: Path
) -> None:
    _, out = selected
    mark = fingerprint(store)
    files = finished_runs([out / "runs"], mark)
    assert finished_runs([out], mark) == files  # neither fits nor the copy that is shipped
    stages = {name for name in files if " @300" in name}
    assert len(files) == 4
    assert len(stages) == 2
    asked = ["--fit-steps", "600", "--out", tmp_path / "out", "--json"]
    found = run("select", store, "--runs", out / "runs", *asked)
    assert found.code == 0, found.err
    said = json.loads(found.out)
    assert said["decision"] == "deploy"
    assert set(said["policies"]) == set(files)
    assert not (tmp_path / "out" / "runs").exists()


def test_runs_that_cannot_be_candidates(store: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for folder in (empty, tmp_path / "none"):
        found = run("select", store, "--runs", folder, "--out", tmp_path / "out")
        assert found.code == 2
        assert f"{folder}: no finished run on this log is in or below this folder" in found.err
    rbve.train(store, "bc", steps=10, holdout=0.0, out=tmp_path / "all")
    found = run("select", store, "--runs", tmp_path / "all", "--out", tmp_path / "out")
    assert found.code == 2
    assert "trained on all of these episodes" in found.err


def test_one_action_is_no_choice(tmp_path: Path) -> None:
    episodes = [
        Episode(np.zeros((3, 2), np.float32), np.array([0, 0, -1]), np.array([1.0, 0, 0]), True)
        for _ in range(40)
    ]
    write(rbve.Dataset.from_episodes(episodes, 1), tmp_path / "store")
    found = run("select", tmp_path / "store", "--out", tmp_path / "out")
    assert found.code == 2
    assert "one action" in found.err or "no choice" in found.err, found.err


def test_options_that_make_no_sense() -> None:
    for bad in ({"holdout": 0.0}, {"holdout": 1.0}, {"checkpoints": 0}):
        with pytest.raises(ValueError, match=r"holdout is a share|checkpoints lie in"):
            SelectOptions(**bad)  # type: ignore[arg-type]


def test_a_column_that_is_not_there_is_said_before_fits(
    selected: tuple[Selection, Path], store: Path
) -> None:
    _, out = selected
    options = SelectOptions(runs=(out / "runs",), by="regio", fit_steps=10**9)
    with pytest.raises(ValueError, match=r"no column 'regio' to group by.*region"):
        selecting(store, load(store), options, out.parent / "other")


def test_too_few_episodes_are_refused_before_training(store: Path, tmp_path: Path) -> None:
    """Nothing could judge what they train."""
    few = load(store).select(np.arange(4), "few")
    with pytest.raises(ValueError, match="4 episodes cannot both train candidates and judge them"):
        selecting(store, few, SelectOptions(**QUICK), tmp_path / "out")
    assert not (tmp_path / "out").exists()
