"""The paper's online DQN for Atari, outside JAX, while it learns: preset="rlu-atari".

Single DQN with uniform replay: the update is the library's own (rbve/training/update.py) on batches
drawn from a ring of frames.
"""

import itertools
import math
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rbve import envs, stopping
from rbve.behaviours.kinds.online_dqn import exploration
from rbve.behaviours.record import EXPERT, Asked, RecordingPlan, Source, grouped, provenance
from rbve.behaviours.rollouts import episode_of
from rbve.data.dataset import NO_ACTION, Episode
from rbve.data.formats.native import StoreWriter
from rbve.envs.atari import reference
from rbve.envs.base import Env, HostEnv
from rbve.evaluation import vector
from rbve.policy import Policy
from rbve.schema import INT32
from rbve.spec import Spec
from rbve.training.batches import Picked
from rbve.training.batches.transitions import NUMBERS, TransitionItems
from rbve.training.update import Member, make_program, recorder_key

ORDER, LEARNS = 20, True
PRESETS = {"rlu-atari": "online"}
IN_MEMORY = 1 << 31  # bytes of frames; more wait in a file, if the disk has room for it


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
        return Spec.of(algorithm="dqn", steps=INT32, holdout=0.0, **own).resolved()


RLU_ATARI = HostDQNOptions()


class Replay:
    """A ring of steps: every frame held once, joined when drawn.

    Rows lie as in a dataset: T + 1 an episode, the last with the final observation and no action.
    When the ring is full the oldest rows make room, and a row is drawn only while all it needs is
    there.
    """

    def __init__(
        self,
        capacity: int,
        obs_shape: tuple[int, ...],
        dtype: type | np.dtype,
        stack: int,
        on_disk: bool | None = None,  # None: by their size
    ) -> None:
        if capacity < stack + 2:
            raise ValueError(f"a replay of {capacity} rows is too small; give at least {stack + 2}")
        self.capacity, self.stack = capacity, stack
        shape = (capacity, *obs_shape)
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if on_disk is None:
            on_disk = size > IN_MEMORY and shutil.disk_usage(tempfile.gettempdir()).free > size
        if on_disk:
            # The file has no name: it goes when the map does.
            with tempfile.TemporaryFile() as file:
                file.truncate(size)
                self.obs: np.ndarray = np.memmap(file, dtype, "r+", shape=shape)
        else:
            self.obs = np.zeros(shape, dtype)
        self.action = np.full(capacity, NO_ACTION, np.int32)
        self.reward = np.zeros(capacity, np.float32)
        self.terminated = np.zeros(capacity, np.bool_)
        self.age = np.zeros(capacity, np.int64)  # steps since the episode began
        self.rows = 0  # written so far, those made room for included

    def add(self, action: int, reward: float, terminated: bool, obs: np.ndarray) -> None:
        """A step from the last row, and the observation it led to."""
        here = (self.rows - 1) % self.capacity
        self.action[here], self.reward[here], self.terminated[here] = action, reward, terminated
        self.begin(obs, age=int(self.age[here]) + 1)

    def begin(self, obs: np.ndarray, age: int = 0) -> None:
        """A row without an action: an episode's first, or what its last step led to."""
        here = self.rows % self.capacity
        self.obs[here], self.age[here] = obs, age
        self.action[here], self.reward[here], self.terminated[here] = NO_ACTION, 0.0, False
        self.rows += 1

    def drawable(self, row: np.ndarray) -> np.ndarray:
        """(B,) bool: a step was taken from the row and no frame it joins has made room."""
        place = row % self.capacity
        oldest = row - np.minimum(self.age[place], self.stack - 1)
        return (self.action[place] != NO_ACTION) & (oldest >= max(self.rows - self.capacity, 0))

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Rows (count,), all drawable ones alike."""
        drawn = np.zeros(0, np.int64)
        while len(drawn) < count:
            tried = rng.integers(max(self.rows - self.capacity, 0), self.rows, size=2 * count)
            drawn = np.concatenate([drawn, tried[self.drawable(tried)]])
        return drawn[:count]

    def pick(self, row: np.ndarray, gamma: float, clip: bool) -> Picked:
        """Transitions as an update takes them; a truncated step goes on from its final frame.

        An online agent has no use for the next action nor for V̂.
        """
        place = row % self.capacity
        reward = self.reward[place]
        numbers = NUMBERS.pack(
            action=self.action[place],
            reward=np.clip(reward, -1, 1) if clip else reward,
            discount=np.where(self.terminated[place], 0.0, gamma),
        )
        frames = np.stack([self.frames(row), self.frames(row + 1)], axis=1)
        return Picked(frames=frames, numbers=numbers, legal=None)

    def frames(self, row: np.ndarray) -> np.ndarray:
        """(B, stack, ...): the row's own last, zeros before its episode began."""
        back = np.arange(self.stack - 1, -1, -1)
        missing = back > self.age[row % self.capacity][:, None]
        joined = self.obs[(row[:, None] - np.where(missing, 0, back)) % self.capacity]
        joined[missing] = 0
        return joined


