"""Vectorised environments outside JAX: several episodes side by side, one decision for all.

Every episode has seeds of its own, made from the seed and its number, and all environments wait
for each other at every step. So the episodes depend on the seed alone, not on how many
environments there are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rbve import envs, stopping
from rbve.envs._host import HostEnv, categories, random_action, shows_final
from rbve.envs.base import Env
from rbve.evaluation.fit import joined_shape

WIDTH = 8  # environments side by side; fixed, as rounding may depend on the size of a batch


class Outcome(NamedTuple):
    """What one environment gives after a reset or a step."""

    obs: np.ndarray
    reward: float
    terminated: bool
    truncated: bool
    executed: int
    legal: np.ndarray | None
    ram: np.ndarray | None  # for scripts
    action: int = -1  # chosen, whatever was executed; −1 after a reset


class VectorEnv:
    """Environments of one kind in this process, numbered."""

    def __init__(self, envs: Sequence[HostEnv]) -> None:
        self.envs = envs
        self.count = min(len(envs), WIDTH)
        self.name, self.obs_shape, self.actions = envs[0].name, envs[0].obs_shape, envs[0].actions
        self.shows_final = shows_final(envs[0])
        self.categories = categories(envs[0])

    @property
    def legal(self) -> np.ndarray | None:
        """The first environment's mask; before a reset it may have none."""
        return self.envs[0].legal

    def reset(self, seeds: Mapping[int, int]) -> dict[int, Outcome]:
        return {index: reset(self.envs[index], seed) for index, seed in seeds.items()}

    def step(self, actions: Mapping[int, int]) -> dict[int, Outcome]:
        return {index: step(self.envs[index], action) for index, action in actions.items()}

    def close(self) -> None:
        for env in self.envs:
            env.close()


def open_vector(
    name: str, noise: float = 0.0, count: int = WIDTH, first: HostEnv | None = None
) -> VectorEnv:
    """`count` environments of this name; the first may be made already."""
    made = [] if first is None else [first]
    more = (envs.load(name, noise) for _ in range(count - len(made)))
    return VectorEnv([*made, *(env for env in more if not isinstance(env, Env))])


def reset(env: HostEnv, seed: int) -> Outcome:
    obs = env.reset(seed)
    return Outcome(obs, 0.0, False, False, -1, env.legal, getattr(env, "ram", None))


def step(env: HostEnv, action: int) -> Outcome:
    obs, reward, terminated, truncated = env.step(action)
    ram = getattr(env, "ram", None)
    return Outcome(obs, reward, terminated, truncated, env.executed, env.legal, ram, action)


class Decision(NamedTuple):
    """What an actor decides for all environments; E is WIDTH."""

    best: np.ndarray  # (E,) int, the action without exploration
    q: np.ndarray | None = None  # (E, A) values, where the actor has them


class HostActor:
    """Decides for all environments at once: action 0, unless a subclass decides otherwise. Rows of
    environments that do not run may hold anything."""

    stack = 1  # observations it joins

    def begin(self, index: int) -> None:
        """An episode starts in this environment."""

    def decide(self, obs: np.ndarray, legal: Any, last: Mapping[int, Outcome]) -> Decision:
        """obs (E, ...) stacked, legal (E, A) or None; `last` outcomes of those that run."""
        return Decision(np.zeros(WIDTH, np.int64))


