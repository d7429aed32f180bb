"""Decisions without support say so, wherever they are made."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cli import run

import rbve
from rbve import runtime
from rbve.data import Dataset, Episode
from rbve.data.features import Feature, Features
from rbve.off_policy.support import SupportPlan, with_support
from rbve.policy import Policy
from rbve.spec import Spec
from rbve.training.run import POLICY, train_members

ACTIONS = ("wait", "treat", "refer")
FEATURES = Features(
    (
        Feature("ward", "category", categories=("A", "B", "ICU")),
        Feature("age", mean=50.0, scale=20.0, low=0.0, high=100.0),
    )
)
PLAN: dict[str, Any] = {
    "steps": 400, "every": 400, "env": None, "hidden": (16,), "batch_size": 64, "n_step": 1,
}  # fmt: skip


def log() -> Dataset:
    """In the ICU nobody refers and nothing helps, elsewhere anything is done and referring pays."""
    rng = np.random.default_rng(0)
    episodes = []
    for _ in range(500):
        ward = rng.integers(3)
        action = rng.choice(3, p=(0.2, 0.8, 0.0) if ward == 2 else (0.3, 0.3, 0.4))
        obs = np.array([[ward, rng.uniform(10, 90)]] * 2)
        reward = -1.0 if ward == 2 else float(action == 2)
        episodes.append(Episode.from_steps(obs, [action], [reward], terminated=True))
    return Dataset.from_episodes(episodes, ACTIONS, features=FEATURES)


@pytest.fixture(scope="module")
def policy(small_job: Callable[..., Spec], tmp_path_factory: pytest.TempPathFactory) -> Policy:
    """With the log's behaviour as fallback. Its own best in the ICU is to refer: unseen."""
    folder = tmp_path_factory.mktemp("policy")
    data = log()
    train_members([small_job("bve", PLAN, learning_rate=3e-3)], [data], [folder])
    trained = Policy.load(folder / POLICY)
    plan = SupportPlan(threshold=0.1, fallback="behaviour", steps=3000)
    return with_support(trained, data, plan)


ICU, WARD_A = {"ward": "ICU", "age": 50.0}, {"ward": "A", "age": 50.0}


def best(policy: Policy, row: dict[str, Any]) -> str:
    return ACTIONS[int(np.argmax(policy.scores(row)))]


