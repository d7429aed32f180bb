"""Any experiment of the bsuite package, named by its id such as 'catch/0'.

An end with discount 0 is a termination, an end with a positive discount a truncation.
"""

from typing import Any

import numpy as np

from rbve.envs._host import EngineEnv, HostEnv, load_packages
from rbve.registry import did_you_mean

EXAMPLE = "catch/0"
_INSTALL = 'pip install "rbve[bsuite]"'


class BsuiteEnv(EngineEnv):
    """A `HostEnv` around a dm_env environment of bsuite."""

    def __init__(self, name: str, env: Any) -> None:
        self.name = name
        spec = env.observation_spec()
        self.obs_shape: tuple[int, ...] = tuple(spec.shape)
        self.actions = tuple(str(i) for i in range(env.action_spec().num_values))
        self._dtype = np.uint8 if spec.dtype == np.uint8 else np.float32
        self._env = env

    def _begin(self, seed: int | None) -> np.ndarray:
        if seed is not None:
            _reseed(self._env, seed)
        return np.array(self._env.reset().observation, dtype=self._dtype)

    def _act(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        timestep = self._env.step(int(action))
        terminated = bool(timestep.last() and timestep.discount == 0)
        truncated = bool(timestep.last() and not terminated)
        obs = np.array(timestep.observation, dtype=self._dtype)
        return obs, timestep.reward, terminated, truncated

    def close(self) -> None:
        self._env.close()


def _reseed(env: Any, seed: int) -> None:
    """Replaces the generators of an experiment and of the wrappers around it.

    bsuite seeds only in constructors, of which several take no seed. Each layer gets its own
    stream, so that reward noise does not follow the draws of the environment beneath it.
    """
    layer = 0
    while env is not None:
        if "_rng" in vars(env):
            sequence = np.random.SeedSequence([seed, layer])
            env._rng = np.random.RandomState(np.random.MT19937(sequence))
        env = vars(env).get("_env")
        layer += 1


def make(experiment_id: str) -> HostEnv:
    """Makes the experiment with this bsuite id, e.g. 'catch/0'."""
    name = f"bsuite:{experiment_id}"
    needs = f"{name} needs the package bsuite: {_INSTALL} ({{error}})"
    bsuite, sweep = load_packages(needs, "bsuite", "bsuite.sweep")
    if experiment_id not in sweep.SETTINGS:
        hint = did_you_mean(experiment_id, sweep.SWEEP, "bsuite:")
        experiments = sorted({known.split("/")[0] for known in sweep.SWEEP})
        raise ValueError(
            f"unknown bsuite experiment '{experiment_id}'.{hint} "
            f"Ids are <experiment>/<number>, with: {', '.join(experiments)}"
        )
    # Not load_from_id, which prints.
    experiment = experiment_id.split("/")[0]
    return BsuiteEnv(name, bsuite.load(experiment, sweep.SETTINGS[experiment_id]))