@dataclass
class Trace:
    number: int
    rng: np.random.Generator
    obs: list[np.ndarray] = field(default_factory=list)  # where they are kept
    legal: list[np.ndarray | None] = field(default_factory=list)
    action: list[int] = field(default_factory=list)  # chosen
    executed: list[int] = field(default_factory=list)
    propensity: list[float] = field(default_factory=list)  # of the chosen action
    reward: list[float] = field(default_factory=list)
    q: list[float] = field(default_factory=list)  # of the chosen action
    gap: list[float] = field(default_factory=list)  # best minus second best
    terminated: bool = False

    def see(self, outcome: Outcome) -> None:
        self.obs.append(outcome.obs)
        self.legal.append(outcome.legal)

    def add(self, outcome: Outcome, keep_obs: bool) -> bool:
        """A step; whether the episode has ended."""
        self.reward.append(outcome.reward)
        self.executed.append(outcome.executed)
        if keep_obs:
            self.see(outcome)
        self.terminated = outcome.terminated
        return outcome.terminated or outcome.truncated

    def choose(
        self, decision: Decision, index: int, legal: np.ndarray | None, epsilon: float, actions: int
    ) -> int:
        """The action of environment `index` under ε-greedy exploration, noted with its values."""
        best = int(decision.best[index])
        explore = self.rng.random() < epsilon
        action = random_action(self.rng, actions, legal) if explore else best
        choices = actions if legal is None else int(legal.sum())
        self.action.append(action)
        self.propensity.append(epsilon / choices + (1 - epsilon) * (action == best))
        if decision.q is not None:
            q = decision.q[index]
            ordered = np.sort(q if legal is None else q[legal])
            self.q.append(float(q[action]))
            self.gap.append(float(ordered[-1] - ordered[-2]) if len(ordered) > 1 else 0.0)
        return action


def episode_seeds(seed: int, index: int, salt: int = 0) -> tuple[int, np.random.Generator]:
    """The environment's seed and the generator of random actions, for one episode."""
    environment, actor = np.random.SeedSequence([seed, index, salt]).spawn(2)
    return int(environment.generate_state(1)[0] >> 1), np.random.default_rng(actor)


class FrameStack:
    """The last observations of every environment, zeros before an episode began."""

    def __init__(self, count: int, shape: tuple[int, ...], stack: int) -> None:
        self.shape = joined_shape(shape, stack)
        self.count, self.stack = count, stack
        self.window: np.ndarray | None = None  # (E, stack, ...)

    def put(self, index: int, obs: np.ndarray, begins: bool) -> None:
        if self.window is None:
            self.window = np.zeros((self.count, self.stack, *obs.shape), obs.dtype)
        if begins:
            self.window[index] = 0
        else:
            self.window[index, :-1] = self.window[index, 1:]
        self.window[index, -1] = obs

    def joined(self) -> np.ndarray:
        """(E, ...), the newest frame last, as training joins them."""
        held: Any = self.window
        if self.stack > 1:
            held = np.moveaxis(held, 1, -2)
        return held.reshape(self.count, *self.shape)


def play(
    env: VectorEnv,
    actor: HostActor,
    episodes: int,
    epsilon: float,
    seed: int,
    keep_obs: bool = False,
    salt: int = 0,
) -> Iterator[Trace]:
    """Episodes in their order, with a share `epsilon` of random actions.

    Episode k of a seed is the same however many are asked for; another `salt` gives others. Traces
    hold observations and masks if they are to be kept.
    """
    frames = FrameStack(WIDTH, env.obs_shape, actor.stack)
    actions = len(env.actions)
    running: dict[int, Trace] = {}
    last: dict[int, Outcome] = {}
    done: dict[int, Trace] = {}
    begun = handed_out = 0
    while handed_out < episodes:
        stopping.check()
        seeds = {}
        free = [index for index in range(env.count) if index not in running]
        for index in free[: episodes - begun]:
            seeds[index], rng = episode_seeds(seed, begun, salt)
            running[index] = Trace(begun, rng)
            begun += 1
        for index, outcome in env.reset(seeds).items():
            actor.begin(index)
            frames.put(index, outcome.obs, begins=True)
            last[index] = outcome
            if keep_obs:
                running[index].see(outcome)
        legal = None
        if any(outcome.legal is not None for outcome in last.values()):
            legal = np.ones((WIDTH, actions), np.bool_)
            for index, outcome in last.items():
                legal[index] = True if outcome.legal is None else outcome.legal
        decision = actor.decide(frames.joined(), legal, last)
        chosen = {
            index: trace.choose(decision, index, last[index].legal, epsilon, actions)
            for index, trace in running.items()
        }
        for index, outcome in env.step(chosen).items():
            frames.put(index, outcome.obs, begins=False)
            last[index] = outcome
            if running[index].add(outcome, keep_obs):
                trace = running.pop(index)
                done[trace.number] = trace
                del last[index]
        while handed_out in done:
            yield done.pop(handed_out)
            handed_out += 1
