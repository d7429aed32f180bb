"""Episodes of a policy that does not learn, many at once inside JAX or on the host."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rbve.behaviours import online
from rbve.behaviours.record import RecordingPlan, Source, cut, grouped
from rbve.data.dataset import NO_ACTION, Episode
from rbve.envs.atari import reference as atari_reference
from rbve.envs.base import Env, HostEnv
from rbve.evaluation.actors import FunctionActor, host_actor
from rbve.evaluation.evaluate import check_legal, open_environment
from rbve.evaluation.fit import Interface, check_fit
from rbve.evaluation.rollout import undecided
from rbve.evaluation.vector import HostActor, Trace, VectorEnv, play
from rbve.policy import Policy
from rbve.policy.network import ActorInput
from rbve.types import Array

_AT_ONCE = 32  # episodes per compiled call


def inside_jax(
    env: Env, policy: Policy | None, episodes: int, epsilon: float, seed: int
) -> Iterator[list[Episode]]:
    run = jax.jit(_make_recorder(env, policy, epsilon, _AT_ONCE))
    key = jax.random.key(seed)
    for group, start in enumerate(range(0, episodes, _AT_ONCE)):
        columns = jax.tree.map(np.asarray, run(jax.random.fold_in(key, group)))
        lengths = columns["alive"].sum(axis=0)
        apart = [{name: values[:, k] for name, values in columns.items()} for k in range(_AT_ONCE)]
        yield [cut(apart[k], 0, lengths[k]) for k in range(min(_AT_ONCE, episodes - start))]


def _make_recorder(env: Env, policy: Policy | None, epsilon: float, count: int) -> Any:
    """key -> columns (T+1, count) of episodes side by side, and their lengths."""
    actions, steps = len(env.actions), env.max_steps
    actor, network, config, share = undecided(actions), (), (), 1.0
    if policy is not None:
        actor, network, config = policy.act_function(), policy.network, policy.config
        share = epsilon

    def run(key: Array) -> dict[str, Array]:
        key_reset, key_steps = jax.random.split(key)
        state, obs = jax.vmap(env.reset)(jax.random.split(key_reset, count))

        def step(carry: tuple[Any, ActorInput, Any, Array], key: Array) -> Any:
            state, seen, memory, alive = carry
            key_act, key_net, key_env = jax.random.split(key, 3)
            legal = None if env.legal is None else jax.vmap(env.legal)(state)
            scores, _, memory = actor.act(network, config, seen, memory, legal, key_net)
            action, best = online.explore(scores, legal, share, key_act)
            choices = actions if legal is None else jnp.sum(legal, axis=-1)
            state, outcome = jax.vmap(env.step)(state, action, jax.random.split(key_env, count))
            propensity = share / choices + (1 - share) * (action == best)
            row = outcome._asdict() | {"obs": seen.obs, "action": action, "alive": alive}
            row |= {"propensity": propensity} | ({} if legal is None else {"legal": legal})
            ended = outcome.terminated | outcome.truncated
            seen = ActorInput(outcome.obs, action, outcome.reward)
            return (state, seen, memory, alive & ~ended), row

        memory = actor.start(network, count)
        start = (state, ActorInput.first(obs), memory, jnp.ones(count, bool))
        (state, last, *_), rows = jax.lax.scan(step, start, jax.random.split(key_steps, steps))
        final = {"obs": last.obs}
        if env.legal is not None:
            final["legal"] = jax.vmap(env.legal)(state)
        return rows | {name: jnp.append(rows[name], final[name][None], axis=0) for name in final}

    return run


def on_host(
    env: HostEnv | VectorEnv,
    policy: Policy | HostActor | Callable[..., Any],
    episodes: int,
    epsilon: float,
    seed: int,
) -> Iterator[Episode]:
    """Episodes in their order; episode k depends on seed and k."""
    several = env if isinstance(env, VectorEnv) else VectorEnv([env])
    actor = host_actor(policy, several)
    for trace in play(several, actor, episodes, epsilon, seed, keep_obs=True):
        episode = episode_of(trace, several.shows_final)
        # Whether a function draws its actions, and how, is not known.
        unknown = isinstance(actor, FunctionActor)
        yield episode._replace(propensity=None) if unknown else episode


def episode_of(trace: Trace, shows_final: bool = True) -> Episode:
    return Episode(
        obs=np.asarray(trace.obs),
        action=np.asarray([*trace.action, NO_ACTION], np.int32),
        reward=np.asarray([*trace.reward, 0], np.float32),
        terminated=trace.terminated,
        executed=np.asarray([*trace.executed, NO_ACTION], np.int32),
        propensity=np.asarray([*trace.propensity, 1], np.float32),
        legal=None if trace.legal[0] is None else np.asarray(trace.legal, np.bool_),
        final_observed=trace.terminated or shows_final,
    )


@dataclass(frozen=True)
class FixedPolicy:
    """Who acts without learning; inside JAX a Policy or a UniformActor."""

    name: str  # in the provenance
    policy: Policy | HostActor | Callable[..., Any]

    @contextmanager
    def opened(self, plan: RecordingPlan) -> Iterator[Source]:
        episodes = plan.episodes_or_default
        if not 0 <= plan.epsilon <= 1:
            raise ValueError(f"epsilon must lie in [0, 1]; got {plan.epsilon}")
        policy = self.policy if isinstance(self.policy, Policy) else None
        uniform = self.name == "uniform"
        reference = plan.reference or atari_reference(plan.env_name)
        about = {
            "env": plan.env_name,
            "behaviour": self.name,
            "policy": None if policy is None else dict(policy.info),
            "epsilon": plan.epsilon,
            "noise": plan.noise,
            "seed": plan.seed,
            "recorded_episodes": episodes,
            "keep": plan.keep,
            **({} if reference is None else {"reference": dict(reference)}),
        }
        with open_environment(plan.env, plan.noise, episodes, on_host=callable(self.policy)) as env:
            if policy is not None:
                check_fit(env, Interface.of_policy(policy))
            elif isinstance(env, Env) and not uniform:
                raise ValueError(f"{env.name} runs inside JAX, where scripts do not play")
            check_legal(env, policy is not None and policy.masked, plan.legal)
            groups: Iterator[tuple[list[Episode], float]]
            if isinstance(env, Env):
                recorded = inside_jax(env, policy, episodes, plan.epsilon, plan.seed)
                groups = (
                    (group, min(k * _AT_ONCE / episodes, 1.0))
                    for k, group in enumerate(recorded, 1)
                )
            else:
                epsilon = 1.0 if uniform else plan.epsilon
                played = on_host(env, self.policy, episodes, epsilon, plan.seed)
                groups = grouped((episode, k / episodes) for k, episode in enumerate(played, 1))
            yield Source(env.actions, about, episodes, groups)
