"""The options of formats: from keywords, flags or a TOML file to a format's Options."""

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

from rbve.registry import did_you_mean

# Types a field takes from a file, and their name, by the beginning of its type hint.
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "tuple": ((tuple,), "a list of names"),
    "int": ((int,), "a number"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "true or false"),
    "": ((str,), "one name in quotes"),
}


def choices(options: Any) -> dict[str, Any]:
    """Those of an Options that differ from its defaults."""
    return {
        field.name: value
        for field in dataclasses.fields(options)
        if (value := getattr(options, field.name)) != field.default
    }


def choose(name: str, kinds: Mapping[str, type], options: Any) -> Any:
    """The Options of the format `name`, None if it has none; `kinds` are those of all formats.

    `options` are such Options, choices by name, Options of another format, or None.
    """
    kind = kinds.get(name)
    if kind is not None and isinstance(options, kind):
        return options
    if options is not None and not isinstance(options, Mapping):
        options = choices(options)
    known = _names(kind)
    for choice in options or {}:
        if choice in known:
            continue
        if others := [other for other, each in kinds.items() if choice in _names(each)]:
            raise ValueError(
                f"'{choice}' is a choice for {', '.join(others)} data; {name} data says it itself, "
                "so leave it out"
            )
        raise _unknown(choice, known, name)
    values = {key: tuple(v) if isinstance(v, list) else v for key, v in (options or {}).items()}
    return None if kind is None else kind(**values)


def _names(kind: type | None) -> list[str]:
    return [] if kind is None else [field.name for field in dataclasses.fields(kind)]


def _unknown(choice: str, known: list[str], name: str) -> ValueError:
    listed = f"Known: {', '.join(known)}" if known else f"{name} data takes no options"
    return ValueError(f"unknown option {choice!r}.{did_you_mean(choice, known)} {listed}")


def from_toml(path: str | Path, kind: type) -> Any:
    """Options of a format from a file of `option = value` or `option = ["value", ...]` lines."""
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:  # not UTF-8, not TOML
        raise ValueError(f"{path}: not a TOML file ({error})") from None
    hints = {
        name: hint.__name__ if isinstance(hint, type) else str(hint)
        for name, hint in get_type_hints(kind).items()
    }
    values: dict[str, Any] = {}
    try:
        for name, value in content.items():
            if name not in hints:
                raise _unknown(name, list(hints), "this")
            values[name] = value
            if "tuple" in hints[name]:  # one name alone may stand for a list of one
                listed = value if isinstance(value, list) else [value]
                if all(type(each) in (str, int) for each in listed):
                    values[name] = tuple(map(str, listed))
            types, words = next(_TYPES[kind] for kind in _TYPES if hints[name].startswith(kind))
            if type(values[name]) not in types:
                raise ValueError(f"option {name!r} takes {words}; got {value!r}")
        return kind(**values)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
