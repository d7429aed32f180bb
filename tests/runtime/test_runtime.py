"""Decisions by NumPy equal those by JAX, for every algorithm and network."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.policies import (
    ACTIONS,
    FEATURES,
    KINDS,
    random_masks,
    random_observations,
    random_policy,
    random_rows,
)

from rbve import algorithms, export
from rbve.networks.recurrent import Memory, Seen
from rbve.policy import Policy, forward, recall
from rbve.policy.core import Compiled, program_of
from rbve.policy.trace import trace
from rbve.runtime.encode import Encoder
from rbve.runtime.inputs import read_rows
from rbve.runtime.program import Program

FEW = [
    ("rbve", "board"), ("bcq", "image"), ("iqn", "lstm"), ("rem", "lstm"), ("rbve", "lstm"),
    ("crr", "columns"),
]  # fmt: skip
EVERY = [(name, kind) for name in algorithms.names() for kind in (*KINDS, "columns")]


def reference(policy: Policy, obs: np.ndarray, legal: np.ndarray) -> dict[str, np.ndarray]:
    """Q and scores, by the functions that training and evaluation call."""
    head = policy.shown(forward(policy.network, policy.input(obs)))
    scores = policy.algorithm.scores(head, jnp.asarray(legal), policy.config, policy.options)
    return {"q": np.asarray(head.q), "scores": np.asarray(scores)}


def check_equal(name: str, kind: str, count: int) -> None:
    policy = random_policy(name, kind)
    legal = random_masks(count)
    if policy.memory:
        check_memory(policy, count, legal)
        return
    if kind == "columns":
        obs: Any = read_rows(random_rows(count), (5,), FEATURES)[0]
    else:
        obs = random_observations(policy, count)
    known = reference(policy, obs, legal)
    assert isinstance(program_of(policy), Program)
    found = policy.decider.rows(obs, legal)
    compare(known, found)


def compare(known: dict[str, np.ndarray], found: dict[str, np.ndarray]) -> None:
    for which in ("q", "scores"):
        np.testing.assert_allclose(found[which], known[which], rtol=2e-5, atol=2e-5)
    chosen, best = known["scores"].argmax(axis=1), found["scores"].argmax(axis=1)
    assert (best == chosen)[found["gap"] > 1e-4].all()


def check_memory(policy: Policy, count: int, legal: np.ndarray) -> None:
    """One step from random memories, then an episode."""
    rng = np.random.default_rng(2)
    obs = random_observations(policy, count)
    units = policy.decider.units
    state: dict[str, Any] = {
        "last_action": rng.integers(-1, len(ACTIONS), count).astype(np.int32),
        "last_reward": rng.normal(size=count).astype(np.float32),
        "hidden": rng.normal(size=(count, units)).astype(np.float32),
        "cell": rng.normal(size=(count, units)).astype(np.float32),
    }
    seen = Seen(
        policy.input(obs)[None], state["last_action"][None], state["last_reward"][None],
        np.zeros((1, count), bool),
    )  # fmt: skip
    seen = jax.tree.map(jnp.asarray, seen)
    head, memory = recall(policy.network, seen, Memory(state["hidden"].T, state["cell"].T))
    head = policy.shown(head)
    scores = policy.algorithm.scores(head, jnp.asarray(legal), policy.config, policy.options)
    found, after = policy.decider.step(obs, legal, state)
    compare({"q": np.asarray(head.q), "scores": np.asarray(scores)}, found)
    np.testing.assert_allclose(after["hidden"], memory.hidden.T, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(after["cell"], memory.cell.T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", algorithms.names())
def test_every_algorithm(name: str) -> None:
    check_equal(name, "dense", 7)


@pytest.mark.parametrize(("name", "kind"), FEW)
def test_every_kind_of_network(name: str, kind: str) -> None:
    check_equal(name, kind, 7)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), EVERY)
def test_every_algorithm_on_every_network(name: str, kind: str) -> None:
    check_equal(name, kind, 300)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "columns"])
def test_ten_thousand_rows(kind: str) -> None:
    check_equal("bcq", kind, 10_000)


def test_rows_beside_a_row_do_not_matter() -> None:
    """Quantile networks act at the same levels for every row."""
    policy = random_policy("iqn")
    obs = random_observations(policy, 9)
    alone = np.stack([policy.q_values(each) for each in obs])
    np.testing.assert_allclose(policy.q_values(obs), alone, rtol=1e-5)
    np.testing.assert_allclose(forward(policy.network, jnp.asarray(obs)).q, alone, rtol=1e-4)


def test_columns_are_encoded_as_in_training() -> None:
    table = read_rows(random_rows(300), (5,), FEATURES)[0]
    table[7, 1] = 0.5  # no category
    seen, inside = Encoder(FEATURES)(table)
    np.testing.assert_array_equal(seen, FEATURES.encode(table))
    far = {int(text.split(":")[0].removeprefix("row ")) for text in FEATURES.far(table)}
    assert far == set(np.flatnonzero(~inside))
    assert 0 < len(far) < 300
    for row in range(30):
        one, within = Encoder(FEATURES)(table[row : row + 1])
        np.testing.assert_array_equal(one[0], seen[row])
        assert within[0] == inside[row]


def test_a_session_is_an_episode() -> None:
    """Against the network run over the whole episode, with an action that was not the policy's."""
    policy = random_policy("rbve", "lstm")
    obs, session, scores, actions = random_observations(policy, 6), policy.start(), [], []
    for step, each in enumerate(obs):
        session.act(each, None if step == 0 else 0.5 * step, legal=[0, 2, 3])
        if step == 2:
            session.last_action = "refer"
        actions.append(session.last_action)
        scores.append(session.scores)
    seen = Seen(
        jnp.asarray(obs)[:, None], jnp.asarray([-1, *actions[:-1]], jnp.int32)[:, None],
        jnp.asarray([0.0, *(0.5 * step for step in range(1, 6))])[:, None],
        jnp.asarray([True] + [False] * 5)[:, None],
    )  # fmt: skip
    head, _ = recall(policy.network, seen, policy.network.start(1))
    known = np.asarray(policy.shown(head).q)
    np.testing.assert_allclose(np.stack(scores)[:, [0, 2, 3]], known[:, [0, 2, 3]], rtol=2e-5)
    assert (np.stack(scores)[:, 1] < -1e29).all()


