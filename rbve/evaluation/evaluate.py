"""The evaluator: one policy in one environment, inside JAX or outside it.

Training, `rbve evaluate` and `rbve follow` call it. Episodes depend on a seed and on the step of
training that a policy is of, and on nothing else: equal seeds give equal figures in all three.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rbve import envs
from rbve.envs.atari import with_reference
from rbve.envs.base import Env, Stepped, adopt
from rbve.evaluation import rollout
from rbve.evaluation.actors import host_actor
from rbve.evaluation.fit import Interface, check_fit
from rbve.evaluation.rollout import Evaluation, EvaluationPlan, check_seed
from rbve.evaluation.vector import WIDTH, HostActor, Trace, VectorEnv, open_vector, play
from rbve.policy import Policy
from rbve.runtime.inputs import ALL
from rbve.types import Array

# The step of what was not trained. Larger than any step, so that its episodes are those of no
# snapshot, and of no recording, whose seeds are smaller.
UNTRAINED = 1 << 31
_FROM_ENVIRONMENT = "from the environment"  # who said which actions are legal
_REMEDY = "if all of them are, say so with --legal all (legal='all')"


@contextmanager
def open_environment(
    env: Any, noise: float = 0.0, episodes: int = WIDTH, on_host: bool = False
) -> Iterator[Env | VectorEnv]:
    """An environment by name, or as an object, which stays open; `on_host` = outside JAX. No more
    environments are made than `episodes` will be played."""
    if isinstance(env, str):
        made = envs.load(env, noise)
        if not isinstance(made, Env):
            with closing(open_vector(env, noise, min(episodes, WIDTH), made)) as several:
                yield several
            return
    else:
        made = adopt(env, noise)
    if not isinstance(made, Env):
        yield VectorEnv([made])
    elif on_host:
        yield VectorEnv([Stepped(made) for _ in range(min(episodes, WIDTH))])
    else:
        yield made


def check_legal(
    env: Env | VectorEnv, masked: bool, legal: str | None, remedy: str = _REMEDY
) -> None:
    """Whether an environment tells a policy of masked data which actions are legal. `legal` is
    "all" where a user says that all of them are. A VectorEnv is reset."""
    if legal not in (None, ALL):
        raise ValueError(f"legal is 'all', or left to the environment; got {legal!r}")
    if not masked and legal is None:
        return
    if isinstance(env, VectorEnv):
        env.reset({0: 0})
    if legal is None and env.legal is None:
        raise ValueError(
            f"the policy's data says which actions are legal, and {env.name} does not; {remedy}"
        )
    if legal is not None and env.legal is not None:
        raise ValueError(f"{env.name} says which actions are legal; leave legal out")


def evaluation_key(seed: int, step: int) -> Array:
    """Of the episodes of a snapshot inside JAX. The third key that a seed is split into, since
    training takes the others (member_keys)."""
    return jax.random.fold_in(jax.random.split(jax.random.key(seed), 3)[2], step)


class Evaluator:
    """An open environment, and how policies are played in it."""

    def __init__(self, env: Env | VectorEnv, plan: EvaluationPlan) -> None:
        self.env, self.plan = env, plan
        self._compiled: dict[Any, Callable[..., Any]] = {}

    def play(
        self, policy: Policy | HostActor | Callable[..., Any], seed: int, step: int | None = None
    ) -> Evaluation:
        """Episodes of a policy or, outside JAX, of a function; `step` None = as the policy says."""
        check_seed(seed)
        trained = policy if isinstance(policy, Policy) else None
        masked = trained is not None and trained.masked
        values = trained is not None and trained.algorithm.values
        plan, gamma, clip = self.plan, 1.0, False
        if trained is not None:
            gamma, clip = trained.trained.gamma, trained.trained.clip_rewards
            gamma = gamma if plan.gamma is None else plan.gamma
            clip = clip if plan.clip_rewards is None else plan.clip_rewards
            step = trained.trained.step if step is None else step
        plan = replace(plan, gamma=gamma, clip_rewards=clip)
        step = UNTRAINED if step is None else step
        if isinstance(self.env, VectorEnv):
            actor = host_actor(policy, self.env)
            traces = play(self.env, actor, plan.episodes, plan.epsilon, seed=step, salt=seed)
            measured = _measure_traces(list(traces), plan)
        elif trained is None:
            raise ValueError("inside JAX a Policy plays; open the environment on the host")
        else:
            # Compiled once for all snapshots of a run.
            kind = (
                plan, trained.algorithm, trained.options, trained.features, trained.rescaled,
                _Same(trained.support),
            )  # fmt: skip
            if kind not in self._compiled:
                played = rollout.make_rollout(self.env, trained.act_function(), plan)
                self._compiled[kind] = jax.jit(played)
            config = jax.tree.map(jnp.float32, trained.config)
            key = evaluation_key(seed, step)
            measured = self._compiled[kind](trained.network, config, key)
        legal = ALL if masked else None
        return Evaluation(measured, values, legal if self.env.legal is None else _FROM_ENVIRONMENT)


class _Same:
    """A key that is equal for one object alone, and keeps it."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.held is self.held

    def __hash__(self) -> int:
        return id(self.held)


@contextmanager
def open_evaluator(
    env: Any, plan: EvaluationPlan, needs: Interface | None, remedy: str = _REMEDY
) -> Iterator[Evaluator]:
    """An environment opened for policies that take and give what `needs` says.

    None are functions of single observations, outside JAX. ValueError where they do not fit, or
    where nobody says which actions are legal; `remedy` is what a user can do about that.
    """
    with open_environment(env, plan.noise, plan.episodes, on_host=needs is None) as opened:
        if needs is not None:
            check_fit(opened, needs)
        masked = needs is not None and needs.masked
        check_legal(opened, masked, plan.legal, remedy)
        yield Evaluator(opened, plan)


def evaluate(
    policy: Policy | Callable[..., Any], env: Any, plan: EvaluationPlan, seed: int = 0
) -> Evaluation:
    """Play a policy, or a function as rbve.evaluate takes it, in an environment."""
    check_seed(seed)
    needs = Interface.of_policy(policy) if isinstance(policy, Policy) else None
    with open_evaluator(env, plan, needs) as evaluator:
        return evaluator.play(policy, seed)


def known_references(policy: Any, env: Any) -> dict[str, Any]:
    """Returns of the uniform policy and of an online agent in this environment, as far as known."""
    if not isinstance(policy, Policy) or not isinstance(env, str):
        return {}
    facts = policy.trained.facts
    return with_reference(dict(facts) if facts.get("env") == env else {}, env)


def _measure_traces(traces: Sequence[Trace], plan: EvaluationPlan) -> dict[str, Array]:
    # Lengths are rounded up to powers of two, so that few programs are compiled.
    steps = 1 << (max(len(trace.reward) for trace in traces) - 1).bit_length()
    columns = {name: np.zeros((steps, len(traces)), np.float32) for name in rollout.STEP_COLUMNS}
    for k, trace in enumerate(traces):
        length = len(trace.reward)
        columns["reward"][:length, k] = trace.reward
        columns["alive"][:length, k] = 1
        if trace.q:
            columns["q"][:length, k] = trace.q
            columns["gap"][:length, k] = trace.gap
    ended = jnp.asarray([trace.terminated for trace in traces])
    arrays = {name: jnp.asarray(values) for name, values in columns.items()}
    return _measure_compiled(arrays, ended, plan.gamma, bool(plan.clip_rewards))


_measure_compiled = jax.jit(rollout.measure, static_argnums=3)
