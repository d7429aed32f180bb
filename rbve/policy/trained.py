"""How a policy was trained: the fields of its job that evaluation reads, by name and type."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rbve import schema

# What a follower needs of a job, beyond the types that all rows and policies have.
JOB: dict[str, Any] = {
    "algorithm": str, "steps": int, "data": {"path": str}, "network": {"stack": int},
    "view": {"gamma": float, "clip_rewards": bool},
    "evaluation": {
        "env": (str, None), "every": int, "eval_episodes": int, "final_evaluations": int,
        "eval_epsilon": float,
    },
}  # fmt: skip


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
    def of(info: Mapping[str, Any]) -> "TrainedAs":
        """From a policy's `info`, or {"job": ...} of a file of rows."""
        job = info.get("job", {})
        known = {name: job[name] for name in ("algorithm", "steps") if name in job}
        for part in ("network", "view", "evaluation"):
            known |= {name: job[part][name] for name in JOB[part] if name in job.get(part, {})}
        data = job.get("data", {}).get("path", "")
        return TrainedAs(step=info.get("step"), facts=info.get("facts", {}), data=data, **known)

    @staticmethod
    def of_run(info: Mapping[str, Any], where: str) -> "TrainedAs":
        """The same of a training run; ValueError, naming `where`, if it is of something else."""
        schema.check(info["job"], JOB, f"{where}: not of a training run")
        return TrainedAs.of(info)

    @property
    def averaged(self) -> int:
        """Of its evaluations, how many of the last make the final figure."""
        return averaged(self.steps, self.every, self.final_evaluations)


def averaged(steps: int, every: int, asked: int) -> int:
    """Of a run's last evaluations: as many as asked for, but none from its first half."""
    return min(asked, max(1, -(-steps // every) // 2))
