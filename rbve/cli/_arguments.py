"""What several commands take."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import arg

from rbve import envs
from rbve.sweep.executors import EXECUTORS

_ENVS = ", ".join([*envs.names(), *(f"{each}:ID" for each in envs.ADAPTERS)])

_OWN = "gymnasium:MODULE:ID for one of your own, which MODULE registers (here or in PYTHONPATH)"
_FILE = "Algorithm file of a saved policy, needed where it has scores of its own."
_LEGAL = (
    "All actions are legal, where the policy's data has masks and the environment none; "
    "masks of an environment are used."
)
_WHERE = "; ".join(f"{name}: {EXECUTORS.summary(name)}" for name in EXECUTORS.names())
EnvName = Annotated[str, arg(help=f"Environment: {_ENVS}; {_OWN}.", metavar="ENV")]
AlgorithmFile = Annotated[Path | None, arg(help=_FILE, metavar="FILE")]
Legal = Annotated[Literal["all"] | None, arg(help=_LEGAL)]
ExecutorName = Annotated[str, arg(help=f"Where members train: {_WHERE}.", metavar="NAME")]
Json = Annotated[bool, arg(name="json", help="Print figures as JSON.")]


def find_modules_here(env: str | None) -> None:
    """Lets a user's 'gymnasium:MODULE:ID' be found in the working directory, as by `python -m`."""
    kind, *rest = (env or "").split(":")
    if kind == "gymnasium" and len(rest) > 1 and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))


def need_one(name: str, values: Sequence[Any]) -> None:
    if len({*values}) < len(values):
        raise ValueError(f"{name} names a value twice")
    if not values:
        raise ValueError(f"{name} needs at least one value; add --help to see what it takes")
