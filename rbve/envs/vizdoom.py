"""Scenarios of ViZDoom: 'vizdoom:basic', 'vizdoom:health_gathering' and others it ships.

    view       RGB, 72 × 96 × 3 bytes as in DeepMind Lab: 160 × 120 pixels, resized by area
    actions    each button of the scenario alone, and forward with either turn; 4 tics each
    reward     the scenario's own, summed over the tics
    ends       death, or the end the scenario sets (in basic: the monster is shot), terminates;
               the scenario's time limit truncates, 2100 tics (a minute) where it has none

The engine shows nothing after an end of its own, so the last view stands for the final one there.
The time limit is kept here, not by the engine, so that a cut episode has its final view. Every
episode starts from a seed of its own, drawn from the one given to `reset`.
"""

import contextlib
import shutil
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from rbve.envs._host import EngineEnv, HostEnv, check_option, load_packages

EXAMPLE = "basic"
_INSTALL = 'pip install "rbve[vizdoom]"'
SCENARIOS = (
    "basic", "deadly_corridor", "defend_the_center", "defend_the_line", "health_gathering",
    "health_gathering_supreme", "my_way_home", "predict_position", "simpler_basic", "take_cover",
)  # fmt: skip
_HEIGHT, WIDTH = 72, 96
_SKIP = 4
_TICS = 2100  # the limit where a scenario has none, and that of most others
_STARTING = threading.Lock()  # the working directory is the whole process's


def end(game: Any, folder: Path) -> None:
    """The engine first: it writes its settings once more at its end, and complains if it cannot."""
    game.close()
    shutil.rmtree(folder, ignore_errors=True)


class DoomEnv(EngineEnv):
    """A `HostEnv` around one engine, which runs in a process of its own."""

    obs_shape: tuple[int, ...] = (_HEIGHT, WIDTH, 3)

    def __init__(self, name: str, scenario: str) -> None:
        import cv2
        import vizdoom

        self.name = name
        self._resize, self._area = cv2.resize, cv2.INTER_AREA
        cv2.setNumThreads(1)  # threads cost more than they save on so small a picture
        self._game = vizdoom.DoomGame()
        self._game.load_config(str(Path(vizdoom.scenarios_path) / f"{scenario}.cfg"))
        self.max_steps = -(-(self._game.get_episode_timeout() or _TICS) // _SKIP)
        self._game.set_episode_timeout(0)
        self._game.set_window_visible(False)
        self._game.set_sound_enabled(False)
        self._game.set_objects_info_enabled(True)
        self._game.set_screen_format(vizdoom.ScreenFormat.RGB24)
        self._game.set_screen_resolution(vizdoom.ScreenResolution.RES_160X120)
        pressed = combinations([each.name.lower() for each in self._game.get_available_buttons()])
        self.actions = tuple(pressed)
        self._presses = list(pressed.values())
        self._rng = np.random.default_rng()
        self._view = np.zeros(self.obs_shape, np.uint8)
        self._things: list[Any] = []  # what is in the world, by the engine's word
        self._start()

    def _start(self) -> None:
        """Starts the engine in a folder of its own, where it leaves its settings.

        It takes no other place than the working directory for them.
        """
        folder = tempfile.mkdtemp(prefix="rbve-vizdoom-")
        self._end = weakref.finalize(self, end, self._game, Path(folder))
        with _STARTING, contextlib.chdir(folder):
            self._game.init()

    def _begin(self, seed: int | None) -> np.ndarray:
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._game.set_seed(int(self._rng.integers(2**31 - 1)))
        self._game.new_episode()
        return self._look()

    def _act(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        reward = self._game.make_action(self._presses[action], _SKIP)
        over = bool(self._game.is_episode_finished())
        return self._view.copy() if over else self._look(), reward, over, False

    @property
    def ram(self) -> np.ndarray:
        """(things, 3) x, y and angle in degrees, for scripted players: the player's first, then
        those of all else, the nearest first."""
        (own,) = (each for each in self._things if each.name == "DoomPlayer")
        places = np.array([(each.position_x, each.position_y, each.angle) for each in self._things])
        away = np.hypot(places[:, 0] - own.position_x, places[:, 1] - own.position_y)
        return places[np.argsort(away, kind="stable")]

    def close(self) -> None:
        super().close()
        self._end()

    def _look(self) -> np.ndarray:
        state = self._game.get_state()
        self._things = state.objects
        small = self._resize(state.screen_buffer, (WIDTH, _HEIGHT), interpolation=self._area)
        self._view = np.asarray(small, np.uint8)
        return self._view.copy()


def combinations(buttons: list[str]) -> dict[str, list[bool]]:
    """What is pressed by each action: one button, or forward with a turn."""
    pressed: list[tuple[str, ...]] = [(button,) for button in buttons]
    if "move_forward" in buttons:
        pressed += [("move_forward", turn) for turn in buttons if turn.startswith("turn_")]
    return {"+".join(held): [each in held for each in buttons] for held in pressed}


def make(scenario: str) -> HostEnv:
    """Makes a scenario, e.g. 'basic'."""
    check_option(f"unknown ViZDoom scenario '{scenario}'", "vizdoom", scenario, SCENARIOS)
    name = f"vizdoom:{scenario}"
    load_packages(f"{name} needs vizdoom and opencv; {_INSTALL} ({{error}})", "cv2", "vizdoom")
    return DoomEnv(name, scenario)
