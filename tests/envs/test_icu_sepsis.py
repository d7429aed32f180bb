"""ICU-Sepsis beside the package's arrays and its own environment, and its words."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import sys
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

if not any(importlib.metadata.distributions(name="icu-sepsis")):
    pytest.skip('the arrays of icu-sepsis: pip install "rbve[icu]"', allow_module_level=True)

from rbve import envs
from rbve.envs import icu_sepsis
from rbve.envs.base import Env
from rbve.evaluation import exact


def load(name: str = "icu_sepsis") -> Env:
    env = envs.load(name)
    assert isinstance(env, Env)
    return env


def test_the_tables_are_those_of_the_package() -> None:
    mdp, clinicians, admissible, features, sofa = icu_sepsis.tables()
    assert mdp.legal is not None
    np.testing.assert_allclose(mdp.transition.sum(axis=2), 1, rtol=1e-12)
    np.testing.assert_allclose(mdp.start.sum(), 1, rtol=1e-12)
    assert not mdp.start[mdp.terminal].any()
    counts = mdp.legal[:713].sum(axis=1)
    assert (counts.min(), counts.max()) == (1, 13)
    assert counts.mean() == pytest.approx(3.14, abs=0.005)
    assert features.shape == (716, 47)
    assert sofa.shape == (716,)
    # Admissible actions are those that clinicians take often; the others act as their mean.
    for state in range(713):
        legal = mdp.legal[state]
        assert (clinicians[state, legal] > 0.02).all()
        outside = mdp.transition[state, ~legal]
        mean = mdp.transition[state, legal].mean(axis=0)
        np.testing.assert_allclose(outside, np.broadcast_to(mean, outside.shape), atol=1e-14)
        kept = clinicians[state, legal] / clinicians[state, legal].sum()
        np.testing.assert_allclose(admissible[state, legal], kept, rtol=1e-12)
    assert not admissible[~mdp.legal].any()


def share_of_inadmissible() -> float:
    """Of the decisions of the clinicians as estimated, by the states they come through."""
    mdp, clinicians, *_ = icu_sepsis.tables()
    moves = np.matmul(clinicians[:, None], mdp.transition)[:713, 0, :713]
    visits = np.linalg.solve(np.eye(713) - moves.T, mdp.start[:713])
    assert mdp.legal is not None
    outside = np.where(mdp.legal, 0, clinicians).sum(axis=1)[:713]
    return float(visits @ outside / visits.sum())


def test_clinicians_take_inadmissible_actions_and_masked_logs_do_not() -> None:
    assert share_of_inadmissible() == pytest.approx(0.121, abs=5e-4)


@functools.cache
def theirs() -> Any:
    """The package's environment. Its __init__ imports gym, so it is passed by."""
    package = ModuleType("icu_sepsis")
    assets = importlib.metadata.distribution("icu-sepsis").locate_file("icu_sepsis")
    package.__path__ = [str(assets)]
    before = sys.modules.get("icu_sepsis")
    sys.modules["icu_sepsis"] = package
    try:
        return importlib.import_module("icu_sepsis.envs.sepsis").ICUSepsisEnv()
    finally:
        for name in [each for each in sys.modules if each.split(".")[0] == "icu_sepsis"]:
            del sys.modules[name]
        if before is not None:
            sys.modules["icu_sepsis"] = before


def test_step_by_step_as_the_package() -> None:
    """From each state by any action: their transition, drawn with the successor that ours drew."""
    pytest.importorskip("gymnasium", reason='pip install "rbve[gymnasium]"')
    pytest.importorskip("pandas", reason="icu-sepsis imports pandas")
    env, their = load(), theirs()
    count = 1500
    rng = np.random.default_rng(0)
    state = rng.integers(0, 713, count, dtype=np.int32)
    action = rng.integers(0, 25, count, dtype=np.int32)
    keys = jax.random.split(jax.random.key(0), count)
    start = icu_sepsis.State(jnp.asarray(state), jnp.zeros(count, jnp.int32))
    after, step = jax.jit(jax.vmap(env.step))(start, action, keys)
    legal, step, successor = jax.tree.map(
        np.asarray, (jax.jit(jax.vmap(env.legal))(start), step, after.state)
    )
    for k in range(count):
        their._current_state = int(state[k])
        np.testing.assert_array_equal(
            np.flatnonzero(legal[k]), sorted(their._get_info()["admissible_actions"])
        )

        def arrive(p: np.ndarray, where: int = int(successor[k])) -> None:
            assert p[where] > 0  # ours drew what theirs could
            their._current_state = where

        their._make_state_transition = arrive
        obs, reward, terminated, truncated, info = their.step(np.array(divmod(action[k], 5)))
        assert (obs, reward) == (successor[k], step.reward[k])
        assert (terminated, truncated) == (step.terminated[k], step.truncated[k])
        np.testing.assert_allclose(step.obs[k], info["state_vector"], rtol=1e-6)
    np.testing.assert_array_equal(step.executed, action)
    assert 50 < step.terminated.sum() < count