def test_the_model_knows_the_behaviour(policy: Policy) -> None:
    assert policy.support is not None
    assert 0.25 <= policy.support.temperature <= 8
    behaviour = policy.decisions([ICU, WARD_A]).behaviour
    assert behaviour is not None
    np.testing.assert_allclose(behaviour.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(behaviour[0], (0.2, 0.8, 0.0), atol=0.12)
    np.testing.assert_allclose(behaviour[1], (0.3, 0.3, 0.4), atol=0.12)


def test_decisions_say_so_and_fall_back(policy: Policy) -> None:
    assert best(policy, ICU) == "refer"  # which nobody ever did there
    found = policy.decisions([ICU, WARD_A])
    assert found.supported.tolist() == [False, True]
    assert found.action.tolist() == ["treat", "refer"]
    assert found.probability[0].tolist() == [0, 1, 0]
    with pytest.warns(UserWarning, match=r"'refer' no support here .*; 'treat' instead"):
        assert policy.decide(ICU) == "treat"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert policy.decide(WARD_A) == "refer"
    session = policy.start()
    with pytest.warns(UserWarning, match="'refer' no support"):
        session.act(ICU)
    assert not session.supported


def test_a_mask_goes_before_the_fallback(policy: Policy) -> None:
    found = policy.decisions(ICU, legal=["wait", "refer"])
    assert (found.action, found.supported) == ("wait", False)
    assert policy.decisions(ICU, legal=["wait", "treat"]).supported


def test_far_rows_are_not_supported(policy: Policy) -> None:
    assert not policy.decisions({"ward": "A", "age": 400.0}).supported


def test_saved_and_shipped_alike(policy: Policy, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    known = policy.decisions([ICU, WARD_A])
    for name in ("p.safetensors", "folder", "p.onnx", "p.stablehlo"):
        rbve.export(policy, tmp_path / name)
    again = Policy.load(tmp_path / "p.safetensors")
    for other in (again.decisions([ICU, WARD_A]), runtime.load(tmp_path / "folder").decisions([
        ICU, WARD_A])):  # fmt: skip
        for one, mine in zip(other, known, strict=True):
            np.testing.assert_array_equal(one, mine)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    graph = onnxruntime.InferenceSession(tmp_path / "p.onnx", options)
    columns = {"ward": np.array(["ICU", "A"], object), "age": np.array([50.0, 50.0])}
    names = ["action", "supported", "behaviour", "probabilities"]
    action, supported, behaviour, chances = graph.run(names, columns)
    assert action.tolist() == known.action.tolist()
    assert supported.tolist() == known.supported.tolist()
    np.testing.assert_allclose(behaviour, known.behaviour, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(chances, known.probability, rtol=1e-4, atol=1e-6)
    assert (
        json.loads((tmp_path / "p.stablehlo.json").read_text())["rules"]["fallback"] == "behaviour"
    )


def test_named_fallbacks_and_none(policy: Policy) -> None:
    data = log()
    waits = with_support(policy, data, SupportPlan(0.1, "wait", steps=20))
    assert waits.support is not None
    assert waits.support.fallback == 0
    with pytest.raises(ValueError, match="Did you mean 'treat'"):
        with_support(policy, data, SupportPlan(0.1, "treet", steps=20))
    with pytest.raises(ValueError, match="threshold is a share"):
        with_support(policy, data, SupportPlan(2.0, steps=20))


def test_from_the_command_line(policy: Policy, tmp_path: Path) -> None:
    rbve.data.write(log(), tmp_path / "log")
    policy.save(tmp_path / "p.safetensors")
    words = ("--support", tmp_path / "log", "--fallback", "wait", "--support-steps", 30)
    done = run("export", tmp_path / "p.safetensors", tmp_path / "out.safetensors", *words)
    assert done.code == 0, done.err
    support = Policy.load(tmp_path / "out.safetensors").support
    assert support is not None
    assert (support.fallback, support.threshold) == (0, 0.05)
    done = run("export", tmp_path / "p.safetensors", tmp_path / "x", "--fallback", "wait")
    assert done.code == 2
    assert "needs the log" in done.err


def test_a_damaged_model_is_refused(policy: Policy, tmp_path: Path) -> None:
    from rbve.tensors import read_tensors, write_tensors

    policy.save(tmp_path / "p.safetensors")
    arrays, info = read_tensors(tmp_path / "p.safetensors")
    for name, value in (("fallback", 7), ("threshold", 3.0), ("temperature", 0.0)):
        changed = {**info, "support": {**info["support"], name: value}}
        write_tensors(tmp_path / "q.safetensors", arrays, changed)
        with pytest.raises(ValueError, match="does not fit the policy"):
            Policy.load(tmp_path / "q.safetensors")
    write_tensors(tmp_path / "q.safetensors", {"weights": arrays["weights"]}, info)
    with pytest.raises(ValueError, match="weights, expected"):
        Policy.load(tmp_path / "q.safetensors")


def test_an_estimate_is_of_what_is_shipped(policy: Policy) -> None:
    from rbve.off_policy.targets import Deployment, probabilities

    data = log()
    table = probabilities(policy, data, Deployment(epsilon=0.3))
    rows = data.obs[:]
    shipped = policy.decisions(rows)
    assert 0.2 < shipped.supported.mean() < 0.9
    alone = ~shipped.supported
    assert (table[alone].argmax(axis=1) == shipped.index[alone]).all()
    assert (table[alone].max(axis=1) == 1).all()
    np.testing.assert_allclose(table[~alone].max(axis=1), 0.7 + 0.1)
