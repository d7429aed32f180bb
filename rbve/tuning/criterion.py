"""The figure that a search goes by: higher is better, whatever it is of."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rbve import rows
from rbve.data.dataset import Dataset
from rbve.evaluation.metric import registered
from rbve.off_policy.fits import FitPlan
from rbve.off_policy.judge import OpePlan
from rbve.off_policy.rule import guess
from rbve.off_policy.run import Question, answer
from rbve.policy import Policy
from rbve.registry import did_you_mean
from rbve.spec import Spec
from rbve.training.run import POLICY, Progress
from rbve.tuning.options import TuneOptions

RETURN, OFFLINE = "return", "offline"


@dataclass(frozen=True)
class Criterion:
    """A figure of finished runs.

    Attributes:
        name: In tables and pages.
        maximise: Whether more of it is better.
        values: (jobs, out, on_progress) -> the figure of each; NaN where a run diverged.
    """

    name: str
    maximise: bool
    values: Callable[[Sequence[Spec], Path, Callable[[Progress], None]], list[float]]


def chosen(options: TuneOptions, env: str | None, dataset: Dataset, mark: str) -> Criterion:
    """By its name, where the environment and the data have it."""
    name = options.criterion
    if name == "auto":
        name = RETURN if env else OFFLINE
    if name == RETURN:
        if env is None:
            raise ValueError('criterion "return" needs an environment; add --env')
        return Criterion("return", True, lambda jobs, out, tell: _of_rows(jobs, out, "return"))
    if env is not None:
        raise ValueError(f"criterion {name!r} is of held-out episodes; leave --env out")
    if name == OFFLINE:
        return Criterion(
            "value by held-out episodes", True,
            lambda jobs, out, tell: _offline(jobs, out, tell, dataset, mark, options),
        )  # fmt: skip
    known = {
        key: each for key, each in registered().items()
        if key.startswith("heldout_") and each.better in ("higher", "lower")
    }  # fmt: skip
    if name not in known:
        choices = (RETURN, OFFLINE, *known)
        hint = did_you_mean(name, choices)
        raise ValueError(f"no criterion {name!r}.{hint} Known: auto, {', '.join(choices)}")
    higher = known[name].better == "higher"
    return Criterion(known[name].label, higher, lambda jobs, out, tell: _of_rows(jobs, out, name))


def _of_rows(jobs: Sequence[Spec], out: Path, name: str) -> list[float]:
    """The final figure that a run's own rows hold."""
    values = []
    for job in jobs:
        run = rows.read(out / "runs" / job.id / rows.FILE)
        value = None if run.last("diverged_at") is not None else run.last(f"final/{name}")
        if value is None and run.last("diverged_at") is None:
            raise ValueError(f"{job.algorithm_name} has no figure {name}; choose another criterion")
        values.append(math.nan if value is None else value)
    return values


def _offline(
    jobs: Sequence[Spec],
    out: Path,
    on_progress: Callable[[Progress], None],
    dataset: Dataset,
    mark: str,
    options: TuneOptions,
) -> list[float]:
    """As `rbve select` ranks candidates: doubly robust, or fitted where that is refused."""
    policies = {job.id: Policy.load(out / "runs" / job.id / POLICY) for job in jobs}
    sound = {k: each for k, each in policies.items() if "diverged_at" not in each.info}
    found: Mapping[str, float] = {}
    if sound:
        fit = FitPlan(options.fit_steps, seed=options.seed, out=out / "fits")
        result = answer(dataset, Question(sound, fingerprint=mark), OpePlan(fit=fit), on_progress)
        found = {each.policy: guess(each, result.returns) for each in result.judgements}
    return [found.get(job.id, math.nan) for job in jobs]
