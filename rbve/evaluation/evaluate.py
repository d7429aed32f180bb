"""One policy in one environment: its figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from rbve.envs._atari_games import with_reference
from rbve.envs.base import Env
from rbve.evaluation.fit import check_play, frames_joined
from rbve.evaluation.host import TRIAL, evaluate_on_host
from rbve.evaluation.players import FunctionPlayer
from rbve.evaluation.rollout import make_rollout
from rbve.evaluation.worlds import check_legal, legal_source, opened
from rbve.policy import Policy
from rbve.training.measures import normalised
from rbve.types import Array


class Play(NamedTuple):
    """What is played."""

    episodes: int
    epsilon: float
    gamma: float | None = None  # None = as the policy was trained
    noise: float = 0.0
    seed: int = 0
    legal: str | None = None  # "all", if the policy's data had masks and the environment has none


def measured(
    policy: Policy | Callable[..., Any], env: Any, play: Play
) -> tuple[dict[str, Any], Array]:
    """Mean figures, and the return of every episode."""
    check_play(play.episodes, play.epsilon, play.seed)
    if isinstance(policy, Policy):
        return of_policy(policy, env, play)
    with opened(env, play.noise, play.episodes, on_host=True) as world:
        check_legal(world, False, play.legal)
        player = FunctionPlayer(policy, world.actions)
        found = evaluate_on_host(
            world,  # type: ignore[arg-type]
            player,
            play.episodes,
            play.epsilon,
            gamma=1.0,
            seed=play.seed,
            salt=TRIAL,
        )
        source = legal_source(world, False)
    return means_of(found.summary(values=False), source), found.returns


def of_policy(policy: Policy, env: Any, play: Play) -> tuple[dict[str, Any], Array]:
    trained = policy.info.get("job", {}).get("spec", {})
    gamma = trained.get("gamma", 0.99) if play.gamma is None else play.gamma
    clip = trained.get("clip_rewards", False)
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma must lie in [0, 1]; got {gamma}")
    numbers = (play.episodes, play.epsilon, gamma, clip)
    with opened(env, play.noise, play.episodes) as world:
        frames_joined(world, policy)
        check_legal(world, policy.masked, play.legal)
        if isinstance(world, Env):
            run = jax.jit(make_rollout(world, policy.act_function(), *numbers))
            found = run(policy.network, policy.config, jax.random.key(play.seed))
        else:
            found = evaluate_on_host(world, policy, *numbers, play.seed, TRIAL)
        source = legal_source(world, policy.masked)
    figures = found.summary(policy.algorithm.values)
    name = env if isinstance(env, str) else None
    facts = policy.info.get("facts", {})
    known = with_reference(facts if name and facts.get("env") == name else {}, name)
    figures |= normalised(figures["return"], known) if known else {}
    result = means_of(figures, source)
    if "normalised_return" in result and "reference_source" in known:
        result["normalised_by"] = known["reference_source"]
    return result, found.returns


def means_of(figures: dict[str, tuple[float, int]], source: str | None) -> dict[str, Any]:
    means: dict[str, Any] = {name: value for name, (value, _) in figures.items()}
    return means if source is None else {**means, "legal_actions": source}
