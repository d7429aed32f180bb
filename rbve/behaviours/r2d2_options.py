"""What R2D2 is set to while it is recorded: sizes, exploration, what a sequence counts."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from rbve.types import Array

_EPSILON, _POWERS = 0.4, 8  # random actions: .4 of the first actor, .4⁸ of the last
_LARGEST_SHARE, _MEAN_SHARE = 0.9, 0.1  # of a sequence's largest and mean error in its priority


@dataclass(frozen=True)
class R2D2Options:
    """R2D2, small enough for symbolic views on a CPU."""

    memory: int = 64  # LSTM units
    hidden: tuple[int, ...] = ()  # of the torso; none = its own
    actors: int = 16
    chunk: int = 20  # steps between the starts of sequences
    burn_in: int = 1  # chunks
    train: int = 2  # chunks
    batch_size: int = 32  # sequences
    learning_rate: float = 1e-3
    gamma: float = 0.997
    n_step: int = 5
    target_period: int = 100  # learner steps
    steps_per_update: int = 32  # environment steps per learner step
    min_replay: int = 5_000  # environment steps before learning starts
    replay: int = 100_000  # environment steps kept to learn from
    priority_exponent: float = 0.9
    importance_exponent: float = 0.6
    explore: int = 0  # environment steps in which ε falls from 1 to the ladder; 0 = it starts there
    steps: int = 200_000  # environment steps of a recording

    @property
    def rows(self) -> int:  # of a sequence
        return (self.burn_in + self.train) * self.chunk

    @property
    def chunks(self) -> int:  # kept per actor
        return max(self.replay // (self.actors * self.chunk), 2 * (self.burn_in + self.train))

    @property
    def updates(self) -> int:  # learner steps after every chunk
        return max(1, round(self.actors * self.chunk / self.steps_per_update))


# The paper's table for DeepMind Lab, the preset rlu-dmlab. actors,
# steps_per_update and learning_rate it does not say, and steps are 50 to 200 million: our choices.
PAPER = R2D2Options(
    memory=512, actors=256, chunk=40, learning_rate=1e-4, target_period=400, min_replay=600_000,
    replay=12_000_000, steps=100_000_000,
)  # fmt: skip


def default_options(env_name: str) -> R2D2Options:
    """What the agent is set to where nobody says."""
    if env_name.startswith("memory_len"):
        return R2D2Options(memory=32, chunk=12, steps=50_000, min_replay=2_000)
    if env_name.startswith("xminigrid"):
        # Nothing pays but the goal, some ten steps away: look about first, and discount more.
        # Agents had not come half way in 300,000 steps of FourRooms and 200,000 of MemoryS8.
        far = "FourRooms" in env_name
        steps = 900_000 if far else 400_000 if "Memory" in env_name else 200_000
        return R2D2Options(
            gamma=0.98 if far else 0.97, explore=100_000, min_replay=20_000, replay=500_000,
            steps_per_update=16, learning_rate=5e-4, steps=steps,
        )  # fmt: skip
    return R2D2Options()


def shortened(options: R2D2Options, steps: int) -> R2D2Options:
    """For a recording of so many steps: in a shorter one it starts to learn sooner, too."""
    share = min(1.0, steps / options.steps)
    explore, min_replay = round(share * options.explore), round(share * options.min_replay)
    return replace(options, steps=steps, explore=explore, min_replay=min_replay)


def ladder(actors: int) -> np.ndarray:
    """Shares of random actions, from .4 to .4⁸."""
    place = np.arange(actors) / max(actors - 1, 1)
    return _EPSILON ** (1 + (_POWERS - 1) * place)


def shares(options: R2D2Options, lived: Array) -> Array:
    """Those of the actors after so many environment steps."""
    rungs = jnp.asarray(ladder(options.actors))
    if not options.explore:
        return rungs
    done = jnp.minimum(lived / options.explore, 1.0)
    return rungs + (1.0 - done) * (1.0 - rungs)


def describe(options: R2D2Options) -> dict[str, Any]:
    """What provenance says of the agent."""
    priority = {"largest": _LARGEST_SHARE, "mean": _MEAN_SHARE}
    return asdict(options) | {"epsilon": ladder(options.actors).tolist(), "priority": priority}


def check(options: R2D2Options) -> None:
    if options.burn_in < 0 or options.train < 1 or options.burn_in + options.train < 2:
        raise ValueError(
            "a sequence consists of two chunks or more, one of them trained on; got burn_in "
            f"{options.burn_in} and train {options.train}"
        )
    trained = options.train * options.chunk
    if options.n_step >= trained:
        raise ValueError(
            f"windows of {options.n_step} steps do not fit into the {trained} steps of a sequence "
            "that are trained on; give a smaller n_step, or a larger chunk or train"
        )


def mixed(error: Array, valid: Array) -> Array:
    """What sequences' errors (T, B) count, by the steps that are valid; others hold zeros."""
    mean = jnp.sum(error, axis=0) / jnp.maximum(jnp.sum(valid, axis=0), 1.0)
    return _LARGEST_SHARE * jnp.max(error, axis=0) + _MEAN_SHARE * mean
