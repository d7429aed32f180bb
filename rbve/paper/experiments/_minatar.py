"""What the MinAtar experiments share: the games, and sizes that a CPU carries.

An update through MinAtar's convolution costs some twenty times one of bsuite's dense layers, so
runs are shorter, batches of 32 (MinAtar's own), and each method has one setting: desk scale takes
about an hour and a half on 2 cores. A game counts only if every agent that recorded it ends at
three times the random policy's return.
"""

from dataclasses import replace
from functools import partial

from rbve.paper.experiments import Data, Experiment, scales

_GAMES = tuple(f"minatar:{game}" for game in ("breakout", "space_invaders"))
_SCALES = scales(
    quick=(2, 2_000, 0.2, 1, 2, 16, 32),
    desk=(4, 10_000, 0.5, 1, 5, 64, 32),
    paper=(5, 2_000_000, 2.0, 10, 20, 100, 128),
)
# `learned`: late returns over random ones.
experiment = partial(Experiment, scales=_SCALES, learned=3.0)


def as_in(bsuites: Experiment, question: str, data: tuple[Data, ...]) -> Experiment:
    """The same experiment on boards."""
    own = replace(bsuites, question=question, data=data, scales=_SCALES, learned=3.0)
    return replace(own, paper=f"{bsuites.paper}; here MinAtar")


def games(**choices: object) -> tuple[Data, ...]:
    return tuple(Data(game, **choices) for game in _GAMES)  # type: ignore[arg-type]
