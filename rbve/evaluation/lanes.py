"""Episodes outside JAX, several side by side with one decision for all of them.

Every episode has seeds of its own, made from the seed and its number, and all lanes wait for each
other at every step. So what is played depends on the seed alone, not on how steps are shared out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from rbve import envs, stopping
from rbve.envs.base import Env, HostEnv, categories, random_action, shows_final
from rbve.evaluation.fit import joined_shape

LANES = 8  # episodes side by side; fixed, as rounding may depend on the size of a batch


class Outcome(NamedTuple):
    """What a lane says after a reset or a step."""

    obs: np.ndarray
    reward: float
    terminated: bool
    truncated: bool
    executed: int
    legal: np.ndarray | None
    ram: np.ndarray | None  # for scripted players
    action: int = -1  # chosen, whatever was executed; −1 after a reset


class Lanes:
    """Environments of one kind in this process, told apart by their number."""

    def __init__(self, envs: Sequence[HostEnv]) -> None:
        self.envs = envs
        self.count = min(len(envs), LANES)
        self.name, self.obs_shape, self.actions = envs[0].name, envs[0].obs_shape, envs[0].actions
        self.shows_final = shows_final(envs[0])
        self.categories = categories(envs[0])

    @property
    def legal(self) -> np.ndarray | None:
        """What the first environment says now; before a reset it may say nothing."""
        return self.envs[0].legal

    def reset(self, seeds: Mapping[int, int]) -> dict[int, Outcome]:
        """Starts an episode in each lane named."""
        return {lane: reset(self.envs[lane], seed) for lane, seed in seeds.items()}

    def step(self, actions: Mapping[int, int]) -> dict[int, Outcome]:
        """One step of each lane named."""
        return {lane: step(self.envs[lane], action) for lane, action in actions.items()}

    def close(self) -> None:
        for env in self.envs:
            env.close()


def open_lanes(
    name: str, noise: float = 0.0, count: int = LANES, first: HostEnv | None = None
) -> Lanes:
    """Lanes of the environment with this name; the first may be made already."""
    made = [] if first is None else [first]
    more = (envs.load(name, noise) for _ in range(count - len(made)))
    return Lanes([*made, *(env for env in more if not isinstance(env, Env))])


def reset(env: HostEnv, seed: int) -> Outcome:
    obs = env.reset(seed)
    return Outcome(obs, 0.0, False, False, -1, env.legal, getattr(env, "ram", None))


def step(env: HostEnv, action: int) -> Outcome:
    obs, reward, terminated, truncated = env.step(action)
    ram = getattr(env, "ram", None)
    return Outcome(obs, reward, terminated, truncated, env.executed, env.legal, ram, action)


class Decision(NamedTuple):
    best: np.ndarray  # (L,) int, what the player would do
    q: np.ndarray | None = None  # (L, A), what it thinks actions are worth


class Player(Protocol):
    """Decides for all lanes at once. Rows of lanes that stand still may hold anything."""

    stack: int  # observations it joins

    def begin(self, lane: int) -> None:
        """An episode starts in this lane."""

    def decide(
        self, obs: np.ndarray, legal: np.ndarray | None, waiting: Mapping[int, Outcome]
    ) -> Decision:
        """obs (L, ...) joined, legal (L, A) or None; `waiting` lanes and what they said."""


@dataclass
class Trace:
    """One episode as it was played."""

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


def episode_seeds(seed: int, index: int, salt: int = 0) -> tuple[int, np.random.Generator]:
    """For the environment and for the player's random actions of one episode."""
    world, player = np.random.SeedSequence([seed, index, salt]).spawn(2)
    return int(world.generate_state(1)[0] >> 1), np.random.default_rng(player)


class Frames:
    """The last observations of every lane, zeros before an episode began."""

    def __init__(self, count: int, shape: tuple[int, ...], stack: int) -> None:
        self.shape = joined_shape(shape, stack)
        self.count, self.stack = count, stack
        self.window: np.ndarray | None = None  # (L, stack, ...)

    def put(self, lane: int, obs: np.ndarray, begins: bool) -> None:
        if self.window is None:
            self.window = np.zeros((self.count, self.stack, *obs.shape), obs.dtype)
        if begins:
            self.window[lane] = 0
        else:
            self.window[lane, :-1] = self.window[lane, 1:]
        self.window[lane, -1] = obs

    def joined(self) -> np.ndarray:
        """(L, ...), the newest frame last, as training joins them."""
        held: Any = self.window
        if self.stack > 1:
            held = np.moveaxis(held, 1, -2)
        return held.reshape(self.count, *self.shape)


def play(
    lanes: Lanes,
    player: Player,
    episodes: int,
    epsilon: float,
    seed: int,
    keep_obs: bool = False,
    salt: int = 0,
) -> Iterator[Trace]:
    """Traces of `episodes` episodes in their order, with a share `epsilon` of random actions.

    The same seed with another `salt` gives other episodes.
    """
    frames = Frames(LANES, lanes.obs_shape, player.stack)
    actions = len(lanes.actions)
    running: dict[int, Trace] = {}
    waiting: dict[int, Outcome] = {}
    done: dict[int, Trace] = {}
    begun = handed_out = 0
    while handed_out < episodes:
        stopping.check()
        seeds = {}
        free = [lane for lane in range(lanes.count) if lane not in running]
        for lane in free[: episodes - begun]:
            seeds[lane], rng = episode_seeds(seed, begun, salt)
            running[lane] = Trace(begun, rng)
            begun += 1
        for lane, outcome in lanes.reset(seeds).items():
            player.begin(lane)
            frames.put(lane, outcome.obs, begins=True)
            waiting[lane] = outcome
            if keep_obs:
                running[lane].see(outcome)
        decision = player.decide(frames.joined(), joint_mask(waiting, actions), waiting)
        chosen = {
            lane: choose(trace, decision, lane, waiting[lane].legal, epsilon, actions)
            for lane, trace in running.items()
        }
        for lane, outcome in lanes.step(chosen).items():
            trace = running[lane]
            frames.put(lane, outcome.obs, begins=False)
            waiting[lane] = outcome
            trace.reward.append(outcome.reward)
            trace.executed.append(outcome.executed)
            if keep_obs:
                trace.see(outcome)
            if outcome.terminated or outcome.truncated:
                trace.terminated = outcome.terminated
                done[trace.number] = running.pop(lane)
                del waiting[lane]
        while handed_out in done:
            yield done.pop(handed_out)
            handed_out += 1


def joint_mask(waiting: Mapping[int, Outcome], actions: int) -> np.ndarray | None:
    if all(outcome.legal is None for outcome in waiting.values()):
        return None
    joint = np.ones((LANES, actions), np.bool_)
    for lane, outcome in waiting.items():
        joint[lane] = True if outcome.legal is None else outcome.legal
    return joint


def choose(
    trace: Trace,
    decision: Decision,
    lane: int,
    legal: np.ndarray | None,
    epsilon: float,
    actions: int,
) -> int:
    """The lane's action, and what is worth noting about it."""
    best = int(decision.best[lane])
    struck = trace.rng.random() < epsilon
    action = random_action(trace.rng, actions, legal) if struck else best
    choices = actions if legal is None else int(legal.sum())
    trace.action.append(action)
    trace.propensity.append(epsilon / choices + (1 - epsilon) * (action == best))
    if decision.q is not None:
        q = decision.q[lane]
        ordered = np.sort(q if legal is None else q[legal])
        trace.q.append(float(q[action]))
        trace.gap.append(float(ordered[-1] - ordered[-2]) if len(ordered) > 1 else 0.0)
    return action
