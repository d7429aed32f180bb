"""What is shipped to other systems decides as the policy does."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from support.policies import (
    ACTIONS,
    KINDS,
    random_masks,
    random_observations,
    random_policy,
    random_rows,
)

from rbve import export
from rbve.data.features import Feature, Features
from rbve.policy import Policy

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
FAST = [("bcq", "columns"), ("rbve", "image"), ("iqn", "lstm")]
FIGURES = ("q", "scores", "probabilities", "gap")


def session_of(path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def run_onnx(path: Path, inputs: dict[str, Any]) -> dict[str, np.ndarray]:
    session = session_of(path)
    return dict(
        zip([o.name for o in session.get_outputs()], session.run(None, inputs), strict=True)
    )


def table_of(
    rows: list[dict[str, Any]], numbers: tuple[str, ...] = ("clock", "age", "score")
) -> dict[str, np.ndarray]:
    """Columns as a caller has them: doubles and text."""
    return {
        name: np.array([np.nan if row[name] is None else row[name] for row in rows], np.float64)
        if name in numbers
        else np.array([row[name] for row in rows], object)
        for name in rows[0]
        if name != "refused"
    }


def case(name: str, kind: str, count: int) -> tuple[Policy, Any, dict[str, Any], dict[str, Any]]:
    """A policy, what it decides, and what goes into a graph: of columns, and state."""
    policy, legal = random_policy(name, kind, masked=kind == "image"), random_masks(count)
    if kind == "columns":
        rows = random_rows(count)
        return policy, policy.decisions(rows, legal), table_of(rows), {"legal": legal}
    obs = random_observations(policy, count)
    if not policy.memory:
        return policy, policy.decisions(obs, legal), {"observation": obs}, {"legal": legal}
    rng, units = np.random.default_rng(5), policy.decider.units
    state: dict[str, Any] = {
        "last_action": rng.integers(-1, len(ACTIONS), count).astype(np.int32),
        "last_reward": rng.normal(size=count).astype(np.float32),
        "hidden": rng.normal(size=(count, units)).astype(np.float32),
        "cell": rng.normal(size=(count, units)).astype(np.float32),
    }
    found, after = policy.decider.step(obs, legal, state)
    known = {**found, **{f"next_{name}": each for name, each in after.items()}}
    return policy, known, {"observation": obs}, {"legal": legal, **state}


def compare(known: Any, found: dict[str, np.ndarray], names: tuple[str, ...]) -> None:
    if not isinstance(known, dict):
        known = {
            "q": known.q, "probabilities": known.probability, "gap": known.gap,
            "supported": known.supported, "index": known.index,
        }  # fmt: skip
    known = {("index" if name == "action" else name): each for name, each in known.items()}
    sure = known["gap"] > 1e-4
    for name in names:
        if name in known:
            ok = sure if name == "probabilities" else slice(None)
            np.testing.assert_allclose(
                found[name][ok], known[name][ok], rtol=5e-5, atol=5e-5, err_msg=name
            )
    np.testing.assert_array_equal(found["index"][sure], known["index"][sure])
    np.testing.assert_array_equal(found["supported"], known["supported"])
    assert sure.mean() > 0.5


def check_onnx(name: str, kind: str, count: int, folder: Path) -> None:
    policy, known, columns, state = case(name, kind, count)
    export(policy, folder / "policy.onnx", pixels=kind.startswith("image") or kind == "board")
    found = run_onnx(folder / "policy.onnx", {**columns, **state})
    compare(known, found, (*FIGURES, "next_hidden", "next_cell"))
    assert found["action"].tolist() == [ACTIONS[i] for i in found["index"]]
    first = {name: each[:1] for name, each in {**columns, **state}.items()}
    again = run_onnx(folder / "policy.onnx", first)
    np.testing.assert_allclose(again["q"], found["q"][:1], rtol=1e-4, atol=1e-5)


def check_stablehlo(name: str, kind: str, count: int, folder: Path) -> None:
    policy, known, columns, state = case(name, kind, count)
    path = folder / "policy.stablehlo"
    export(policy, path, pixels=kind.startswith("image") or kind == "board")
    told = json.loads(path.with_name("policy.stablehlo.json").read_text())
    if kind == "columns":
        rows = random_rows(count)
        features = policy.features
        assert features is not None
        columns = {"obs": features.rows(rows)}
    given = {"obs": columns.get("observation"), **columns, **state}
    with jax.enable_x64(True):
        called = jax.export.deserialize(bytearray(path.read_bytes()))
        inputs = [np.asarray(given[each["name"]], each["dtype"]) for each in told["inputs"]]
        results = map(np.asarray, called.call(*inputs))
        found = dict(zip(told["outputs"], results, strict=True))
    found["index"] = found.pop("action")
    compare(known, found, FIGURES)
    assert told["actions"] == list(ACTIONS)


@pytest.mark.parametrize(("name", "kind"), FAST)
def test_onnx(name: str, kind: str, tmp_path: Path) -> None:
    check_onnx(name, kind, 40, tmp_path)


@pytest.mark.parametrize(("name", "kind"), FAST[:1])
def test_stablehlo(name: str, kind: str, tmp_path: Path) -> None:
    check_stablehlo(name, kind, 40, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "columns"])
@pytest.mark.parametrize("name", ["bcq", "rem", "iqn", "iql"])
def test_ten_thousand_rows(name: str, kind: str, tmp_path: Path) -> None:
    check_onnx(name, kind, 10_000, tmp_path)
    check_stablehlo(name, kind, 10_000, tmp_path)


def test_an_episode_of_onnx_steps(tmp_path: Path) -> None:
    policy = random_policy("rbve", "lstm")
    export(policy, tmp_path / "step.onnx")
    graph, session = session_of(tmp_path / "step.onnx"), policy.start()
    names = [each.name for each in graph.get_outputs()]
    units = policy.decider.units
    hidden = cell = np.zeros((1, units), np.float32)
    action, reward = -1, 0.0
    for obs in random_observations(policy, 12):
        inputs = {
            "observation": obs[None], "hidden": hidden, "cell": cell,
            "last_action": np.array([action], np.int32),
            "last_reward": np.array([reward], np.float32),
        }  # fmt: skip
        found = dict(zip(names, graph.run(None, inputs), strict=True))
        assert session.act(obs, reward) == found["index"][0]
        np.testing.assert_allclose(session.scores, found["scores"][0], rtol=1e-4, atol=1e-5)
        hidden, cell, action = found["next_hidden"], found["next_cell"], int(found["index"][0])
        reward += 0.25


def test_masks_may_be_left_out_unless_the_data_had_them(tmp_path: Path) -> None:
    policy = random_policy("rbve")
    obs = random_observations(policy, 6)
    export(policy, tmp_path / "open.onnx", epsilon=0.2, temperature=0.5)
    found = run_onnx(tmp_path / "open.onnx", {"observation": obs})
    rules = dataclasses.replace(policy.decider.rules, epsilon=0.2, temperature=0.5)
    known = dataclasses.replace(policy.decider, rules=rules).probabilities(obs)
    np.testing.assert_allclose(found["probabilities"], known, rtol=1e-4)
    once = {"observation": obs, "legal": np.array([[False, True, False, False]])}
    assert set(run_onnx(tmp_path / "open.onnx", once)["action"]) == {"treat"}
    export(dataclasses.replace(policy, masked=True), tmp_path / "masked.onnx")
    with pytest.raises(Exception, match="legal"):
        run_onnx(tmp_path / "masked.onnx", {"observation": obs})


def test_a_text_means_what_its_column_says(tmp_path: Path) -> None:
    """Though all columns share one table: levels of one are missing or unseen in another."""
    columns = (
        Feature("a", "category", categories=("x", "NA", "True"), missing="mean"),
        Feature("low", mean=2.0, scale=3.0, low=0.0, high=10.0, clip=1.5, missing="mean"),
        Feature("b", "category", categories=("True", "False", "(other)"), other=True),
        Feature("c", "category", categories=("True", "False"), missing="indicator"),
        Feature("high", mean=-1.0, scale=0.5, low=-5.0, high=5.0, missing="indicator"),
        Feature("d", "category", categories=("y", "x"), missing="indicator"),
        Feature("e", mean=1.0, low=-1.0, high=1.0),
    )
    policy = random_policy("rbve", "columns", Features(columns))
    words, numbers = ["x", "y", "NA", "True", "true", "False", "nan"], [None, -9.0, 0.0, 11.0, 5.5]
    rng, rows = np.random.default_rng(3), []
    for _ in range(300):
        row = {c.name: words[rng.integers(7)] for c in columns if c.kind == "category"}
        row |= {c.name: numbers[rng.integers(5)] for c in columns if c.kind == "number"}
        try:
            policy.decide(row)
        except ValueError:  # a graph cannot refuse
            row["refused"] = True
        except UserWarning:
            pass
        rows.append(row)
    good = [row for row in rows if "refused" not in row]
    assert 20 < len(good) < 280
    export(policy, tmp_path / "p.onnx")
    known = policy.decisions(good)
    assert 0 < known.supported.sum() < len(good)
    found = run_onnx(tmp_path / "p.onnx", table_of(good, ("low", "high", "e")))
    compare(known, found, FIGURES)
    bad = [row for row in rows if "refused" in row]
    found = run_onnx(tmp_path / "p.onnx", table_of(bad, ("low", "high", "e")))
    assert not found["supported"].any()
    assert np.isfinite(found["q"]).all()


def test_the_number_of_nodes_does_not_grow_with_the_columns(tmp_path: Path) -> None:
    counts = []
    for times in (1, 4):
        columns = [Feature(f"n{i}", mean=1.0) for i in range(2 * times)]
        columns += [Feature(f"c{i}", "category", categories=("x", "y")) for i in range(2 * times)]
        policy = random_policy("rbve", "columns", Features(tuple(columns)))
        export(policy, tmp_path / f"{times}.onnx")
        counts.append(len(onnx.load(tmp_path / f"{times}.onnx").graph.node))
    assert counts[0] == counts[1]


def test_metadata(tmp_path: Path) -> None:
    info = {"job": {"data": {"path": "visits", "fingerprint": "abc"}}, "step": 40}
    export(random_policy("rbve", "columns", info=info), tmp_path / "p.onnx")
    model = session_of(tmp_path / "p.onnx")
    told = model.get_modelmeta().custom_metadata_map
    assert json.loads(told["rbve.actions"]) == list(ACTIONS)
    assert json.loads(told["rbve.data_fingerprint"]) == "abc"
    assert [each["name"] for each in json.loads(told["rbve.columns"])][:2] == ["clock", "ward"]
    types = {each.name: each.type for each in model.get_inputs()}
    assert types["clock"] == "tensor(double)"
    assert types["ward"] == "tensor(string)"
    assert model.get_inputs()[0].shape == ["rows"]


def test_a_copy_that_differs_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rbve.exports import _onnx_nodes

    monkeypatch.setitem(_onnx_nodes._PLAIN, "max", "Min")  # no more ReLU
    with pytest.raises(ValueError, match="differ from the policy's"):
        export(random_policy("rbve"), tmp_path / "p.onnx")
    assert not (tmp_path / "p.onnx").exists()


def test_a_column_that_clashes_is_named(tmp_path: Path) -> None:
    policy = random_policy("rbve", "columns")
    assert policy.features is not None
    first, *others = policy.features.columns
    named = dataclasses.replace(first, name="legal")
    policy = dataclasses.replace(
        policy, features=dataclasses.replace(policy.features, columns=(named, *others))
    )
    with pytest.raises(ValueError, match="'legal' has the name of another"):
        export(policy, tmp_path / "p.onnx")


def test_without_the_package_its_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r'pip install "rbve\[onnx\]"'):
        export(random_policy("rbve"), tmp_path / "p.onnx")


def test_the_example_is_ten_lines(tmp_path: Path) -> None:
    """It knows neither rbve nor JAX."""
    script = Path(__file__).parents[2] / "examples" / "decide_onnx.py"
    code = [line for line in script.read_text().splitlines()[1:] if line.strip()]
    assert len(code) <= 10
    policy = random_policy("rbve", "columns")
    export(policy, tmp_path / "visits.onnx")
    row = {"clock": 1.7e9, "ward": "ICU", "age": 61.5, "smoker": "True", "score": 1.0}
    words = [f"{name}={value}" for name, value in row.items()]
    command = [sys.executable, str(script), str(tmp_path / "visits.onnx"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == policy.decide(row)
