"""The paper's online DQN for Atari, outside JAX, while it learns: preset="rlu-atari".

Single DQN with uniform replay: the update is the library's own (rbve/training/update.py) on batches
drawn from a ring of frames.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rbve import envs, stopping
from rbve.behaviours.choose import Asked
from rbve.behaviours.dqn import exploration
from rbve.behaviours.record import EXPERT, RecordingPlan, Source, grouped, provenance
from rbve.behaviours.replay import Replay
from rbve.behaviours.rollouts import episode_of
from rbve.data.dataset import Episode
from rbve.data.formats.native import StoreWriter
from rbve.envs._atari_games import reference
from rbve.envs.base import Env, HostEnv
from rbve.evaluation import vector
from rbve.evaluation.vector import Decision, Trace, episode_seeds
from rbve.policy import Policy
from rbve.schema import INT32
from rbve.spec import Spec
from rbve.training.batches import Picked
from rbve.training.batches.transitions import TransitionItems
from rbve.training.update import Member, make_program, recorder_key

ORDER, LEARNS = 20, True
PRESETS = {"rlu-atari": "online"}


def claim(asked: Asked) -> OnlineHostDQN | None:
    """By its preset."""
    return OnlineHostDQN() if asked.preset in PRESETS else None


@dataclass(frozen=True)
class HostDQNOptions:
    """The paper's table for Atari; "choice" where it is silent."""

    batch_size: int = 256
    learning_rate: float = 1e-4  # choice: what the paper's offline methods use
    gamma: float = 0.99
    target_period: int = 2500  # updates
    epsilon: float = 0.01  # random actions, in the end
    epsilon_steps: int = 250_000  # environment steps over which they fall from all of them
    min_replay: int = 20_000  # environment steps before learning starts
    replay: int = 1_000_000  # rows kept to learn from
    double: bool = False
    steps_per_update: int = 4  # choice: environment steps per update, as DQN has it
    stack: int = 4
    td: str = "huber"  # choice: as DQN has it
    clip_rewards: bool = True
    torso: str = "auto"
    hidden: tuple[int, ...] = ()
    steps: int = 0  # environment steps of a recording, where no number of episodes is given

    @property
    def spec(self) -> Spec:
        shared = ("double", "torso", "hidden", "stack", "batch_size", "td", "gamma", "clip_rewards")
        own = {name: getattr(self, name) for name in shared}
        return Spec.of(algorithm="dqn", steps=INT32, **own).resolved()


RLU_ATARI = HostDQNOptions()


class Agent:
    """Weights, and the two things done with them."""

    def __init__(self, env: HostEnv, pixels: bool, options: HostDQNOptions, seed: int) -> None:
        self.env, self.options = env, options
        self.items = TransitionItems(env.obs_shape, options.stack, len(env.actions), False, pixels)
        self.program = make_program(options.spec, self.items)
        weights, updates = jax.random.split(recorder_key(seed))
        self.state = self.program.init(weights)
        self.member = Member(
            key=updates,
            offset=jnp.int32(0),
            size=jnp.int32(1),
            g_scale=jnp.float32(1),
            learning_rate=jnp.float32(options.learning_rate),
            target_period=jnp.int32(options.target_period),
            config=self.program.algorithm.config(),
        )
        self._advance = jax.jit(self.program.advance_given, donate_argnums=0)

        def q_values(params: Any, frames: Any) -> Any:
            return self.program.unravel(params)(self.items.join(frames), jax.random.key(0)).q

        self._q = jax.jit(q_values)
        self.updates = 0

    def q(self, frames: np.ndarray) -> np.ndarray:
        """(B, A) of frames (B, stack, ...)."""
        return np.asarray(self._q(self.state.params, frames))

    def learn(self, picked: Picked) -> None:
        batches = jax.tree.map(lambda column: column[None], picked)
        self.updates += 1
        self.state, _ = self._advance(self.state, batches, self.member, self.updates)

    def policy(self) -> Policy:
        algorithm, spec = self.program.algorithm, self.options.spec
        return Policy(
            algorithm=algorithm,
            options=spec.load_options(),
            config=algorithm.config(),
            network=self.program.unravel(self.state.params),
            obs_shape=self.items.obs_shape,
            actions=self.env.actions,
            hidden=spec.network.hidden,
            torso=spec.network.torso,
            info={"from": "the online agent at the end of its recording", "job": spec.to_json()},
        )


