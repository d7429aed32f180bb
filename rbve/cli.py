"""The command line: parse, call, print. JAX is imported only once there is work to do."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import Any

import tyro

from rbve import console
from rbve.commands.data import convert, inspect, record
from rbve.commands.learning import demo, evaluate, reproduce, train
from rbve.commands.results import follow, pack, report

COMMANDS = {
    "demo": demo,
    "record": record,
    "convert": convert,
    "inspect": inspect,
    "train": train,
    "evaluate": evaluate,
    "follow": follow,
    "reproduce": reproduce,
    "report": report,
    "pack": pack,
}


def main(arguments: Sequence[str] | None = None) -> None:
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with console.one_line_errors():
            call = parse(given)
        call()
    except (ValueError, ImportError, OSError) as error:
        console.fail(str(error))
    except (MemoryError, OverflowError, RuntimeError) as error:
        first = (str(error) or "out of memory").splitlines()[0]
        console.fail(f"{type(error).__name__}: {first}; try smaller numbers")
    except KeyboardInterrupt:
        console.fail("interrupted; what was finished is kept", code=130)


def parse(given: list[str]) -> Any:
    """The chosen command with its arguments, not yet called."""
    return tyro.extras.subcommand_cli_from_dict(
        {name: held(command) for name, command in COMMANDS.items()},
        prog="rbve",
        description="Learn decisions from logged data when actions are discrete.",
        args=given,
    )


def held(command: Any) -> Any:
    @functools.wraps(command)
    def hold(*args: Any, **kwargs: Any) -> Any:
        return functools.partial(command, *args, **kwargs)

    return hold


if __name__ == "__main__":
    main()
