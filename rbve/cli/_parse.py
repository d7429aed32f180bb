"""The commands: one file each in this folder, with a function `command`.

`rbve --help` reads their docstrings without importing them; a command is imported once it is chosen
and JAX once there is work to do.
"""

import functools
import importlib
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

import tyro

from rbve import registry
from rbve.cli import _console

_EXPLANATION = 9 * " "  # indents the words on an option in a complaint of the parser
FOLDER = Path(__file__).parent


def names() -> list[str]:
    return registry.names(FOLDER)


def parse(words: list[str]) -> Any:
    """The chosen command with its arguments, not yet called; the others are there to be listed."""
    commands: dict[str, Any] = {name: _listed(name) for name in names()}
    if (name := " ".join(words[:1])) in commands:
        module = importlib.import_module(f"rbve.cli.{name}")

        @functools.wraps(module.command)
        def held(*args: Any, **kwargs: Any) -> Any:
            return functools.partial(module.command, *args, **kwargs)

        # Flags that depend on the words are a class of the command's own.
        commands[name] = module.parser(words) if hasattr(module, "parser") else held
    return tyro.extras.subcommand_cli_from_dict(
        commands,
        prog="rbve",
        description="Learn decisions from logged data when actions are discrete.",
        args=words,
    )


def _listed(name: str) -> Any:
    def command() -> None: ...

    command.__doc__ = registry.summary(FOLDER, name, "command") + "."
    return command


@contextmanager
def one_line_errors() -> Iterator[None]:
    """The parser's boxed complaint as one line; help passes through."""
    caught = io.StringIO()
    try:
        with redirect_stderr(caught):
            yield
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        _console.fail(_unboxed(caught.getvalue()))


def _unboxed(complaint: str) -> str:
    """Its sections in a row, without the title, and without what explains an option at length."""
    sections: list[dict[str, None]] = [{}]
    for line in complaint.splitlines():
        inside = line.strip("│")
        if line.startswith("╭") or not inside.strip(" ─-╰╯"):  # plain where letters are ASCII
            sections.append({})
        elif not inside.startswith(_EXPLANATION):
            sections[-1][inside.strip()] = None  # what is said twice is said once
    complaints = sections[1:] if any(sections[1:]) else sections  # the first holds the title
    words = "; ".join(" ".join(section) for section in complaints if section)
    return re.sub(r"Error parsing \S*__tyro\S*: ", "", words)  # the parser's own name of a group