def start(env: HostEnv, options: HostDQNOptions, episodes: int | None, seed: int) -> Learning:
    """An agent before its first step; it ends after so many episodes, or `options.steps` steps."""
    first = env.reset(episode_seeds(seed, 0)[0])
    if env.legal is not None:
        raise ValueError(f"{env.name} masks actions, which this online agent does not learn with")
    agent = Agent(env, first.dtype == np.uint8, options, seed)
    replay = Replay(options.replay, env.obs_shape, first.dtype, options.stack)
    return Learning(agent, replay, options, episodes, seed)


class Learning:
    """Acting and learning in turn; iterating gives episodes as they end."""

    def __init__(
        self, agent: Agent, replay: Replay, options: HostDQNOptions, episodes: int | None, seed: int
    ) -> None:
        self.agent, self.replay, self.options = agent, replay, options
        self.episodes, self.seed = episodes, seed
        self.steps = 0
        self.rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))

    def __iter__(self) -> Iterator[Episode]:
        for number in itertools.count():
            if number == self.episodes or (trace := self.episode(number)) is None:
                return
            yield episode_of(trace)

    def episode(self, number: int) -> Trace | None:
        """None where the last step came before its end."""
        env, options = self.agent.env, self.options
        seed, rng = episode_seeds(self.seed, number)
        trace = Trace(number, rng)
        outcome = vector.reset(env, seed)
        trace.see(outcome)
        self.replay.begin(outcome.obs)
        while not (outcome.terminated or outcome.truncated):
            stopping.check()
            if self.episodes is None and self.steps >= options.steps:
                return None
            q = self.agent.q(self.replay.frames(np.array([self.replay.rows - 1])))
            decision = Decision(np.argmax(q, axis=1), q)
            epsilon = exploration(self.steps, options, min)
            action = trace.choose(decision, 0, None, epsilon, len(env.actions))
            outcome = vector.step(env, action)
            trace.add(outcome, keep_obs=True)
            self.replay.add(action, outcome.reward, outcome.terminated, outcome.obs)
            self.steps += 1
            due = self.steps % options.steps_per_update == 0
            if due and self.steps >= options.min_replay:
                rows = self.replay.draw(self.rng, options.batch_size)
                self.agent.learn(self.replay.pick(rows, options.gamma, options.clip_rewards))
        return trace


@dataclass(frozen=True)
class OnlineHostDQN:
    """Everything the agent experiences; its last policy lies beside the data.

    Without a number of episodes it ends after so many environment steps, where they are set, and
    the episode that runs then is left out.
    """

    options: HostDQNOptions = RLU_ATARI

    @contextmanager
    def opened(self, plan: RecordingPlan) -> Iterator[Source]:
        """The agent before its first step."""
        options = replace(self.options, steps=plan.steps or self.options.steps)
        episodes, total = plan.length(options.steps)
        env = envs.load(plan.env, plan.noise)
        if isinstance(env, Env):
            raise ValueError(f"{plan.env} runs inside JAX; record it without a preset")
        with closing(env):
            learning = start(env, options, episodes, plan.seed)
            about = provenance(plan, "online dqn", episodes, asdict(options))
            if (known := reference(plan.env)) is not None:
                about["reference"] = known
            played = (
                (episode, (learning.steps if episodes is None else number) / total)
                for number, episode in enumerate(learning, 1)
            )

            def finish(writer: StoreWriter, returns: Sequence[float]) -> None:
                learning.agent.policy().save(writer.path / EXPERT)
                diverged = int(learning.agent.state.diverged_at)
                writer.manifest["provenance"]["diverged_at"] = diverged

            yield Source(env.actions, about, episodes, grouped(played), finish, f"{total} steps")