class Learner:
    """Acts and learns in turn; iterating gives episodes as they end.

    It ends after so many episodes or, of None, after `options.steps` environment steps.
    """

    def __init__(
        self, env: HostEnv, options: HostDQNOptions, episodes: int | None, seed: int
    ) -> None:
        first = env.reset(vector.episode_seeds(seed, 0)[0])
        if env.legal is not None:
            raise ValueError(
                f"{env.name} masks actions, which this online agent does not learn with"
            )
        self.env, self.options, self.episodes, self.seed = env, options, episodes, seed
        self.steps = self.updates = 0
        self.rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
        self.replay = Replay(options.replay, env.obs_shape, first.dtype, options.stack)
        pixels = first.dtype == np.uint8
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

    def __iter__(self) -> Iterator[Episode]:
        for number in itertools.count():
            if number == self.episodes or (trace := self.episode(number)) is None:
                return
            yield episode_of(trace)

    def episode(self, number: int) -> vector.Trace | None:
        """None where the last step came before its end."""
        options, replay = self.options, self.replay
        seed, rng = vector.episode_seeds(self.seed, number)
        trace = vector.Trace(number, rng)
        outcome = vector.reset(self.env, seed)
        trace.see(outcome)
        replay.begin(outcome.obs)
        while not (outcome.terminated or outcome.truncated):
            stopping.check()
            if self.episodes is None and self.steps >= options.steps:
                return None
            q = np.asarray(self._q(self.state.params, replay.frames(np.array([replay.rows - 1]))))
            decision = vector.Decision(np.argmax(q, axis=1), q)
            epsilon = exploration(self.steps, options, min)
            action = trace.choose(decision, 0, None, epsilon, len(self.env.actions))
            outcome = vector.step(self.env, action)
            trace.add(outcome, keep_obs=True)
            replay.add(action, outcome.reward, outcome.terminated, outcome.obs)
            self.steps += 1
            due = self.steps % options.steps_per_update == 0
            if due and self.steps >= options.min_replay:
                rows = replay.draw(self.rng, options.batch_size)
                self.learn(replay.pick(rows, options.gamma, options.clip_rewards))
        return trace

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


@dataclass(frozen=True)
class OnlineHostDQN:
    """Everything the agent experiences; its last policy lies beside the data.

    Without a number of episodes it ends after so many environment steps, where they are set, and
    the episode that runs then is left out.
    """

    options: HostDQNOptions = RLU_ATARI

    @contextmanager
    def opened(self, plan: RecordingPlan) -> Iterator[Source]:
        options = replace(self.options, steps=plan.steps or self.options.steps)
        episodes, total = plan.length(options.steps)
        env = envs.load(plan.env, plan.noise)
        if isinstance(env, Env):
            raise ValueError(f"{plan.env} runs inside JAX; record it without a preset")
        with closing(env):
            learner = Learner(env, options, episodes, plan.seed)
            about = provenance(plan, "online dqn", episodes, asdict(options))
            if (known := reference(plan.env)) is not None:
                about["reference"] = known
            played = (
                (episode, (learner.steps if episodes is None else number) / total)
                for number, episode in enumerate(learner, 1)
            )

            def finish(writer: StoreWriter, returns: Sequence[float]) -> None:
                learner.policy().save(writer.path / EXPERT)
                writer.manifest["provenance"]["diverged_at"] = int(learner.state.diverged_at)

            yield Source(env.actions, about, episodes, grouped(played), finish, f"{total} steps")


def claim(asked: Asked) -> OnlineHostDQN | None:
    """By its preset."""
    return OnlineHostDQN() if asked.preset in PRESETS else None
