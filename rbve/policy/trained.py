"""How a policy was trained: the fields of its job that evaluation reads, by name and type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rbve import schema

# What a follower needs of a job, beyond the types that all rows and policies have.
JOB: dict[str, dict[str, Any]] = {
    "spec": {
        "algorithm": str,
        "env": (str, None),
        **dict.fromkeys(("steps", "every", "eval_episodes", "final_evaluations", "stack"), int),
        **dict.fromkeys(("eval_epsilon", "gamma"), float),
        "clip_rewards": bool,
    },
    "data": {"path": str},
}


@dataclass(frozen=True)
class TrainedAs:
    """Defaults stand where a file does not say: policies need not come from a training run."""

    gamma: float = 0.99
    clip_rewards: bool = False
    stack: int = 1  # observations joined
    step: int | None = None  # updates done
    algorithm: str = ""
    env: str | None = None  # where training evaluated
    steps: int = 0
    every: int = 1
    eval_episodes: int = 100
    eval_epsilon: float = 0.4**8
    final_evaluations: int = 5
    data: str = ""  # path
    facts: Mapping[str, Any] = field(default_factory=dict)  # of the data

    @staticmethod
    def of(info: Mapping[str, Any]) -> TrainedAs:
        """From a policy's `info`, or {"job": ...} of a file of rows."""
        job = info.get("job", {})
        spec = job.get("spec", {})
        return TrainedAs(
            step=info.get("step"),
            facts=info.get("facts", {}),
            data=job.get("data", {}).get("path", ""),
            **{name: spec[name] for name in JOB["spec"] if name in spec},
        )

    @staticmethod
    def of_run(info: Mapping[str, Any], where: str) -> TrainedAs:
        """The same of a training run; ValueError, naming `where`, if it is of something else."""
        schema.check(info["job"], JOB, f"{where}: not of a training run")
        return TrainedAs.of(info)

    @property
    def averaged(self) -> int:
        """Of its evaluations, how many of the last make the final figure."""
        return averaged(self.steps, self.every, self.final_evaluations)


def averaged(steps: int, every: int, asked: int) -> int:
    """Of a run's last evaluations: as many as asked for, but none from its first half."""
    evaluations = -(-steps // every)
    return min(asked, max(1, evaluations // 2))
