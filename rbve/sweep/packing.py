"""Which members go into the next task of a cluster: minutes of work, and small at the end.

A task costs seconds to start, so it should take minutes; but the last tasks decide when all is
done, so each takes at most half of an equal share of what is left. How long members take is learned
from those at work. None of this changes a row.
"""

from collections.abc import Sequence

from rbve.spec import Spec
from rbve.sweep.plan import Bundle

TASK, LEAST = 180.0, 20.0  # seconds: what a task takes at most, and what is worth one
_UPDATE = 1e-3  # seconds, until one is measured


class Queue:
    """Members that wait, by program, in the order in which they were asked for."""

    def __init__(self, bundles: Sequence[Bundle], task: float = TASK) -> None:
        self._task = task
        self._waiting = [list(bundle.jobs) for bundle in bundles]
        self._program = {job.id: k for k, bundle in enumerate(bundles) for job in bundle.jobs}
        self._updates = [0.0] * len(bundles)
        self._seconds = [0.0] * len(bundles)

    def __len__(self) -> int:
        return sum(map(len, self._waiting))

    def take(self, slots: int) -> tuple[Spec, ...]:
        """Members for one task, where `slots` run at a time; those of a program stay together."""
        every = [(k, job) for k, members in enumerate(self._waiting) for job in members]
        share = sum(self.seconds(job) for _, job in every) / (2 * max(1, slots))
        left = min(self._task, max(share, LEAST))
        chosen: list[Spec] = []
        for k, job in every:
            if chosen and left < self.seconds(job):
                break
            left -= self.seconds(job)
            self._waiting[k].remove(job)
            chosen.append(job)
        return tuple(chosen)

    def put_back(self, jobs: Sequence[Spec]) -> None:
        """Before all others of their programs."""
        for job in reversed(jobs):
            self._waiting[self._program[job.id]].insert(0, job)

    def learn(self, job: Spec, updates: int, seconds: float) -> None:
        """So long its updates took, their evaluation too."""
        self._updates[self._program[job.id]] += updates
        self._seconds[self._program[job.id]] += seconds

    def seconds(self, job: Spec) -> float:
        """What the whole job takes, by its program, or by the others where it has not run yet."""
        k = self._program[job.id]
        updates, seconds = self._updates[k], self._seconds[k]
        if not updates:
            updates, seconds = sum(self._updates), sum(self._seconds)
        return job.steps * (seconds / updates if updates else _UPDATE)
