"""DeepMind Lab as RL Unplugged has it: 'dmlab:explore_object_rewards_few' and four other levels.

    view       RGB, 72 × 96 × 3 bytes
    actions    15, the ids of the recorded data; each is repeated for 4 frames (seekavoid: 2)
    end        the level's time limit, a truncation: the recorded data bootstraps there. The Lab
               shows nothing after it, so the last view stands for the final one

Every episode starts from a seed of its own, drawn from the one given to `reset`.
"""

from typing import Any

import numpy as np

from rbve.envs._host import EngineEnv, HostEnv, check_option, load_packages

EXAMPLE = "explore_object_rewards_few"
_BUILD = (
    "no package index has it: build its Python package from source, as "
    "https://github.com/google-deepmind/lab/blob/master/docs/users/build.md says, and install that"
)
_VIEW = "RGB_INTERLEAVED"
_CONFIG = {  # the Lab takes words only
    "fps": "30", "height": "72", "width": "96", "maxAltCameraHeight": "1",
    "maxAltCameraWidth": "1", "hasAltCameras": "false",
}  # fmt: skip
_LAB30 = (
    "explore_object_rewards_few", "explore_object_rewards_many", "rooms_select_nonmatching_object",
    "rooms_watermaze",
)  # fmt: skip
# path, and how many frames an action lasts
_LEVELS = {each: (f"contributed/dmlab30/{each}", 4) for each in _LAB30}
_LEVELS["seekavoid_arena_01"] = ("seekavoid_arena_01", 2)

# Named as in RL Unplugged's records.
# look right, look up-down (+ is down), strafe right, move forward, fire, jump, crouch
ACTIONS = {
    "forward": (0, 0, 0, 1, 0, 0, 0),
    "back": (0, 0, 0, -1, 0, 0, 0),
    "strafe left": (0, 0, -1, 0, 0, 0, 0),
    "strafe right": (0, 0, 1, 0, 0, 0, 0),
    "look left 10": (-10, 0, 0, 0, 0, 0, 0),
    "look right 10": (10, 0, 0, 0, 0, 0, 0),
    "look left 60": (-60, 0, 0, 0, 0, 0, 0),
    "look right 60": (60, 0, 0, 0, 0, 0, 0),
    "look down 10": (0, 10, 0, 0, 0, 0, 0),
    "look up 10": (0, -10, 0, 0, 0, 0, 0),
    "forward, look left 10": (-10, 0, 0, 1, 0, 0, 0),
    "forward, look right 10": (10, 0, 0, 1, 0, 0, 0),
    "forward, look left 60": (-60, 0, 0, 1, 0, 0, 0),
    "forward, look right 60": (60, 0, 0, 1, 0, 0, 0),
    "fire": (0, 0, 0, 0, 1, 0, 0),
}


class LabEnv(EngineEnv):
    """A `HostEnv` around one Lab."""

    shows_final = False
    obs_shape: tuple[int, ...] = (72, 96, 3)
    actions = tuple(ACTIONS)

    def __init__(self, name: str, lab: Any, repeats: int) -> None:
        self.name, self._lab, self._repeats = name, lab, repeats
        self._moves = [np.array(move, np.intc) for move in ACTIONS.values()]
        self._rng = np.random.default_rng()
        self._view = np.zeros(self.obs_shape, np.uint8)

    def _begin(self, seed: int | None) -> np.ndarray:
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._lab.reset(seed=int(self._rng.integers(2**31 - 1)))
        return self._look()

    def _act(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        reward = self._lab.step(self._moves[action], num_steps=self._repeats)
        running = bool(self._lab.is_running())
        return self._look() if running else self._view.copy(), reward, False, not running

    def close(self) -> None:
        super().close()
        self._lab.close()

    def _look(self) -> np.ndarray:
        self._view = np.array(self._lab.observations()[_VIEW], np.uint8)  # the Lab reuses its own
        return self._view.copy()


def make(level: str) -> HostEnv:
    """Makes a level of RL Unplugged, e.g. 'explore_object_rewards_few'."""
    check_option(f"RL Unplugged has no DeepMind Lab level '{level}'", "dmlab", level, _LEVELS)
    needs = f"dmlab:{level} needs the package deepmind_lab; {_BUILD}"
    (deepmind_lab,) = load_packages(needs, "deepmind_lab")
    path, repeats = _LEVELS[level]
    lab = deepmind_lab.Lab(path, [_VIEW], config=dict(_CONFIG), renderer="software")
    return LabEnv(f"dmlab:{level}", lab, repeats)
