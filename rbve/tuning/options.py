"""What a user may say about `rbve tune`: its flags, and the keywords of rbve.tune.

Nothing here needs JAX, so that --help need not wait for it.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class TuneOptions:
    """What is searched, how, and by which figure.

    Attributes:
        algorithm: One or more algorithms, or paths to .py files; of several, which one is searched
            too.
        search: What to vary, NAME=LOW..HIGH, NAME=LOW..HIGH,log or NAME=A,B,C; a field (gamma,
            hidden=64,128x128) or a setting of the algorithm (lam=0.001..5,log). Default: the
            learning rate, and the settings of each algorithm that matter most.
        set: A setting or field that stays, NAME=VALUE.
        trials: How many combinations are tried.
        sampler: Who proposes them: tpe goes by the trials so far, random does not.
        at_once: Trials of a cohort, proposed together and compared at every rung.
        steps: Updates of a trial that is never stopped.
        rungs: How often a trial is judged; 1 = at its end alone. From a rung on go the best
            1/reduction of all trials that have come to it so far.
        reduction: By this factor trials become fewer and longer from rung to rung.
        env: Where policies are played: a name, "auto" = where the data was recorded, "none" =
            nowhere, so that held-out episodes judge.
        criterion: What is searched for. auto = "return" with an environment (mean return of the
            last evaluations), else "offline": the number by which `rbve select` ranks candidates.
            Or a figure of held-out episodes: heldout_value_rmse, heldout_log_loss, ...
        eval_episodes: Episodes per evaluation in the environment.
        holdout: Share of the episodes that judge and do not train; of the offline criteria.
        fit_steps: Updates of each fit of values that the offline criterion takes.
        seed: Seed of proposals, training and fits.
    """

    algorithm: tuple[str, ...] = ("rbve",)
    search: tuple[str, ...] = ()
    set: tuple[str, ...] = ()
    trials: int = 27
    sampler: Literal["tpe", "random"] = "tpe"
    at_once: int = 9
    steps: int = 20_000
    rungs: int = 3
    reduction: int = 3
    env: str = "none"
    criterion: str = "auto"
    eval_episodes: int = 100
    holdout: float = 0.3
    fit_steps: int = 5_000
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("trials", "at_once", "steps", "rungs", "fit_steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is 1 or more; got {getattr(self, name)}")
        if self.reduction < 2:
            raise ValueError(f"reduction is 2 or more; got {self.reduction}")
        if not self.algorithm:
            raise ValueError("algorithm needs at least one value")
        if not 0 < self.holdout < 1:
            raise ValueError(f"holdout is a share between 0 and 1; got {self.holdout:g}")
        if self.rung_steps[0] < 1 or len(set(self.rung_steps)) < self.rungs:
            raise ValueError(
                f"{self.steps} updates are too few for {self.rungs} rungs, each {self.reduction} "
                "times as long as the one before; give more --steps or fewer --rungs"
            )

    @property
    def rung_steps(self) -> list[int]:
        """Updates up to each rung: whole multiples of those to the first."""
        first = self.steps // self.reduction ** (self.rungs - 1)
        return [*(first * self.reduction**k for k in range(self.rungs - 1)), self.steps]
