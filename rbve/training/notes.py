"""What one should know of data before training on it."""

from collections.abc import Iterable, Sequence
from typing import Any

from rbve import ranking
from rbve.data.dataset import Dataset
from rbve.parts import FEWEST_EPISODES
from rbve.spec import Spec


def notes(name: str, data: Dataset, jobs: Iterable[Spec]) -> list[str]:
    """What the algorithms of the jobs make of fragments in the data."""
    fragments = ~data.complete
    unknown = int((fragments & ~data.returns_known).sum())
    count = int(fragments.sum())
    if not count:
        return []
    weigh, leave, choose = [], [], False
    for job in jobs:
        if job.load_algorithm().bootstrap == "return":
            leave.append(job.algorithm)
        elif isinstance(chosen := job.load_options(), ranking.Options) and chosen.filter != "none":
            weigh.append(job.algorithm)
        choose |= job.algorithm == "filtered_bc"
    does = []
    if weigh and unknown < count:
        does.append(
            f"the weights of {_listed(weigh)} go by the return of the whole episode instead"
        )
    if weigh and unknown:
        does.append(
            f"nor is the return of {unknown:,} of them, where {_listed(weigh)} weighs all rows by "
            "1 (--episode-return names a column of returns when converting)"
        )
    if leave:
        does.append(f"{_listed(leave)} leaves them out")
    if choose and unknown < count:
        does.append(
            "filtered_bc keeps those of episodes whose return exceeds the mean over fragments, in "
            "which an episode counts as often as it has fragments"
        )
    if not does:
        return []
    return [
        f"{name}: {count:,} of {data.num_episodes:,} episodes are fragments, such as SARSA "
        f"tuples, whose reward-to-go V̂ is not known: {'; '.join(does)}"
    ]


def _listed(names: list[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def period_notes(jobs: Iterable[Spec]) -> list[str]:
    """How often targets are copied, where anything is learned from them."""
    return [
        f"the target network is copied every {period:,} updates of {steps:,} (--target-period)"
        for steps, period in sorted(
            {
                (job.steps, job.resolved().optimiser.target_period)
                for job in jobs
                if job.load_algorithm().bootstrap in ("state", "pair")
            }
        )
    ]


def holdout_notes(
    jobs: Sequence[Spec], datasets: Sequence[Dataset], held_out: Sequence[Dataset | None]
) -> list[str]:
    """Of data with too few episodes to hold some out."""
    notes = [
        f"{job.data.path} has {data.num_episodes} of the {FEWEST_EPISODES} episodes from which on "
        "some are held out: all of them train, and nothing judges what is learned"
        for job, data, held in zip(jobs, datasets, held_out, strict=True)
        if held is None and job.data.holdout
    ]
    return list(dict.fromkeys(notes))


def weight_notes(jobs: Sequence[Spec], options: Any, g_scale: Sequence[float]) -> list[str]:
    """Of members whose ranking weights are to prefer some rows of data that has no better ones."""
    if not isinstance(options, ranking.Options) or options.filter == "none":
        return []
    if options.filter == "advantage" and options.normalise == "none":
        return []  # goes by Q as well
    weight = 0 if options.filter == "binary" else 1
    constant = {
        job.data.path: job.algorithm_name for job, g in zip(jobs, g_scale, strict=True) if g == 0
    }
    return [
        f"V̂ is the same in every row of {path}: the ranking weights of {algorithm} are all {weight}"
        for path, algorithm in constant.items()
    ]
