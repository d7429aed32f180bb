"""What the MinAtar experiments share: the games, and sizes that a CPU carries.

An update through MinAtar's convolution costs some twenty times one of bsuite's dense layers, so
runs are shorter, batches of 32 (MinAtar's own), and each method has one setting: desk scale takes
about an hour and a half on 2 cores. A game counts only if every agent that recorded it ends at
three times the random policy's return.
"""

from __future__ import annotations

from rbve.paper.experiments import Data, Scale

GAMES = tuple(f"minatar:{game}" for game in ("breakout", "space_invaders"))
LEARNED = 3.0  # late returns over random ones
SCALES = (
    Scale(
        2, 2_000, episodes=0.2, settings=1, evaluations=2, eval_episodes=16, batch_size=32,
        name="quick",
    ),
    Scale(
        4, 10_000, episodes=0.5, settings=1, evaluations=5, eval_episodes=64, batch_size=32,
        name="desk",
    ),
    Scale(
        5, 2_000_000, episodes=2.0, settings=10, evaluations=20, eval_episodes=100,
        batch_size=128, name="paper",
    ),
)  # fmt: skip


def games(**choices: object) -> tuple[Data, ...]:
    return tuple(Data(game, **choices) for game in GAMES)  # type: ignore[arg-type]
