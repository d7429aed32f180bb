"""The paper's online DQN for Atari, in an environment outside JAX, recorded while it learns.

Single DQN with uniform replay: the update is the library's own (rbve/training/update.py) on batches
drawn from a ring of frames.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rbve import envs, stopping
from rbve.behaviours.online_dqn import exploration
from rbve.behaviours.record import (
    EXPERT,
    NO_SHARE,
    SECONDS_PER_FLUSH,
    OnProgress,
    Progress,
    need_episode,
    provenance,
)
from rbve.behaviours.replay import Replay
from rbve.behaviours.rollouts import episode_of
from rbve.data.dataset import Episode, sample_episodes
from rbve.data.formats.native import recording
from rbve.envs._atari_games import reference
from rbve.envs.base import Env, HostEnv
from rbve.evaluation import vector
from rbve.evaluation.vector import Decision, Trace, episode_seeds
from rbve.policy import Policy
from rbve.schema import INT32
from rbve.spec import Spec
from rbve.training.batches.transitions import PickedTransitions, TransitionItems
from rbve.training.update import Member, make_program, recorder_key


@dataclass(frozen=True)
class Options:
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
        return Spec.of(
            algorithm="dqn",
            double=self.double,
            torso=self.torso,
            hidden=self.hidden,
            stack=self.stack,
            batch_size=self.batch_size,
            td=self.td,
            gamma=self.gamma,
            clip_rewards=self.clip_rewards,
            steps=INT32,
        ).resolved()


RLU_ATARI = Options()


class Agent:
    """Weights, and the two things done with them."""

    def __init__(self, env: HostEnv, pixels: bool, options: Options, seed: int) -> None:
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

    def learn(self, picked: PickedTransitions) -> None:
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
            info={
                "from": "the online agent at the end of its recording",
                "job": spec.to_json(),
            },
        )


def experience(env: HostEnv, options: Options, episodes: int | None, seed: int) -> Learning:
    """An agent that is about to live through so many episodes, or `options.steps` steps."""
    first = env.reset(episode_seeds(seed, 0)[0])
    if env.legal is not None:
        raise ValueError(f"{env.name} masks actions, which this online agent does not learn with")
    agent = Agent(env, first.dtype == np.uint8, options, seed)
    replay = Replay(options.replay, env.obs_shape, first.dtype, options.stack)
    return Learning(agent, replay, options, episodes, seed)


class Learning:
    """Acting and learning in turn; iterating gives episodes as they end."""

    def __init__(
        self, agent: Agent, replay: Replay, options: Options, episodes: int | None, seed: int
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
        env = self.agent.env
        seed, rng = episode_seeds(self.seed, number)
        trace = Trace(number, rng)
        outcome = vector.reset(env, seed)
        trace.see(outcome)
        self.replay.begin(outcome.obs)
        while not (outcome.terminated or outcome.truncated):
            stopping.check()
            if self.episodes is None and self.steps >= self.options.steps:
                return None
            q = self.agent.q(self.replay.frames(np.array([self.replay.rows - 1])))
            decision = Decision(np.argmax(q, axis=1), q)
            epsilon = exploration(self.steps, self.options, min)
            action = trace.choose(decision, 0, None, epsilon, len(env.actions))
            outcome = vector.step(env, action)
            trace.add(outcome, keep_obs=True)
            self.replay.add(action, outcome.reward, outcome.terminated, outcome.obs)
            self.steps += 1
            if self.steps >= self.options.min_replay and not (
                self.steps % self.options.steps_per_update
            ):
                self.learn()
        return trace

    def learn(self) -> None:
        rows = self.replay.draw(self.rng, self.options.batch_size)
        self.agent.learn(self.replay.pick(rows, self.options.gamma, self.options.clip_rewards))


def record_online_host(
    env_name: str,
    out: Path,
    episodes: int | None,
    noise: float = 0.0,
    seed: int = 0,
    keep: float = 1.0,
    overwrite: bool = False,
    options: Options = RLU_ATARI,
    on_progress: OnProgress = lambda progress: None,
) -> None:
    """Everything the agent experiences; its last policy lies beside the data.

    Without a number of episodes it ends after `options.steps` environment steps, and the episode
    that runs then is left out.
    """
    total = options.steps if episodes is None else episodes
    if total < 1:
        raise ValueError(f"episodes or steps must be at least 1; got {total}")
    if episodes is None and keep != 1:
        raise ValueError(NO_SHARE)
    env = envs.load(env_name, noise)
    if isinstance(env, Env):
        raise ValueError(f"{env_name} runs inside JAX; record it without a preset")
    chosen = None if episodes is None else sample_episodes(episodes, keep, seed)
    learning = experience(env, options, episodes, seed)
    about = provenance(env_name, "online dqn", noise, seed, episodes, keep, options)
    if (known := reference(env_name)) is not None:
        about["reference"] = known
    waiting: list[Episode] = []
    flushed = time.monotonic()
    with recording(out, env.actions, about, overwrite, EXPERT) as writer:
        for number, episode in enumerate(learning):
            waiting += [episode] if chosen is None or chosen[number] else []
            if time.monotonic() - flushed > SECONDS_PER_FLUSH:
                writer.append(waiting)
                waiting, flushed = [], time.monotonic()
            done = number + 1
            share = (learning.steps if episodes is None else done) / total
            on_progress(Progress(done, float(episode.reward.sum()), share))
        writer.append(waiting)
        need_episode(writer, f"{total} steps")
        learning.agent.policy().save(writer.path / EXPERT)
        writer.manifest["provenance"]["diverged_at"] = int(learning.agent.state.diverged_at)
        writer.finish()
    env.close()
