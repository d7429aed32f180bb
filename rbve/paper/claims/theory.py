"""What the paper proves or sketches, checked on the runs of rbve.paper.theory.

Lemmas are checked in rational numbers: a single violation is 'not reproduced'. These experiments
are quick and exact, and had been run before their rules were written.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from rbve.paper.claims import Claim
from rbve.paper.judging.verdicts import Judgement, graded, not_run, shown
from rbve.paper.theory import numbered
from rbve.report.statistics import mean_interval
from rbve.rows import Run

PLACE = 4
_OFTEN = 0.5  # of random problems
_PREMISE = {"w": 1.0, "factor": 1.0}  # the remark's own start, w > 0
_EXACT = "exact"
_ONE_STEP = "appendix 'The surprising efficiency of 1-step'"

_divergence = partial(Claim, experiment="divergence")
_improvement = partial(Claim, here=_EXACT, experiment="improvement")
_gridworld = partial(Claim, experiment="gridworld")


def of(runs: Sequence[Run], **spec: object) -> list[Run]:
    return [run for run in runs if all(run.spec.get(k) == v for k, v in spec.items())]


def escapes(runs: Sequence[Run]) -> Judgement:
    """Reproduced: in every set-up, whether all transitions are seen at once or one at a time."""
    full, single = (
        [run.last("escaped") == 1 for run in of(runs, **_PREMISE, method="q", batch=batch)]
        for batch in ("all", "one")
    )
    if not full or not single:
        return not_run()
    words = (
        f"Q-learning escapes in {sum(full)} of {len(full)} set-ups "
        "(optimisers, first layer fixed or learned) and, seeing one transition at a time, in "
        f"{sum(single)} of {len(single)} (optimisers, draws)"
    )
    return Judgement(graded(all(full + single), any(full + single)), words)


def stays(runs: Sequence[Run]) -> Judgement:
    """Reproduced: in every set-up, of the transitions that have a next logged action."""
    kept, loose = (
        [run.last("escaped") == value for run in of(runs, **_PREMISE, method="bve", end=end)]
        for end, value in (("logged", 0), ("bootstrap", 1))
    )
    if not kept:
        return not_run()
    words = (
        f"BVE stays bounded in {sum(kept)} of {len(kept)} set-ups; given a bootstrap from the last "
        f"state, which has no logged action, it escapes in {sum(loose)} of {len(loose)}"
    )
    return Judgement(graded(all(kept), any(kept)), words)


def extrapolates(runs: Sequence[Run]) -> Judgement:
    """Reproduced: for every approximator and number of observed actions."""
    if not runs:
        return not_run()

    def values(run: Run, metric: str) -> np.ndarray:
        return np.array(list(numbered(run, f"{metric}/").values()), np.float64)

    errors = [mean_interval({"all": values(run, "chosen_error")}) for run in runs]
    good = [
        error.low > 0 and error.low > float(values(run, "unchosen_error").mean())
        for error, run in zip(errors, runs, strict=True)
    ]
    fewest = min(run.spec["observed"] for run in runs)
    words = (
        f"error of the action the maximum picks clearly above 0, and above the mean error, in "
        f"{sum(good)} of {len(good)} set-ups; with {fewest} actions observed: "
    )
    words += ", ".join(
        f"{run.spec['approximator']} {shown(error)} deviations, above "
        f"every true value in {float(values(run, 'exceeds').mean()):.0%}"
        for error, run in zip(errors, runs, strict=True)
        if run.spec["observed"] == fewest
    )
    return Judgement(graded(all(good), 2 * sum(good) >= len(good)), words)


def without_violation(*families: str) -> Callable[[Sequence[Run]], Judgement]:
    def judge(runs: Sequence[Run]) -> Judgement:
        own = [run for run in runs if run.spec["family"] in families]
        if not own:
            return not_run()
        words = "; ".join(
            f"{run.spec['family']}: {run.last('violations'):g} violations in "
            f"{run.last('mdps'):g} processes"
            for run in own
        )
        return Judgement(graded(all(run.last("violations") == 0 for run in own), False), words)

    return judge


def one_step(runs: Sequence[Run]) -> Judgement:
    """Reproduced: random far below, one step within 5% of optimal and not optimal."""
    start = {run.spec["policy"]: run.last("value/0/0") for run in runs if "policy" in run.spec}
    low, middle, best = (start.get(name) for name in ("random", "one step", "optimal"))
    if low is None or middle is None or best is None:
        return not_run()
    words = f"value of the start: random {low:.3f}, one step {middle:.3f}, optimal {best:.3f}"
    near = 0.95 * best <= middle < best
    return Judgement(graded(near and low < 0.5 * best, low < middle <= best), words)


def not_rare(runs: Sequence[Run]) -> Judgement:
    """Reproduced: one step is close in more than half of random layouts, whatever traps cost."""
    layouts = [run for run in runs if "layouts" in run.spec]
    close = {r.spec["trap"]: row for r in layouts for row in r.rows if row.metric == "close"}
    if not close:
        return not_run()
    words = "within 5% of optimal, of random layouts whose optimal policy reaches the goal: "
    words += ", ".join(
        f"traps of {trap:g} {row.value:.0%} of {row.n}"
        for trap, row in sorted(close.items(), reverse=True)
    )
    good = [row.value > _OFTEN for row in close.values()]
    return Judgement(graded(all(good), any(good)), words)


CLAIMS = (
    _divergence(
        "Q-learning can escape to infinity although the data holds the whole optimal path",
        "appendix 'Q-learning can escape to infinity'",
        "every optimiser, first layer fixed or learned, all transitions at once or one at a time: "
        "Q-learning escapes",
        escapes,
        "the paper's three transitions, two one-hot vectors swapped",
        figure="values",
    ),
    _divergence(
        "BVE avoids extrapolation errors in training",
        "section 'Related work'",
        "every optimiser, first layer fixed or learned, all transitions at once or one at a time: "
        "BVE stays bounded on the transitions that have a next logged action",
        stays,
        "the same three transitions",
    ),
    Claim(
        "A maximum over fitted values over-estimates: it picks what extrapolation errs high on",
        "figure 'Over-estimation from extrapolation'",
        "error of the picked action: interval above 0 and above the mean error, in every set-up",
        extrapolates,
        "random smooth values of 41 actions",
        experiment="extrapolation",
    ),
    _improvement(
        "One greedy step is optimal in deterministic processes whose only reward, L or H, comes at "
        "the end (γ = 1)",
        f"{_ONE_STEP}, lemma 1",
        "no violation in random processes that meet the premises, in rational numbers",
        without_violation("end/full", "end/partial", "end/skewed"),
        figure="families",
    ),
    _improvement(
        "Chain under uniform behaviour: one greedy step is optimal",
        f"{_ONE_STEP}, lemma 2",
        "no violation in chains of 2 to 50 states (quick: 20) and 9 discounts, in rational numbers",
        without_violation("chain"),
    ),
    _improvement(
        "The same holds in two dimensions",
        f"{_ONE_STEP}, remark",
        "no violation in open grids, whatever cell is the goal, in rational numbers",
        without_violation("grid/corner", "grid/any-goal"),
    ),
    _gridworld(
        "A grid world: random ≪ one greedy step ≈ optimal",
        "figure 'Grid world example'",
        "our layout: random below half of optimal, one step within 5% of it but below",
        one_step,
        "a grid world of our own: the paper's layout is not in its text",
        printed="random −9.518, one step 42.160, optimal 42.359",
    ),
    _gridworld(
        "Many environments, it is assumed, share what makes one step effective",
        _ONE_STEP,
        "one step within 5% of optimal in more than half of random layouts, whatever traps cost",
        not_rare,
        "random grid worlds",
    ),
)
