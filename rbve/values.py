"""Values of a specification's fields: brought to their type and range, or refused in one line."""

import math
import os
import types
from typing import Any, Literal, Union, get_args, get_origin

from rbve.schema import INT32, MAX_WIDTH

UNSET: Any = None  # stands for a default that depends on other fields

ZERO_IS_UNSET = ("batch_size", "n_step", "every", "target_period")  # 0 = the default
LEAST_AND_MOST: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("steps", "every", "eval_episodes", "final_evaluations"), (1, INT32)),
    **dict.fromkeys(("batch_size", "n_step", "target_period"), (1, INT32)),
    **dict.fromkeys(("seed", "sequence", "burn_in"), (0, INT32)),
    **dict.fromkeys(("gamma", "eval_epsilon", "polyak"), (0, 1)),
    "memory": (0, MAX_WIDTH),
    "hidden": (1, MAX_WIDTH),
    "stack": (0, 64),
}
KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def check_value(name: str, hint: Any, value: Any) -> Any:
    """The value as the field's type; ValueError where it is none, or out of range."""
    if name in ZERO_IS_UNSET and (value == 0 or value is UNSET):
        return UNSET
    if name == "env" and value == "none":
        return None
    if name == "rescale" and value is UNSET:
        return UNSET
    value = converted(name, hint, value)
    if name in LEAST_AND_MOST:
        low, high = LEAST_AND_MOST[name]
        for each in value if isinstance(value, tuple) else (value,):
            if not low <= each <= high:
                raise ValueError(f"{name} must lie in [{low}, {high}]; got {each}")
    if name == "learning_rate" and not 0 < value < math.inf:
        raise ValueError(f"learning_rate must be positive; got {value}")
    return value


def converted(name: str, hint: Any, value: Any) -> Any:
    """The value as the type; numbers of NumPy and whole floats (1e5) pass for what they are."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        inner = [each for each in get_args(hint) if each is not type(None)]
        return None if value is None else converted(name, inner[0], value)
    if origin is Literal:
        if value not in get_args(hint):
            known = ", ".join(map(str, get_args(hint)))
            raise ValueError(f"{name} must be one of {known}; got {value!r}")
        return value
    if origin is tuple:
        if isinstance(value, str) or not hasattr(value, "__iter__"):
            raise ValueError(f"{name} must be a list; got {value!r}")
        return tuple(converted(name, get_args(hint)[0], each) for each in value)
    if origin is not None:  # a mapping: settings, which their algorithm checks
        return dict(value)
    plain = value.item() if hasattr(value, "item") else value
    if hint is float and type(plain) is int:
        plain = float(plain)
    if hint is int and type(plain) is float and plain.is_integer():
        plain = int(plain)
    if hint is str and isinstance(plain, os.PathLike):
        plain = os.fspath(plain)
    if type(plain) is not hint:
        raise ValueError(f"{name} must be {KINDS[hint]}; got {value!r}")
    return plain
