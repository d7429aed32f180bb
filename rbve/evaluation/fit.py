"""Whether a policy fits an environment, how many frames it joins, and what play is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from rbve.data.features import Features
from rbve.envs.base import Env, categories
from rbve.training.spec import INT32


def check_play(episodes: int, epsilon: float, seed: int) -> None:
    """Numbers of an evaluation, as a user gave them."""
    if episodes < 1:
        raise ValueError(f"episodes must be at least 1; got {episodes}")
    if not 0 <= epsilon <= 1:
        raise ValueError(f"epsilon must lie in [0, 1]; got {epsilon}")
    if not 0 <= seed <= INT32:
        raise ValueError(f"seed must lie in [0, {INT32}]; got {seed}")


def joined_shape(shape: tuple[int, ...], stack: int) -> tuple[int, ...]:
    """Of `stack` observations joined along their last axis."""
    if stack == 1:
        return shape
    *outer, last = shape or (1,)
    return (*outer, last * stack)


def frames_in(shape: tuple[int, ...], wanted: tuple[int, ...], stack: int) -> int | None:
    """How many observations of `shape` make one of the shape `wanted`; None where none do.

    Who learned from frames that the data held already joined (RL Unplugged's tuples) says nothing
    of stacking: for pictures the number of channels tells.
    """
    if joined_shape(shape, stack) == wanted:
        return stack
    if len(wanted) == len(shape) == 3 and wanted[-1] % shape[-1] == 0:
        stack = wanted[-1] // shape[-1]
    return stack if joined_shape(shape, stack) == wanted else None


def category_codes(env: Any, features: Features | None) -> np.ndarray | None:
    """What the data holds for each value of an environment that shows one of a set of values.

    The environment shows it one-hot, the data as the index of a category. None where either does
    not; ValueError where a value of the environment is no category of the data.
    """
    values = categories(env)
    if not values or features is None:
        return None
    column, *others = features.columns
    if others or column.kind != "category":
        return None
    missing = [value for value in values if value not in column.categories]
    if missing:
        raise ValueError(
            f"{env.name} shows {missing[0]!r} and {len(missing) - 1} more of {len(values)} values, "
            f"which the column {column.name!r} of the data never does"
        )
    return np.array([column.categories.index(value) for value in values])


def frames_joined(env: Any, policy: Any) -> int:
    """How many observations of `env` make one of the policy's; ValueError where they do not fit."""
    seen, wanted = tuple(env.obs_shape), tuple(policy.obs_shape)
    told = int(policy.info.get("job", {}).get("spec", {}).get("stack", 1))
    coded = category_codes(env, policy.features) is not None
    stack = 1 if coded else frames_in(seen, wanted, told)
    if stack is None or len(env.actions) != len(policy.actions):
        raise ValueError(
            f"{env.name} has observations {seen} and {len(env.actions)} actions; the policy takes "
            f"{wanted} and has {len(policy.actions)}"
        )
    if stack > 1 and isinstance(env, Env):
        raise ValueError(
            f"the policy joins {stack} observations, which {env.name} inside JAX does not do; "
            "train with --stack 1"
        )
    return stack
