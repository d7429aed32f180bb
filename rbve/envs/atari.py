"""Atari games as RL Unplugged has them: 'atari:Pong', 'atari:Pong,max_steps=108000,sticky=0'.

Each step repeats an action for 4 frames, shows the maximum of the last two as one 84 × 84 gray
frame (stacking is the reader's matter) and gives the raw sum of rewards. With probability
`sticky` a frame goes on with the previous action. Lost lives end nothing, no idle steps open an
episode, and a cut after `max_steps` is a truncation.
"""

from pathlib import Path
from typing import Any

import numpy as np

from rbve.envs._host import EngineEnv, HostEnv, load_packages
from rbve.registry import did_you_mean

EXAMPLE = "Pong"
_INSTALL = 'pip install "rbve[atari]"'
_SIZE = 84
_SKIP = 4
MAX_STEPS = 27_000  # of the recorded data; RL Unplugged's own evaluation allows 108,000
_STICKY = 0.25


class AtariEnv(EngineEnv):
    """A `HostEnv` around one emulator."""

    obs_shape: tuple[int, ...] = (_SIZE, _SIZE, 1)

    def __init__(self, name: str, rom: str, max_steps: int, sticky: float) -> None:
        import ale_py
        import cv2

        self.name, self.max_steps = name, max_steps
        self._rom = Path(str(ale_py.roms.get_rom_path(rom)))
        self._resize, self._area = cv2.resize, cv2.INTER_AREA
        # Splitting so small a picture over threads costs more than resizing it.
        cv2.setNumThreads(1)
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self._ale = ale_py.ALEInterface()
        self._ale.setFloat("repeat_action_probability", sticky)
        self._ale.setInt("random_seed", 0)
        self._ale.loadROM(self._rom)
        self._ids = self._ale.getMinimalActionSet()
        self.actions = tuple(each.name.lower() for each in self._ids)
        shape = self._ale.getScreenDims()
        self._before, self._last = np.zeros(shape, np.uint8), np.zeros(shape, np.uint8)

    def _begin(self, seed: int | None) -> np.ndarray:
        if seed is not None:
            # The emulator takes its seed when a cartridge is put in.
            self._ale.setInt("random_seed", int(seed) % 2**31)
            self._ale.loadROM(self._rom)
        self._ale.reset_game()
        self._before.fill(0)
        return self._frame()

    def _act(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        reward, over = 0, False
        self._before.fill(0)
        for frame in range(_SKIP):
            reward += self._ale.act(self._ids[action])
            over = self._ale.game_over(with_truncation=False)
            if over:
                break
            if frame == _SKIP - 2:
                self._ale.getScreenGrayscale(self._before)
        return self._frame(), reward, over, False

    @property
    def ram(self) -> np.ndarray:
        """(128,) uint8, the console's memory: what scripted players read."""
        return np.asarray(self._ale.getRAM())

    @property
    def lives(self) -> int:
        return int(self._ale.lives())

    def _frame(self) -> np.ndarray:
        self._ale.getScreenGrayscale(self._last)
        pooled = np.maximum(self._before, self._last)
        small = self._resize(pooled, (_SIZE, _SIZE), interpolation=self._area)
        return np.asarray(small, np.uint8)[..., None]


def make(option: str) -> HostEnv:
    """Makes a game, e.g. of 'Pong' or 'Pong,max_steps=108000'."""
    name = f"atari:{option}"
    needs = f"{name} needs the packages ale-py and opencv: {_INSTALL} ({{error}})"
    roms, _ = load_packages(needs, "ale_py.roms", "cv2")
    game, *settings = option.split(",")
    known = {title(rom): rom for rom in roms.get_all_rom_ids()}
    if game not in known:
        hint = did_you_mean(title(game.lower()), known, "atari:", cutoff=0.5)
        raise ValueError(f"unknown Atari game '{game}'.{hint} Names look like Pong or BeamRider")
    return AtariEnv(name, known[game], **_parse_settings(name, settings))


def title(rom: str) -> str:
    """'beam_rider' is BeamRider."""
    return "".join(part.capitalize() for part in rom.split("_"))


def _parse_settings(name: str, settings: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {"max_steps": MAX_STEPS, "sticky": _STICKY}
    for setting in settings:
        key, _, value = setting.partition("=")
        if key not in values:
            raise ValueError(f"'{name}': unknown setting '{key}'; known: {', '.join(values)}")
        try:
            values[key] = int(value) if key == "max_steps" else float(value)
        except ValueError:
            raise ValueError(f"'{name}': {key} needs a number, e.g. {key}={values[key]}") from None
    if values["max_steps"] < 1 or not 0 <= values["sticky"] <= 1:
        raise ValueError(f"'{name}': max_steps is at least 1 and sticky lies in [0, 1]")
    return values


# Scores that normalise games. RL Unplugged normalises by an online DQN but published no table of
# them. These come from public DQN training data: a proxy, and labelled so wherever they are used.
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


def reference(env: str | None) -> dict[str, Any] | None:
    """The `reference` of a dataset's provenance, for 'atari:Pong' and the like; else None.

    None too of games that are cut short or otherwise sticky: their scores are no such scores.
    Longer episodes are RL Unplugged's own evaluation.
    """
    if env is None or game_of(env) not in SCORES:
        return None
    try:
        settings = _parse_settings(env, env.split(",")[1:])
    except ValueError:  # what cannot be read compares with nothing
        return None
    random, online = SCORES[game_of(env)]
    whole = settings["max_steps"] >= MAX_STEPS and settings["sticky"] == _STICKY
    return {"random": random, "online": online, "source": PROXY} if whole else None


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
