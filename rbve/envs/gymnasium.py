"""Any Gymnasium environment with discrete actions and Box or Discrete observations.

Actions are numbered from 0, whatever the space starts from. A Box observation keeps its
shape and becomes float32 (uint8, as of images, stays uint8); a Discrete one is one-hot, and
`categories` names its values. Where the info of an episode's reset holds an `action_mask`, as
Taxi-v4's does, it says which actions are legal; then every step's info has to hold one, but for
the last step's, after which nobody decides.
"""

import importlib
from typing import Any

import numpy as np

from rbve.envs._host import HostEnv, load_packages

EXAMPLE = "CartPole-v1"
_INSTALL = 'pip install "rbve[gymnasium]"'


class GymnasiumEnv:
    """A `HostEnv` around a Gymnasium environment."""

    def __init__(self, name: str, env: Any) -> None:
        from gymnasium import spaces

        actions = env.action_space
        if not isinstance(actions, spaces.Discrete):
            raise ValueError(
                f"{name}: actions have to be Discrete, but the space is {actions}; "
                "wrap the environment so that its actions are numbered"
            )
        observations = env.observation_space
        self.categories: tuple[str, ...] = ()  # the values of a Discrete observation
        if isinstance(observations, spaces.Discrete):
            values = range(int(observations.start), int(observations.start + observations.n))
            self.categories = tuple(map(str, values))
            self.obs_shape: tuple[int, ...] = (len(values),)
        elif isinstance(observations, spaces.Box):
            self.obs_shape = tuple(observations.shape)
        else:
            raise ValueError(
                f"{name}: observations have to be Box or Discrete, but the space is "
                f"{observations}; wrap the environment, e.g. with "
                "gymnasium.wrappers.FlattenObservation"
            )
        self.name = name
        self._start = int(actions.start)
        self.actions = tuple(str(self._start + i) for i in range(int(actions.n)))
        self.executed = -1
        self.legal: np.ndarray | None = None
        self._step, self._masked = 0, False  # of this episode, and whether it has masks
        self._dtype = np.uint8 if observations.dtype == np.uint8 else np.float32
        self._env = env

    def reset(self, seed: int | None = None) -> np.ndarray:
        obs, info = self._env.reset(seed=seed)
        self.executed = -1
        self._step, self._masked = 0, "action_mask" in info
        self.legal = self._mask(info, last=False)
        return self._observation(obs)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        obs, reward, terminated, truncated, info = self._env.step(self._start + int(action))
        self.executed = int(action)
        self._step += 1
        self.legal = self._mask(info, last=bool(terminated or truncated))
        # Both flags can be set on one step: no value follows then, so termination wins.
        ended = bool(terminated)
        return self._observation(obs), float(reward), ended, bool(truncated) and not ended

    def close(self) -> None:
        self._env.close()

    def _mask(self, info: dict[str, Any], last: bool) -> np.ndarray | None:
        if ("action_mask" in info) != self._masked and not last:
            has, had = ("an", "none") if "action_mask" in info else ("no", "one")
            raise ValueError(
                f"{self.name}: step {self._step} has {has} action_mask in its info and the reset "
                f"had {had}; give one at the reset and at every step, or at none"
            )
        if not self._masked:
            return None
        mask = np.array(info.get("action_mask", [True] * len(self.actions)), dtype=np.bool_)
        if mask.shape != (len(self.actions),):
            raise ValueError(
                f"{self.name}: action_mask has the shape {mask.shape}, and there are "
                f"{len(self.actions)} actions"
            )
        if not mask.any() and not last:
            raise ValueError(f"{self.name}: the action_mask of step {self._step} allows no action")
        return mask

    def _observation(self, obs: Any) -> np.ndarray:
        if not self.categories:
            return np.array(obs, dtype=self._dtype)  # a copy: environments may reuse theirs
        place = int(obs) - int(self.categories[0])
        return np.asarray(np.arange(len(self.categories)) == place, dtype=np.float32)


def why_not(env_id: str, settings: Any = None) -> str:
    """Why an id that a file gives means nothing here, or something else; empty where it is fine.

    `settings` are the file's {"kwargs", "max_episode_steps", "wrappers"}: an id alone is not the
    environment if it was made with others than the registered ones.
    """
    try:
        import gymnasium
    except ImportError:
        return f"which needs the package gymnasium ({_INSTALL})"
    spec = gymnasium.registry.get(env_id)
    if spec is None:
        return "which Gymnasium does not register by itself"
    if settings is None:
        return ""
    registered = {
        "kwargs": spec.kwargs,
        "max_episode_steps": spec.max_episode_steps,
        "wrappers": [wrapper.name for wrapper in spec.additional_wrappers],
    }
    made = settings if isinstance(settings, dict) else {}
    for part, own in registered.items():
        if made.get(part) != own:
            return f"made with {part} {str(made.get(part))[:200]}, not Gymnasium's {own}"
    return ""


def make(env_id: str, **kwargs: Any) -> HostEnv:
    """Makes `gymnasium.make(env_id, **kwargs)`, e.g. of 'CartPole-v1'.

    'MODULE:ID' imports MODULE first, which registers ID.
    """
    name = f"gymnasium:{env_id}"
    needs = f"{name} needs the package gymnasium: {_INSTALL} ({{error}})"
    (gymnasium,) = load_packages(needs, "gymnasium")
    module = env_id.rpartition(":")[0]
    try:
        if module:
            importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # found, and what it imports itself is missing
        raise ValueError(
            f"{name} cannot be made: No module named {module!r} in PYTHONPATH, among the installed "
            "packages or, for the command line, in the working directory"
        ) from error
    try:
        env = gymnasium.make(env_id, **kwargs)
    except (gymnasium.error.Error, ImportError) as error:
        raise ValueError(f"{name} cannot be made: {error}") from error
    try:
        return GymnasiumEnv(name, env)
    except ValueError:
        env.close()
        raise