CONSUMER = """
import sys
from rbve import runtime
decider = runtime.load(sys.argv[1])
row = {"clock": 1.7e9, "ward": "B", "age": None, "smoker": "true", "score": 2}
print(decider.decide(row), *decider.scores(row, legal=["treat", "refer"]))
print(*sorted({"jax", "equinox", "scipy", "pyarrow", "safetensors"} & set(sys.modules)))
"""


def test_the_runtime_needs_numpy_alone(tmp_path: Path) -> None:
    policy = random_policy("bcq", "columns")
    export(policy, tmp_path / "shipped")
    command = [sys.executable, "-c", CONSUMER, str(tmp_path / "shipped")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    first, modules = done.stdout.splitlines()
    row = {"clock": 1.7e9, "ward": "B", "age": None, "smoker": "true", "score": 2}
    action, *scores = first.split()
    assert action == policy.decide(row)
    known = policy.scores(row, legal=["treat", "refer"])
    np.testing.assert_allclose([float(each) for each in scores], known, rtol=1e-6)
    assert modules == ""


def test_probabilities_and_gaps() -> None:
    policy = random_policy("rbve")
    decider = dataclasses.replace(
        policy.decider, rules=dataclasses.replace(policy.decider.rules, epsilon=0.4)
    )
    obs = random_observations(policy, 5)
    legal = np.array([True, True, False, True])
    found = decider.decisions(obs, legal)
    best = np.argmax(found.probability, axis=1)
    assert [ACTIONS[i] for i in best] == found.action.tolist() == policy.decide(obs, legal)
    assert np.allclose(found.probability[:, 2], 0)
    np.testing.assert_allclose(found.probability.max(axis=1), 0.6 + 0.4 / 3, rtol=1e-6)
    ordered = np.sort(found.q[:, legal], axis=1)
    np.testing.assert_allclose(found.gap, ordered[:, -1] - ordered[:, -2], rtol=1e-5)
    assert found.supported.all()
    only = decider.decisions(obs[0], legal=["refer"])
    assert (only.action, only.index, only.gap) == ("refer", 2, 0.0)
    soft = dataclasses.replace(decider, rules=dataclasses.replace(decider.rules, temperature=0.5))
    chances = soft.probabilities(obs, "all")
    ratio = np.exp((found.q[:, 0] - found.q[:, 1]) / 0.5)
    mixed = (chances - 0.1) / 0.6
    np.testing.assert_allclose(mixed[:, 0] / mixed[:, 1], ratio, rtol=1e-3)


def test_what_no_program_can_is_compiled() -> None:
    """Few sizes are; others are filled up."""
    policy = random_policy("rbve")

    def sorted_scores(head: Any, legal: Any, config: Any, options: Any) -> Any:
        return jnp.sort(head.q, axis=-1)

    odd = dataclasses.replace(
        policy, algorithm=dataclasses.replace(policy.algorithm, scores=sorted_scores)
    )
    with pytest.raises(ValueError, match="'sort'"):
        program_of(odd)
    obs = random_observations(policy, 5)
    np.testing.assert_allclose(odd.scores(obs), np.sort(policy.q_values(obs), axis=1), rtol=1e-5)
    compiled = Compiled(odd)
    for count in (3, 5, 20):
        seen = random_observations(policy, count)
        found = compiled(count, obs=seen, legal=np.ones((count, 4), bool))
        assert found["scores"].shape == (count, 4)
    assert compiled._function._cache_size() == 1


def test_large_batches_go_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = random_policy("rbve")
    obs = random_observations(policy, 20)
    whole = policy.decider.rows(obs, random_masks(20))
    monkeypatch.setattr("rbve.runtime.decider._ROWS", 7)
    parts = policy.decider.rows(obs, random_masks(20))
    for name, each in whole.items():
        np.testing.assert_allclose(parts[name], each, rtol=1e-5)
    obs[13, 2] = 1e39 if obs.dtype == np.float64 else np.inf
    with pytest.raises(ValueError, match="row 13"):
        policy.act(obs)


def test_traced_operations() -> None:
    """Of each kind one, and sizes that grow with the batch."""

    class Sampling(eqx.Module):
        def __call__(self, x: jax.Array) -> jax.Array:
            return x + jax.random.normal(jax.random.key(0), x.shape)

    def several(x: jax.Array, legal: jax.Array) -> dict[str, jax.Array]:
        first, second = jnp.split(x, 2, axis=1)
        wide = jnp.concatenate([first, jnp.broadcast_to(jnp.arange(3.0), first.shape)], axis=1)
        total, steps = jax.lax.scan(lambda c, row: (c + row, c * 2), jnp.zeros(len(x)), first.T)
        return {
            "wide": wide.reshape(-1, 2), "clipped": jnp.clip(jax.nn.sigmoid(x), 0.2, 0.8),
            "any": jnp.any(legal, axis=1), "total": total, "steps": steps,
            "sums": jnp.cumsum(x, axis=1), "outer": jnp.einsum("bi,bj->bij", first, second),
            "least": jnp.argmin(x, axis=1), "rounded": jnp.round(x**3),
            "every": jnp.where(jnp.all(legal, axis=1)[:, None], second, -second),
        }  # fmt: skip

    program = trace(several, {"x": ((6,), np.float32), "legal": ((2,), np.bool_)})
    again = Program.from_json(json.loads(json.dumps(program.to_json())), program.constants)
    for count in (1, 4):
        x = np.random.default_rng(0).normal(size=(count, 6)).astype(np.float32)
        legal = random_masks(count, 2)
        known = several(jnp.asarray(x), jnp.asarray(legal))
        found = again(count, x=x, legal=legal)
        assert found.keys() == known.keys()
        for name, each in known.items():
            np.testing.assert_allclose(found[name], each, rtol=1e-5, err_msg=name)
    with pytest.raises(ValueError, match="draws random numbers for each row"):
        trace(lambda x: {"y": Sampling()(x)}, {"x": ((2,), np.float32)})
