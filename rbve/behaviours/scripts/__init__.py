"""Scripted players: a file per game, which it names in `PLAYS`, with a class `Player`.

It reads what agents do not see: a console's memory, or where things are (`ram` of environments).
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rbve import registry

FOLDER = Path(__file__).parent


def load(env: str) -> Callable[[], Any]:
    """Makes players of a game, e.g. of 'atari:Pong'."""
    files = [importlib.import_module(f"{__name__}.{each}") for each in registry.names(FOLDER)]
    known = {each.PLAYS: each.Player for each in files}
    game = env.partition(",")[0]
    if game not in known:
        raise ValueError(f"no script plays {env}; scripts play {', '.join(known)}")
    return known[game]
