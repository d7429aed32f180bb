"""Games of RL Unplugged's Atari benchmark and the scores that normalise them.

RL Unplugged normalises by an online DQN but published no table of its scores. The ones here come
from public DQN training data: a proxy, and labelled so wherever they are used.
"""

from __future__ import annotations

from typing import Any

from rbve.envs import atari

PROXY = "proxy: public DQN training data; RL Unplugged published no table"

# game: (uniformly random player, online DQN). Settings are chosen on 9 games and kept on the rest.
TUNED_ON = {
    "BeamRider": (363.9, 5581.0), "DemonAttack": (152.1, 6083.0), "DoubleDunk": (-18.6, -6.2),
    "IceHockey": (-11.2, -6.1), "MsPacman": (307.3, 3340.0), "Pooyan": (539.7, 3250.0),
    "RoadRunner": (11.5, 37473.0), "Robotank": (2.2, 59.7), "Zaxxon": (32.5, 4638.0),
}  # fmt: skip
REPORTED_ON = {
    "Alien": (227.8, 2480.0), "Amidar": (5.8, 1172.0), "Assault": (222.4, 1523.0),
    "Asterix": (210.0, 2737.0), "Atlantis": (12850.0, 853980.0), "BankHeist": (14.2, 592.4),
    "BattleZone": (2360.0, 17933.0), "Boxing": (0.1, 77.5), "Breakout": (1.7, 93.9),
    "Carnival": (641.8, 4794.0), "Centipede": (2091.0, 2575.0), "ChopperCommand": (811.0, 2664.0),
    "CrazyClimber": (10780.0, 103740.0), "Enduro": (0.0, 631.7), "FishingDerby": (-91.7, 0.7),
    "Freeway": (0.0, 26.2), "Frostbite": (65.2, 372.2), "Gopher": (257.6, 5493.0),
    "Gravitar": (173.0, 315.9), "Hero": (1027.0, 17247.0), "Jamesbond": (29.0, 577.5),
    "Kangaroo": (52.0, 11517.0), "Krull": (1598.0, 6056.0), "KungFuMaster": (258.5, 23384.0),
    "NameThisGame": (2292.0, 7232.0), "Phoenix": (761.4, 4972.0), "Pong": (-20.7, 15.9),
    "Qbert": (163.9, 10023.0), "Riverraid": (1338.0, 11429.0), "Seaquest": (68.4, 1505.0),
    "SpaceInvaders": (148.0, 1738.0), "StarGunner": (664.0, 44202.0), "TimePilot": (3568.0, 3709.0),
    "UpNDown": (533.4, 8802.0), "VideoPinball": (16257.0, 72303.0), "WizardOfWor": (563.5, 2077.0),
    "YarsRevenge": (3093.0, 23701.0),
}  # fmt: skip
SCORES = TUNED_ON | REPORTED_ON


def game_of(env: str | None) -> str:
    """'Pong' of 'atari:Pong,sticky=0'; nothing of other environments."""
    kind, _, option = (env or "").partition(":")
    return option.partition(",")[0] if kind == "atari" else ""


def is_whole(env: str) -> bool:
    """Whether an Atari game is as long and as sticky as the scores' own: 'atari:Pong,sticky=0' not.

    Longer episodes are RL Unplugged's own evaluation.
    """
    try:
        settings = atari.parse_settings(env, env.split(",")[1:])
    except ValueError:  # what cannot be read compares with nothing
        return False
    return settings["max_steps"] >= atari.MAX_STEPS and settings["sticky"] == atari.STICKY


def reference(env: str | None) -> dict[str, Any] | None:
    """The `reference` of a dataset's provenance, for 'atari:Pong' and the like; else None.

    None too of games that are cut short or otherwise sticky: their scores are no such scores.
    """
    known = SCORES.get(game_of(env))
    if env is None or known is None or not is_whole(env):
        return None
    random, online = known
    return {"random": random, "online": online, "source": PROXY}


def with_reference(facts: dict[str, Any], env: str | None) -> dict[str, Any]:
    """Facts of data, with what normalises scores in `env` where the data's own agent does not.

    What facts have from the table may be of another game, or of a whole one where `env` is not.
    """
    known, proxy = reference(env), facts.get("reference_source") == PROXY
    if env is None or (not proxy and (known is None or facts.get("reference_return") is not None)):
        return facts
    scores = known or {}
    others = {name: value for name, value in facts.items() if name != "reference_source"}
    return {
        **others,
        "random_return": scores.get("random"),
        "reference_return": scores.get("online"),
        **({"reference_source": PROXY} if scores else {}),
    }
