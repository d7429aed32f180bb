"""Environments by name: small ones written in JAX, and adapters to outside packages.

A file in this folder is an environment, or an adapter to many: its name is the file's name and its
`make` builds it. An adapter has an EXAMPLE of what follows the colon of a name, `atari:Pong`.
Nothing here imports JAX until an environment is loaded.
"""

import difflib
import importlib
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rbve import registry

if TYPE_CHECKING:
    from rbve.envs.base import Env, HostEnv

_FOLDER = Path(__file__).parent


# By name, with an example; read from the text, as their packages may not be installed.
_TEXTS = {name: (_FOLDER / f"{name}.py").read_text("utf-8") for name in registry.names(_FOLDER)}
_EXAMPLES = {name: re.search('^EXAMPLE = "(.+)"$', text, re.M) for name, text in _TEXTS.items()}
ADAPTERS = {name: example[1] for name, example in _EXAMPLES.items() if example}


def names() -> list[str]:
    """The environments written in JAX."""
    files = {name for folder in __path__ for name in registry.names(Path(folder))}
    return sorted(files - {"base", *ADAPTERS})


def load(name: str, noise: float = 0.0) -> "Env | HostEnv":
    """Makes an environment: 'catch', 'memory_len:20', 'collect:few', 'gymnasium:CartPole-v1'.

    With probability `noise` the environment executes a uniformly random action.
    """
    check_known(name)
    kind, _, option = name.partition(":")

    from rbve.envs import base

    base.check_noise(noise)
    make = importlib.import_module(f"{__name__}.{kind}").make
    if kind not in ADAPTERS:
        return base.with_action_noise(make(**_options(name, make)), noise)
    if not option:
        raise ValueError(f"'{name}' lacks what to load, e.g. '{kind}:{ADAPTERS[kind]}'")
    return base.with_action_noise(make(option), noise)


def check_known(name: str) -> None:
    """ValueError where no file here makes such an environment; nothing is loaded."""
    if wrong := _unknown(name):
        raise ValueError(wrong)


class NotHere(ValueError):
    """A file names an environment in due form, and it cannot be had here as it was there."""


def named_in_file(name: Any, file: str | Path, settings: Any = None) -> str | None:
    """The name of an environment that a file gives, checked before it is loaded.

    Gymnasium imports the module in 'gymnasium:MODULE:ID'. No file may ask for that, so from files
    only ids pass that are registered already. `settings` are those the file says it was made with.
    """
    if name is None:
        return None
    if not isinstance(name, str):
        raise ValueError(
            f"{file}: the name of its environment is {str(name)[:80]}, which is no text; name the "
            "environment yourself with --env"
        )
    if wrong := _unknown(name[:80]):
        raise ValueError(f"{file}: {wrong}; name one yourself with --env")
    kind, _, option = name.partition(":")
    if kind == "gymnasium":
        if ":" in option:
            raise ValueError(
                f"{file}: names the environment {name[:80]!r}, and no module is imported because a "
                "file names it; if you trust that module, name the environment yourself with --env"
            )
        from rbve.envs import gymnasium

        if reason := gymnasium.why_not(option, settings):
            raise NotHere(f"{file}: its environment is {name[:80]!r}, {reason}")
    return name


def _options(name: str, make: Any) -> dict[str, Any]:
    """What follows the colon, or the default, is the first parameter of the file's `make`.

    It is a word where the parameter's default is one, else a whole number.
    """
    kind, colon, option = name.partition(":")
    parameters = list(inspect.signature(make).parameters.values())
    if not colon:
        return {
            each.name: each.default for each in parameters[:1] if each.default is not each.empty
        }
    if not parameters:
        raise ValueError(f"'{name}': {kind} takes no option; write '{kind}'")
    first = parameters[0]
    try:
        return {first.name: option if isinstance(first.default, str) else int(option)}
    except ValueError:
        raise ValueError(
            f"'{name}': {first.name} has to be a whole number, e.g. '{kind}:20'"
        ) from None


def _unknown(name: str) -> str:
    """What is wrong with the name of an environment that no file here makes."""
    known, kind, hint = names(), name.partition(":")[0], ""
    if kind in (*known, *ADAPTERS):
        return ""
    for near in difflib.get_close_matches(kind, [*known, *ADAPTERS], n=1):
        option = name.partition(":")[2] or ADAPTERS.get(near, "")
        hint = f" Did you mean '{near}:{option}'?" if option else f" Did you mean '{near}'?"
    outside = ", ".join(f"{adapter}:<id>" for adapter in ADAPTERS)
    return f"unknown environment '{name}'.{hint} Known: {', '.join(known)}, {outside}"
