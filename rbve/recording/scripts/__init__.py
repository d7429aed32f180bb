"""Scripted players: a file per game, with a class `Player` that reads the console's memory."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rbve import registry
from rbve.envs.atari import title

if TYPE_CHECKING:
    from rbve.evaluation.players import Script

FOLDER = Path(__file__).parent


def load(env: str) -> Callable[[], Script]:
    """Makes players of the game that 'atari:Pong' names."""
    known = {f"atari:{title(each)}": each for each in registry.names(FOLDER)}
    game = env.partition(",")[0]
    if game not in known:
        raise ValueError(f"no script plays {env}; scripts play {', '.join(known)}")
    make: Callable[[], Script] = importlib.import_module(f"{__name__}.{known[game]}").Player
    return make
