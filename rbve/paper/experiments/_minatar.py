"""What the MinAtar experiments share: the games, settings, and sizes that can tell.

A recording is the 1,000,000 steps of an online DQN while it learns, and methods see all of it
unless an experiment asks for less. Updates take batches of 32 (MinAtar's own) and the target
network is copied every 250. Every method has one setting on every game, from FROZEN: the paper
tunes on some games and freezes, and minatar_tuning does so on a recording of breakout that no other
experiment has. A game counts only if every agent that recorded it ends at three times the random
policy's return.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from rbve.paper.experiments import Data, Experiment, Method, Settings, scales

ALL_GAMES = tuple(
    f"minatar:{game}" for game in ("breakout", "space_invaders", "asterix", "freeway", "seaquest")
)
TWO_GAMES = ALL_GAMES[:2]  # where a question is asked of many kinds of data
# By algorithm. Not tuned yet: the first setting of every sweep. `tools/best_settings.py STUDY`
# prints what minatar_tuning chose, to be written here.
FROZEN: dict[str, Settings] = {
    "bc": {"learning_rate": 3e-4},
    "filtered_bc": {"learning_rate": 3e-4},
    "mc": {"learning_rate": 3e-4},
    "dqn": {"learning_rate": 3e-4},
    "cql": {"alpha": 0.01, "learning_rate": 3e-4},
    "rem": {"learning_rate": 3e-4},
    "bcq": {"threshold": 0.3, "learning_rate": 3e-4},
    "iqn": {"learning_rate": 3e-4},
    "bve": {"learning_rate": 3e-4},
    "rbve": {"lam": 0.005, "learning_rate": 3e-4},
    "rdqn": {"lam": 0.005, "learning_rate": 3e-4},
    "iql": {"expectile": 0.7, "learning_rate": 3e-4},
    "crr": {"beta": 1.0, "learning_rate": 3e-4},
    "qr_cql": {"alpha": 1.0, "learning_rate": 3e-4},
    "munchausen": {"learning_rate": 3e-4},
}
_SCALES = scales(
    quick=(2, 2_000, 0.2, 1, 2, 16, 32),
    desk=(3, 100_000, 2.0, 1, 20, 32, 32, 250),
    paper=(5, 2_000_000, 2.0, 1, 20, 100, 128),
)
# One recording; what the settings are chosen by needs no longer runs.
_TUNING_SCALES = tuple(
    replace(each, longer=0)
    for each in scales(
        quick=(1, 2_000, 0.2, 2, 2, 16, 32),
        desk=(1, 100_000, 2.0, 3, 20, 32, 32, 250),
        paper=(1, 2_000_000, 2.0, 10, 20, 100, 128),
    )
)
_LEARNED = 3.0  # late returns over random ones
_SHARED: dict[str, Any] = {"scales": _SCALES, "learned": _LEARNED, "tuned": "minatar_tuning"}
tuning = partial(Experiment, scales=_TUNING_SCALES, learned=_LEARNED)


def experiment(*, methods: tuple[Method, ...], **content: Any) -> Experiment:
    """One whose methods have their frozen settings."""
    return Experiment(methods=tuple(map(_frozen, methods)), **_SHARED, **content)


def as_in(bsuites: Experiment, question: str, data: tuple[Data, ...]) -> Experiment:
    """The same experiment on boards."""
    methods = tuple(map(_frozen, bsuites.methods))
    own = replace(bsuites, question=question, data=data, methods=methods, **_SHARED)
    return replace(own, paper=f"{bsuites.paper}; here MinAtar")


def games(names: tuple[str, ...] = TWO_GAMES, **choices: object) -> tuple[Data, ...]:
    """All of their recordings, unless the choices say `keep`."""
    return tuple(Data(game, **{"keep": 1.0, **choices}) for game in names)  # type: ignore[arg-type]


def _frozen(method: Method) -> Method:
    """With what it holds fixed itself, as λ where that is what varies."""
    return Method(method.algorithm, settings={**FROZEN[method.algorithm], **method.settings})
