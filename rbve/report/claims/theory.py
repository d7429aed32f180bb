"""What the paper proves or sketches, checked on the runs of rbve.theory.

Lemmas are checked in rational numbers: a single violation is 'not here'. These experiments are
quick and exact, and had been run before their rules were written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rbve.report.across import Interval, interval, mean_of_tasks
from rbve.report.claims.claim import Claim
from rbve.report.rules import Judgement, Verdict, shown
from rbve.report.statistics import Floats
from rbve.rows import Run

OFTEN = 0.5  # of random problems


def of(runs: Sequence[Run], **wanted: object) -> list[Run]:
    return [run for run in runs if all(run.spec.get(k) == v for k, v in wanted.items())]


def escapes(runs: Sequence[Run]) -> Judgement:
    """Reproduced: under every optimiser, and never for BVE as logged."""
    q = of(runs, method="q", end="logged", batch="all")
    bve = of(runs, method="bve", end="logged", batch="all")
    if not q or not bve:
        return not_run()
    out = [run.last("escaped") == 1 for run in q]
    kept = [run.last("escaped") == 0 for run in bve]
    words = (
        f"Q-learning escapes in {sum(out)} of {len(out)} set-ups (4 optimisers, first layer fixed "
        f"or learned), BVE stays bounded in {sum(kept)} of {len(kept)}"
    )
    return Judgement(verdict(all(out) and all(kept), any(out) and any(kept)), words)


def bounded_whatever(runs: Sequence[Run]) -> Judgement:
    """Reproduced: also where BVE bootstraps from the state whose action was not logged."""
    found = of(runs, method="bve", end="bootstrap")
    if not found:
        return not_run()
    out = [run.last("escaped") == 1 for run in found]
    words = (
        f"given a bootstrap from the last state, which has no logged action, BVE escapes in "
        f"{sum(out)} of {len(out)} set-ups"
    )
    return Judgement(verdict(not any(out), not all(out)), words)


def extrapolates(runs: Sequence[Run]) -> Judgement:
    """Reproduced: for every approximator and number of observed actions."""
    if not runs:
        return not_run()
    chosen = [mean_error(run, "chosen_error/") for run in runs]
    good = [
        e.low > 0 and e.low > share_of(r, "unchosen_error/")
        for e, r in zip(chosen, runs, strict=True)
    ]
    few = [run for run in runs if run.spec["observed"] == min(r.spec["observed"] for r in runs)]
    words = (
        f"error of the action the maximum picks clearly above 0, and above the mean error, in "
        f"{sum(good)} of {len(good)} set-ups; with {few[0].spec['observed']} actions observed: "
    )
    words += ", ".join(
        f"{run.spec['approximator']} {shown(mean_error(run, 'chosen_error/'))} deviations, above "
        f"every true value in {share_of(run, 'exceeds/'):.0%}"
        for run in few
    )
    return Judgement(verdict(all(good), 2 * sum(good) >= len(good)), words)


def mean_error(run: Run, prefix: str) -> Interval:
    return interval({"all": numbered(run, prefix)}, mean_of_tasks)


def share_of(run: Run, prefix: str) -> float:
    return float(numbered(run, prefix).mean())


def numbered(run: Run, prefix: str) -> Floats:
    """One value per random problem, whose number follows the prefix."""
    values = [
        row.value
        for row in run.rows
        if row.metric.startswith(prefix) and row.metric.removeprefix(prefix).isdigit()
    ]
    return np.array(values, np.float64)


def without_violation(*families: str) -> Callable[[Sequence[Run]], Judgement]:
    def judge(runs: Sequence[Run]) -> Judgement:
        found = [run for run in runs if run.spec["family"] in families]
        if not found:
            return not_run()
        words = "; ".join(
            f"{run.spec['family']}: {run.last('violations'):g} violations in "
            f"{run.last('mdps'):g} processes"
            for run in found
        )
        clean = [run.last("violations") == 0 for run in found]
        return Judgement(verdict(all(clean), False), words)

    return judge


def one_step(runs: Sequence[Run]) -> Judgement:
    """Reproduced: random far below, one step within 5% of optimal and not optimal."""
    start = {run.spec["policy"]: run.last("value/0/0") for run in runs if "policy" in run.spec}
    low, middle, best = (start.get(name) for name in ("random", "one step", "optimal"))
    if low is None or middle is None or best is None:
        return not_run()
    words = f"value of the start: random {low:.3f}, one step {middle:.3f}, optimal {best:.3f}"
    near = 0.95 * best <= middle < best
    return Judgement(verdict(near and low < 0.5 * best, low < middle <= best), words)


def not_rare(runs: Sequence[Run]) -> Judgement:
    """Reproduced: one step is close in more than half of random layouts, whatever traps cost."""
    found = {run.spec["trap"]: run.last("close") for run in runs if "layouts" in run.spec}
    if not found:
        return not_run()
    words = "within 5% of optimal, of 500 random layouts each: " + ", ".join(
        f"traps of {trap:g} {close:.0%}"
        for trap, close in sorted(found.items(), reverse=True)
        if close is not None
    )
    good = [close is not None and close > OFTEN for close in found.values()]
    return Judgement(verdict(all(good), any(good)), words)


def verdict(whole: bool, part: bool) -> Verdict:
    return "reproduced" if whole else "partly" if part else "not here"


def not_run() -> Judgement:
    return Judgement("not run", "no runs")


EXACT = "exact"

CLAIMS = (
    Claim(
        "Q-learning can escape to infinity although the data holds the whole optimal path",
        "appendix 'Q-learning can escape to infinity'",
        "every optimiser, first layer fixed or learned: Q-learning escapes, BVE does not",
        escapes,
        "the paper's three transitions, two one-hot vectors swapped",
        experiment="divergence",
    ),
    Claim(
        "BVE cannot escape in this way",
        "appendix 'Q-learning can escape to infinity'",
        "BVE stays bounded also where it bootstraps from the state without a logged action",
        bounded_whatever,
        "the same three transitions",
        experiment="divergence",
    ),
    Claim(
        "A maximum over fitted values over-estimates: it picks what extrapolation errs high on",
        "figure 'Over-estimation from extrapolation'",
        "error of the picked action: interval above 0 and above the mean error, in every set-up",
        extrapolates,
        "random smooth values of 41 actions",
        experiment="extrapolation",
    ),
    Claim(
        "Deterministic processes with one reward at the end: one greedy step is optimal",
        "appendix 'The surprising efficiency of 1-step', lemma 1",
        "no violation in random processes that meet the premises, in rational numbers",
        without_violation("end/full", "end/partial", "end/skewed"),
        EXACT,
        experiment="improvement",
    ),
    Claim(
        "Chain under uniform behaviour: one greedy step is optimal",
        "appendix 'The surprising efficiency of 1-step', lemma 2",
        "no violation in chains of 2 to 50 states and 9 discounts, in rational numbers",
        without_violation("chain"),
        EXACT,
        experiment="improvement",
    ),
    Claim(
        "The same holds in two dimensions",
        "appendix 'The surprising efficiency of 1-step', remark",
        "no violation in open grids, whatever cell is the goal, in rational numbers",
        without_violation("grid/corner", "grid/any-goal"),
        EXACT,
        experiment="improvement",
    ),
    Claim(
        "A grid world: random ≪ one greedy step ≈ optimal",
        "figure 'Grid world example'",
        "our layout: random below half of optimal, one step within 5% of it but below",
        one_step,
        "a grid world of our own: the paper's layout is not in its text",
        experiment="gridworld",
        printed="random −9.518, one step 42.160, optimal 42.359",
    ),
    Claim(
        "Many environments share what makes one step effective",
        "appendix 'The surprising efficiency of 1-step'",
        "one step within 5% of optimal in more than half of random layouts, whatever traps cost",
        not_rare,
        "random grid worlds",
        experiment="gridworld",
    ),
)
