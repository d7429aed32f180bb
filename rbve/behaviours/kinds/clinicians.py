"""ICU-Sepsis' clinicians among admissible actions, with ε: policy="clinicians"."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from rbve.behaviours.record import Asked, RecordingPlan, Source
from rbve.data.dataset import Episode
from rbve.envs.base import check_noise

ORDER, LEARNS = 55, False
_AT_ONCE = 2000  # episodes


@dataclass(frozen=True)
class _Clinicians:
    """Their table of probabilities, which become the propensities."""

    @contextmanager
    def opened(self, plan: RecordingPlan) -> Iterator[Source]:
        from rbve import envs
        from rbve.envs import icu_sepsis
        from rbve.evaluation.exact import sample_log

        if (plan.env_name or "").partition(":")[0] != "icu_sepsis":
            raise ValueError(f"the clinicians' policy plays icu_sepsis; got {plan.env}")
        if not 0 <= plan.epsilon <= 1:
            raise ValueError(f"epsilon must lie in [0, 1]; got {plan.epsilon}")
        check_noise(plan.noise)
        if plan.noise:
            raise ValueError("the clinicians' policy is recorded without noise; give epsilon")
        env = envs.load(plan.env)
        known, episodes = icu_sepsis.tables(), plan.episodes_or_default
        legal = np.asarray(known.mdp.legal, np.float64)
        uniform = legal / legal.sum(axis=1, keepdims=True)
        table = (1 - plan.epsilon) * known.admissible_clinicians + plan.epsilon * uniform
        obs = known.features if env.obs_shape == known.features.shape[1:] else None

        def groups() -> Iterator[tuple[list[Episode], float]]:
            for first in range(0, episodes, _AT_ONCE):
                count = min(_AT_ONCE, episodes - first)
                log = sample_log(known.mdp, table, count, (plan.seed, first), obs, env.actions)
                fresh = [log.dataset.episode(k) for k in range(count)]
                yield fresh, (first + count) / episodes

        about = {
            "env": plan.env_name,
            "behaviour": "clinicians",
            "epsilon": plan.epsilon,
            "noise": plan.noise,
            "seed": plan.seed,
            "recorded_episodes": episodes,
            "keep": plan.keep,
        }
        yield Source(env.actions, about, episodes, groups())


def claim(asked: Asked) -> _Clinicians | None:
    """By its name."""
    return _Clinicians() if asked.policy == "clinicians" else None
