"""Settings of an algorithm by name: brought to their types, defaults filled in."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args, get_origin, get_type_hints

from rbve.algorithms import Algorithm
from rbve.registry import did_you_mean
from rbve.schema import INT32

_POSITIVE = {"beta", "cap", "kappa", "temperature"}  # settings that divide or bound
_SHARES = {"expectile"}  # between 0 and 1


def complete_settings(
    algorithm: Algorithm, settings: Mapping[str, Any], fields: Sequence[str] = ()
) -> dict[str, Any]:
    """All of the algorithm's numbers (Config) and choices (Options), by name.

    `fields` are names that a setting may be a slip of, beside those of settings.
    """
    numbers = dict(algorithm.config()._asdict())
    choices = dataclasses.asdict(algorithm.options())
    for name, value in settings.items():
        if name in numbers:
            numbers[name] = _number(name, value)
        elif name in choices:
            choices[name] = _as_type_of(choices[name], name, value)
            _check_choice(get_type_hints(algorithm.options)[name], name, choices[name])
        else:
            known = [*numbers, *choices]
            raise ValueError(
                f"{algorithm.name} has no setting {name!r}.{did_you_mean(name, [*known, *fields])} "
                f"Known: {', '.join(known) or 'none'}"
            )
    return {**numbers, **choices}


def _check_choice(hint: Any, name: str, value: Any) -> None:
    if get_origin(hint) is Literal and value not in get_args(hint):
        known = ", ".join(map(str, get_args(hint)))
        raise ValueError(f"setting {name!r} takes one of {known}; got {value!r}")


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"setting {name!r} takes a number; got {value!r}") from None
    if not math.isfinite(number) or (name in _POSITIVE and number <= 0):
        kind = "a positive number" if name in _POSITIVE else "a finite number"
        raise ValueError(f"setting {name!r} takes {kind}; got {value!r}")
    if name in _SHARES and not 0 < number < 1:
        raise ValueError(f"setting {name!r} takes a number between 0 and 1; got {value!r}")
    return number


def _as_type_of(default: Any, name: str, value: Any) -> Any:
    if isinstance(default, bool):
        known = {"true": True, "false": False, "1": True, "0": False}
        if str(value).lower() not in known:
            raise ValueError(f"setting {name!r} takes true or false; got {value!r}")
        return known[str(value).lower()]
    if isinstance(default, int):
        number = _number(name, value)
        if number != int(number) or not 1 <= number <= INT32:
            raise ValueError(f"setting {name!r} takes a whole number from 1 on; got {value!r}")
        return int(number)
    return type(default)(value)
