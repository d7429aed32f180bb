"""Played in an environment, inside JAX or outside, a policy falls back as its decisions say."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.policies import random_masks, random_observations, random_policy, random_rows

from rbve import evaluate
from rbve.evaluation.actors import PolicyActor
from rbve.evaluation.vector import WIDTH, Outcome
from rbve.policy import Policy
from rbve.policy.network import ActorInput
from rbve.policy.support import Support

FALLBACKS: list[Any] = [2, "behaviour", None]


def careful(kind: str, fallback: Any, threshold: float = 0.3) -> Policy:
    policy = random_policy("rbve", kind)
    clone = dataclasses.replace(random_policy("bc", kind), rescaled=False)
    network = jax.tree.map(lambda leaf: -2 * leaf, clone.network)  # of other weights
    clone = dataclasses.replace(clone, network=network)
    return dataclasses.replace(policy, support=Support(clone, 0.8, threshold, fallback))


@pytest.mark.parametrize("fallback", FALLBACKS)
@pytest.mark.parametrize("kind", ["dense", "columns"])
def test_inside_jax_and_outside(kind: str, fallback: Any) -> None:
    policy, legal = careful(kind, None), random_masks(WIDTH)
    obs = random_observations(policy, WIDTH)
    if policy.features is not None:
        obs = policy.features.rows(random_rows(WIDTH))
        obs[:, 0] = 1.7e9  # of seconds, which 32 bits cannot count
    known = policy.decider.rows(obs, legal)
    own = known["behaviour"][np.arange(WIDTH), known["action"]]
    policy = careful(kind, fallback, float(np.median(own)))
    known = policy.decider.rows(obs, legal)
    assert 0 < known["supported"].sum() < WIDTH
    actor = policy.act_function()
    memory = actor.start(policy.network, WIDTH)
    seen = ActorInput.first(jnp.asarray(obs))
    key = jax.random.key(0)
    scores, _, _ = actor.act(policy.network, policy.config, seen, memory, jnp.asarray(legal), key)
    np.testing.assert_array_equal(np.argmax(scores, axis=1), known["action"])
    outside = PolicyActor(policy).decide(obs, legal, {})
    np.testing.assert_array_equal(outside.best, known["action"])
    changed = (known["action"] != np.argmax(known["scores"], axis=1)).any()
    assert changed or fallback != "behaviour"


@pytest.mark.filterwarnings("ignore:.*no support here")
def test_memories_go_on_side_by_side() -> None:
    policy = careful("lstm", "behaviour")
    observations = random_observations(policy, 10)
    session, outside, actor = policy.start(), PolicyActor(policy), policy.act_function()
    outside.begin(0)
    memory, action, reward = actor.start(policy.network, 1), -1, 0.0
    for obs in observations:
        seen = ActorInput(
            jnp.asarray(obs[None]), jnp.array([action], jnp.int32), jnp.array([reward])
        )
        scores, _, memory = actor.act(
            policy.network, policy.config, seen, memory, None, jax.random.key(0)
        )
        outcome = Outcome(obs, reward, False, False, action, None, None, action)
        many = np.zeros((WIDTH, *obs.shape), np.float32)
        many[0] = obs
        best = outside.decide(many, None, {0: outcome}).best
        action = session.act(obs, reward)
        assert action == int(np.argmax(scores[0])) == best[0]
        reward += 0.5


def test_an_environment_sees_the_fallback() -> None:
    gymnasium = pytest.importorskip("gymnasium")

    class Paying(gymnasium.Env):  # type: ignore[misc, name-defined]
        """1 for action 2; four steps."""

        observation_space = gymnasium.spaces.Box(-1, 1, (5,), np.float32)
        action_space = gymnasium.spaces.Discrete(4)
        steps = 0

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            self.steps = 0
            return np.full(5, 0.1, np.float32), {}

        def step(self, action: int) -> Any:
            self.steps += 1
            obs = np.full(5, 0.1 * self.steps, np.float32)
            return obs, float(action == 2), False, self.steps == 4, {}

    policy, clone = random_policy("rbve", "dense"), random_policy("bc", "dense")
    returns = []
    for threshold, fallback in ((0.0, None), (1.0, 2)):
        own = dataclasses.replace(policy, support=Support(clone, 1.0, threshold, fallback))
        returns.append(evaluate(own, Paying(), episodes=2, epsilon=0.0)["return"])
    assert returns[0] < returns[1] == 4.0
