"""Atari games as RL Unplugged has them: 'atari:Pong', 'atari:Pong,max_steps=108000,sticky=0'.

Each step repeats an action for 4 frames, shows the maximum of the last two as one 84 × 84 gray
frame (stacking is the reader's matter) and gives the raw sum of rewards. With probability
`sticky` a frame goes on with the previous action. Lost lives end nothing, no idle steps open an
episode, and a cut after `max_steps` is a truncation.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rbve.registry import did_you_mean

if TYPE_CHECKING:
    from rbve.envs.base import HostEnv

EXAMPLE = "Pong"
INSTALL = 'pip install "rbve[atari]"'
SIZE = 84
SKIP = 4
MAX_STEPS = 27_000  # of the recorded data; RL Unplugged's own evaluation allows 108,000
STICKY = 0.25


class AtariEnv:
    """A `HostEnv` around one emulator."""

    legal: np.ndarray | None = None  # every action, always
    obs_shape: tuple[int, ...] = (SIZE, SIZE, 1)

    def __init__(self, name: str, rom: str, max_steps: int, sticky: float) -> None:
        import ale_py
        import cv2

        self.name = name
        self.executed = -1
        self.max_steps = max_steps
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
        self._steps = -1  # of the running episode; −1 outside one

    def reset(self, seed: int | None = None) -> np.ndarray:
        if seed is not None:
            # The emulator takes its seed when a cartridge is put in.
            self._ale.setInt("random_seed", int(seed) % 2**31)
            self._ale.loadROM(self._rom)
        self._ale.reset_game()
        self.executed = -1
        self._steps = 0
        self._before.fill(0)
        return self._frame()

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        if self._steps < 0:
            raise ValueError(f"{self.name}: stepped outside an episode; call reset() first")
        chosen = self._ids[action]
        reward = 0
        over = False
        self._before.fill(0)
        for frame in range(SKIP):
            reward += self._ale.act(chosen)
            over = self._ale.game_over(with_truncation=False)
            if over:
                break
            if frame == SKIP - 2:
                self._ale.getScreenGrayscale(self._before)
        self.executed = int(action)
        self._steps += 1
        cut = not over and self._steps >= self.max_steps
        if over or cut:
            self._steps = -1
        return self._frame(), float(reward), over, cut

    @property
    def ram(self) -> np.ndarray:
        """(128,) uint8, the console's memory: what scripted players read."""
        return np.asarray(self._ale.getRAM())

    @property
    def lives(self) -> int:
        return int(self._ale.lives())

    def close(self) -> None:
        """Nothing is held but memory."""

    def _frame(self) -> np.ndarray:
        self._ale.getScreenGrayscale(self._last)
        pooled = np.maximum(self._before, self._last)
        small = self._resize(pooled, (SIZE, SIZE), interpolation=self._area)
        return np.asarray(small, np.uint8)[..., None]


def make(option: str) -> HostEnv:
    """Makes a game, e.g. of 'Pong' or 'Pong,max_steps=108000'."""
    name = f"atari:{option}"
    try:
        import ale_py.roms
        import cv2  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{name} needs the packages ale-py and opencv: {INSTALL} ({error})"
        ) from error
    game, *settings = option.split(",")
    known = {title(rom): rom for rom in ale_py.roms.get_all_rom_ids()}
    if game not in known:
        hint = did_you_mean(title(game.lower()), known, "atari:", cutoff=0.5)
        raise ValueError(f"unknown Atari game '{game}'.{hint} Names look like Pong or BeamRider")
    return AtariEnv(name, known[game], **parse_settings(name, settings))


def title(rom: str) -> str:
    """'beam_rider' is BeamRider."""
    return "".join(part.capitalize() for part in rom.split("_"))


def parse_settings(name: str, settings: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"max_steps": MAX_STEPS, "sticky": STICKY}
    for setting in settings:
        key, _, value = setting.partition("=")
        if key not in found:
            raise ValueError(f"'{name}': unknown setting '{key}'; known: {', '.join(found)}")
        try:
            found[key] = int(value) if key == "max_steps" else float(value)
        except ValueError:
            raise ValueError(f"'{name}': {key} needs a number, e.g. {key}={found[key]}") from None
    if found["max_steps"] < 1 or not 0 <= found["sticky"] <= 1:
        raise ValueError(f"'{name}': max_steps is at least 1 and sticky lies in [0, 1]")
    return found
