"""What the MinAtar experiments share: the games, and sizes that can tell.

A recording is the 1,000,000 steps of an online DQN while it learns, and methods see all of it
unless an experiment asks for less. Updates take batches of 32 (MinAtar's own) and the target
network is copied every 250. Every method has the first setting of its sweep on every game; none
was tuned on boards. A game counts only if every agent that recorded it ends at three times the
random policy's return.
"""

from dataclasses import replace
from functools import partial

from rbve.paper.experiments import Data, Experiment, scales

ALL_GAMES = tuple(
    f"minatar:{game}" for game in ("breakout", "space_invaders", "asterix", "freeway", "seaquest")
)
TWO_GAMES = ALL_GAMES[:2]  # where a question is asked of many kinds of data
_SCALES = scales(
    quick=(2, 2_000, 0.2, 1, 2, 16, 32),
    desk=(3, 100_000, 2.0, 1, 20, 32, 32, 250),
    paper=(5, 2_000_000, 2.0, 10, 20, 100, 128),
)
# `learned`: late returns over random ones.
experiment = partial(Experiment, scales=_SCALES, learned=3.0)


def as_in(bsuites: Experiment, question: str, data: tuple[Data, ...]) -> Experiment:
    """The same experiment on boards."""
    own = replace(bsuites, question=question, data=data, scales=_SCALES, learned=3.0)
    return replace(own, paper=f"{bsuites.paper}; here MinAtar")


def games(names: tuple[str, ...] = TWO_GAMES, **choices: object) -> tuple[Data, ...]:
    """All of their recordings, unless the choices say `keep`."""
    return tuple(Data(game, **{"keep": 1.0, **choices}) for game in names)  # type: ignore[arg-type]
