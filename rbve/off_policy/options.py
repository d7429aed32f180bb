"""What a user may say about `rbve select`: its flags, and the keywords of rbve.select.

Nothing here needs JAX, so that --help need not wait for it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class SelectOptions:
    """How candidates are trained and judged.

    Attributes:
        algorithm: Candidates: names, or paths to .py files. Default: bc, filtered_bc, bve, rbve,
            cql and bcq, some with two settings; none of them where there are runs.
        runs: Folders of finished runs, candidates too; trained on this log with --holdout.
        steps: Updates of each candidate.
        checkpoints: How many stages of each candidate are judged, the last among them.
        holdout: Share of the episodes that judge and do not train; of runs it is their own.
        gamma: Discount. Default: that of the runs, else 0.99.
        seed: Seed of the split, of training and of fits.
        epsilon: Share of random legal actions when candidates act.
        temperature: Act by softmax(scores / temperature); 0 = by the best action.
        propensities: Logged, or estimated by cloning. Default: logged where the log has them.
        interval: How intervals are made over episodes.
        level: Probability that an interval holds the value.
        fit_steps: Updates of each fit of values and propensities.
        hidden: Units per dense layer of the networks.
        memory: Units of an LSTM, for decisions that need to remember; 0 = none.
        by: Column of the observations: values and actions by its levels too.
        bellman: Also compare Q-functions by supervised Bellman validation, a fit more for each.
    """

    algorithm: tuple[str, ...] = ()
    runs: tuple[Path, ...] = ()
    steps: int = 30_000
    checkpoints: int = 3
    holdout: float = 0.3
    gamma: float | None = None
    seed: int = 0
    epsilon: float = 0.0
    temperature: float = 0.0
    propensities: Literal["logged", "estimated"] | None = None
    interval: Literal["student", "bootstrap", "bernstein"] = "student"
    level: float = 0.9
    fit_steps: int = 10_000
    hidden: tuple[int, ...] = ()
    memory: int = 0
    by: str | None = None
    bellman: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.holdout < 1:
            raise ValueError(f"holdout is a share between 0 and 1; got {self.holdout:g}")
        if not 1 <= self.checkpoints <= self.steps:
            raise ValueError(f"checkpoints lie in [1, {self.steps}]; got {self.checkpoints}")
