"""Whether a policy, or one trained on a dataset, fits an environment, and how frames stack."""

from typing import Any, NamedTuple

import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.features import Features
from rbve.data.inputs import input_shape
from rbve.envs._host import categories
from rbve.envs.base import Env
from rbve.policy import Policy


class Interface(NamedTuple):
    """What a policy takes and gives, as far as it decides whether it fits an environment."""

    obs_shape: tuple[int, ...]
    actions: int
    stack: int  # observations joined, as training says
    features: Features | None
    masked: bool
    dataset: Dataset | None = None  # where nothing is trained yet

    @staticmethod
    def of_policy(policy: Policy) -> "Interface":
        shape, stack = tuple(policy.obs_shape), policy.trained.stack
        return Interface(shape, len(policy.actions), stack, policy.features, policy.masked)

    @staticmethod
    def of_data(data: Dataset, stack: int) -> "Interface":
        """Of policies that will be trained on this data."""
        shape = data.obs_shape if data.features is not None else input_shape(data, stack)
        masked = data.legal is not None
        return Interface(tuple(shape), data.num_actions, stack, data.features, masked, data)


def joined_shape(shape: tuple[int, ...], stack: int) -> tuple[int, ...]:
    """Of `stack` observations joined along their last axis."""
    if stack == 1:
        return shape
    *outer, last = shape or (1,)
    return (*outer, last * stack)


def frames_in(shape: tuple[int, ...], joined: tuple[int, ...], stack: int) -> int | None:
    """How many observations of `shape` make one of the shape `joined`; None where none do.

    Data may hold frames joined already (RL Unplugged's tuples), and then training knows nothing of
    stacking: for images the number of channels tells.
    """
    if joined_shape(shape, stack) == joined:
        return stack
    if len(joined) == len(shape) == 3 and joined[-1] % shape[-1] == 0:
        stack = joined[-1] // shape[-1]
    return stack if joined_shape(shape, stack) == joined else None


def category_codes(env: Any, features: Features | None) -> np.ndarray | None:
    """The data's code of each value of an environment that shows one of a set of values.

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


def check_fit(env: Any, needs: Interface) -> int:
    """How many observations of `env` make one of the policy's. ValueError where observations or
    actions do not fit, or have to be stacked inside JAX."""
    shape, actions = tuple(env.obs_shape), len(env.actions)
    coded = category_codes(env, needs.features) is not None
    stack = 1 if coded else frames_in(shape, needs.obs_shape, needs.stack)
    if stack is None or actions != needs.actions:
        who, origin, remedy = "the policy takes", None, ""
        if needs.dataset is not None:
            who, origin = "the dataset has", needs.dataset.provenance.get("format")
        # Data from elsewhere may show fewer actions than there are.
        if stack is not None and origin is not None and needs.actions <= actions:
            every = str(actions) if origin == "rlu" else "and all their names"
            remedy = f"; if it shows only some of them, convert again with --actions {every}"
        raise ValueError(
            f"{env.name} has observations {shape} and {actions} actions; {who} {needs.obs_shape} "
            f"and {needs.actions}{remedy}"
        )
    if stack > 1 and isinstance(env, Env):
        raise ValueError(
            f"the policy joins {stack} observations, which {env.name} inside JAX does not do; "
            "train with --stack 1"
        )
    return stack
