"""What a JSON file has to hold, checked where it is read: a wrong field is one line that names it.

A schema is a type (float: any number, whole ones too), FINITE (such a number, but no NaN or
infinity), None for null, a tuple of alternatives, a list with the schema of every item, or a dict
with the schema of every field. A field whose name ends in "?" may be absent; "*" stands for every
field that is not named.
"""

import math
import os
import sys
import types
from typing import Any, Literal, Union, get_args, get_origin

_Schema = Any
LARGEST = 2**63 - 1  # of whole numbers; more digits are damage, and overflow where they are used
INT32 = 2**31 - 1  # steps and seeds are counted in 32 bits on the device
MAX_WIDTH = 65_536  # units per layer; more is a slip of the finger
FINITE = "finite"
_NAMES = {
    str: "text", bool: "true or false", int: "a whole number", float: "a number", list: "a list",
    dict: "an object", FINITE: "a finite number", None: "null",
}  # fmt: skip


def check(content: Any, schema: _Schema, where: str, field: str = "") -> None:
    """Raise ValueError, opened by `where`, unless the content is as the schema says."""
    alternatives = schema if isinstance(schema, tuple) else (schema,)
    fitting = [each for each in alternatives if fits(content, each)]
    if not fitting:
        kinds = (type(each) if isinstance(each, list | dict) else each for each in alternatives)
        kind = " or ".join(dict.fromkeys(_NAMES[each] for each in kinds))
        shown = repr(content) if len(repr(content)) <= 40 else f"{repr(content)[:40]}…"
        raise ValueError(f"{where}: {field or 'the content'} must be {kind}; got {shown}")
    schema = fitting[0]
    if isinstance(schema, list):
        for index, item in enumerate(content):
            check(item, schema[0], where, f"{field}[{index}]")
    elif isinstance(schema, dict):
        inside = f"{field}." if field else ""
        named = {name.removesuffix("?"): name for name in schema if name != "*"}
        for key, name in named.items():
            if key in content:
                check(content[key], schema[name], where, inside + key)
            elif not name.endswith("?"):
                raise ValueError(f"{where}: {inside}{key} is missing")
        for key in content.keys() - named if "*" in schema else ():
            check(content[key], schema["*"], where, inside + key)


def fits(content: Any, schema: _Schema) -> bool:
    """Whether it is of the kind, whatever is inside."""
    if schema is None:
        return content is None
    if schema is float:
        return type(content) is float or is_finite(content)
    if schema == FINITE:
        return is_finite(content)
    if schema is int:
        return type(content) is int and abs(content) <= LARGEST
    kind = schema if isinstance(schema, type) else type(schema)
    return type(content) is kind


def is_finite(value: Any) -> bool:
    # A whole number may have more digits than a float can count.
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


# Values of a specification's fields: brought to their type and range, or refused in one line.
UNSET: Any = None  # stands for a default that depends on other fields

_ZERO_IS_UNSET = ("batch_size", "n_step", "every", "target_period")  # 0 = the default
_LEAST_AND_MOST: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("steps", "every", "eval_episodes", "final_evaluations"), (1, INT32)),
    **dict.fromkeys(("batch_size", "n_step", "target_period"), (1, INT32)),
    **dict.fromkeys(("seed", "holdout_seed", "sequence", "burn_in"), (0, INT32)),
    **dict.fromkeys(("gamma", "eval_epsilon", "polyak"), (0, 1)),
    "memory": (0, MAX_WIDTH),
    "hidden": (1, MAX_WIDTH),
    "stack": (0, 64),
}


def check_value(name: str, hint: Any, value: Any) -> Any:
    """The value as the field's type; ValueError where it is none, or out of range."""
    if name in _ZERO_IS_UNSET and (value == 0 or value is UNSET):
        return UNSET
    if name == "env" and value == "none":
        return None
    if name in ("rescale", "holdout") and value is UNSET:
        return UNSET
    value = _converted(name, hint, value)
    if name in _LEAST_AND_MOST:
        low, high = _LEAST_AND_MOST[name]
        for each in value if isinstance(value, tuple) else (value,):
            if not low <= each <= high:
                raise ValueError(f"{name} must lie in [{low}, {high}]; got {each}")
    if name == "learning_rate" and not 0 < value < math.inf:
        raise ValueError(f"learning_rate must be positive; got {value}")
    if name == "holdout" and not 0 <= value < 1:
        raise ValueError(f"holdout must lie in [0, 1), 0 = no episode is held out; got {value}")
    return value


def _converted(name: str, hint: Any, value: Any) -> Any:
    """The value as the type; numbers of NumPy and whole floats (1e5) pass for what they are."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        inner = [each for each in get_args(hint) if each is not type(None)]
        return None if value is None else _converted(name, inner[0], value)
    if origin is Literal:
        if value not in get_args(hint):
            known = ", ".join(map(str, get_args(hint)))
            raise ValueError(f"{name} must be one of {known}; got {value!r}")
        return value
    if origin is tuple:
        if isinstance(value, str) or not hasattr(value, "__iter__"):
            raise ValueError(f"{name} must be a list; got {value!r}")
        return tuple(_converted(name, get_args(hint)[0], each) for each in value)
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
        raise ValueError(f"{name} must be {_NAMES[hint]}; got {value!r}")
    return plain