@pytest.mark.parametrize("case", ["start", "admissible", "inadmissible"])
def test_frequencies_are_the_tables(case: str) -> None:
    env, count = load(), 20_000
    mdp = icu_sepsis.tables().mdp
    keys = jax.random.split(jax.random.key(1), count)
    if case == "start":
        drawn = np.asarray(jax.jit(jax.vmap(env.reset))(keys)[0].state)
        chances = mdp.start
    else:
        assert mdp.legal is not None
        state = 3
        action = int(np.flatnonzero(mdp.legal[state] == (case == "admissible"))[-1])
        start = icu_sepsis.State(jnp.int32(state), jnp.int32(0))
        run = jax.jit(jax.vmap(env.step, (None, None, 0)))
        drawn = np.asarray(run(start, jnp.int32(action), keys)[0].state)
        chances = mdp.transition[state, action]
    found = np.bincount(drawn, minlength=716) / count
    assert not found[chances == 0].any()
    error = np.sqrt(chances * (1 - chances) / count)
    assert (np.abs(found - chances) <= 5 * error + 3 / count).all()
    likely = chances * count > 5
    chi_square = count * ((found - chances)[likely] ** 2 / chances[likely]).sum()
    assert abs(chi_square - likely.sum()) < 5 * np.sqrt(2 * likely.sum())


@functools.cache
def player(episodes: int, steps: int = 120) -> Any:
    """(actions by state, key) -> returns, whether unfinished; by step: going on, action legal."""
    env = load()
    assert env.legal is not None

    def advance(best: Any, carry: Any, key: Any) -> Any:
        state, alive, total = carry
        action = best[state.state]
        legal = jax.vmap(env.legal)(state)[jnp.arange(episodes), action]
        state, step = jax.vmap(env.step)(state, action, jax.random.split(key, episodes))
        total += alive * step.reward
        return (state, alive & ~step.terminated, total), (alive, legal)

    @jax.jit
    def run(best: Any, key: Any) -> Any:
        first, later = jax.random.split(key)
        state, _ = jax.vmap(env.reset)(jax.random.split(first, episodes))
        begin = (state, jnp.ones(episodes, bool), jnp.zeros(episodes))
        keys = jax.random.split(later, steps)
        (_, alive, total), seen = jax.lax.scan(functools.partial(advance, best), begin, keys)
        return total, alive, *seen

    return run


@pytest.mark.parametrize("worst", [False, True], ids=["best", "worst"])
def test_play_agrees_with_the_exact_value(worst: bool) -> None:
    mdp = icu_sepsis.tables().mdp
    policy = exact.optimal_policy(mdp, worst)
    best = jnp.asarray(policy.argmax(axis=1), jnp.int32)
    played = player(4000)(best, jax.random.key(2))
    returns, unfinished, alive, legal = (np.asarray(each) for each in played)
    error = returns.std() / np.sqrt(4000)
    assert abs(returns.mean() - exact.value(mdp, policy)) < 4 * error
    assert unfinished.mean() < 0.002
    assert legal[alive].all()


def test_states_are_one_hot_and_equal_keys_give_equal_states() -> None:
    env, other = load("icu_sepsis:states"), load("icu_sepsis:features")
    assert (env.obs_shape, other.obs_shape) == ((716,), (47,))
    assert other == load() != env
    state, obs = env.reset(jax.random.key(3))
    same, features = other.reset(jax.random.key(3))
    assert int(obs.argmax()) == int(state.state) == int(same.state)
    assert float(obs.sum()) == 1
    expected = icu_sepsis.tables().features[int(state.state)]
    np.testing.assert_allclose(features, expected, rtol=1e-6)


@pytest.mark.parametrize(("clock", "truncated"), [(498, False), (499, True)])
def test_the_limit_truncates(clock: int, truncated: bool) -> None:
    env = load()
    keys = jax.random.split(jax.random.key(0), 50)
    start = icu_sepsis.State(jnp.int32(0), jnp.int32(clock))
    step = jax.jit(jax.vmap(env.step, (None, None, 0)))(start, jnp.int32(5), keys)[1]
    ended = np.asarray(step.terminated)
    np.testing.assert_array_equal(step.truncated, ~ended & truncated)
    assert not ended.all()
    assert env.max_steps == 500


def test_nothing_is_paid_after_the_end() -> None:
    env = load()
    for end in (icu_sepsis.DEATH, icu_sepsis.SURVIVAL, icu_sepsis.AFTER):
        start = icu_sepsis.State(jnp.int32(end), jnp.int32(9))
        after, step = env.step(start, jnp.int32(0), jax.random.key(0))
        assert (float(step.reward), bool(step.terminated)) == (0, True)
        assert int(after.state) == icu_sepsis.AFTER


def test_words_about_options_and_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"Did you mean 'icu_sepsis:states'\? Known: features, st"):
        envs.load("icu_sepsis:state")

    def missing(name: str) -> Any:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    with pytest.raises(ImportError, match=r'^icu_sepsis needs .*; pip install "rbve\[icu\]"$'):
        icu_sepsis.tables.__wrapped__()
