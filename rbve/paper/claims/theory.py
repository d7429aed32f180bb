"""What the paper proves or sketches, checked on the runs of rbve.paper.theory.

Lemmas are checked in rational numbers: a single violation is 'not here'. These experiments are
quick and exact, and had been run before their rules were written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rbve.paper.claims.claim import Claim
from rbve.paper.claims.verdicts import Judgement, Verdict, shown
from rbve.report.across import Interval, mean_interval
from rbve.report.statistics import Floats
from rbve.rows import Run

OFTEN = 0.5  # of random problems
PREMISE = {"w": 1.0, "factor": 1.0}  # the remark's own start, w > 0


def of(runs: Sequence[Run], **wanted: object) -> list[Run]:
    return [run for run in runs if all(run.spec.get(k) == v for k, v in wanted.items())]


def escapes(runs: Sequence[Run]) -> Judgement:
    """Reproduced: in every set-up, whether all transitions are seen at once or one at a time."""
    found = {batch: of(runs, **PREMISE, method="q", batch=batch) for batch in ("all", "one")}
    if not all(found.values()):
        return not_run()
    out = {batch: [run.last("escaped") == 1 for run in own] for batch, own in found.items()}
    words = (
        f"Q-learning escapes in {sum(out['all'])} of {len(out['all'])} set-ups (optimisers, first "
        f"layer fixed or learned) and, seeing one transition at a time, in {sum(out['one'])} of "
        f"{len(out['one'])} (optimisers, draws)"
    )
    every = [*out["all"], *out["one"]]
    return Judgement(verdict(all(every), any(every)), words)


def stays(runs: Sequence[Run]) -> Judgement:
    """Reproduced: in every set-up, of the transitions that have a next logged action."""
    found = of(runs, **PREMISE, method="bve", end="logged")
    if not found:
        return not_run()
    kept = [run.last("escaped") == 0 for run in found]
    loose = [run.last("escaped") == 1 for run in of(runs, **PREMISE, method="bve", end="bootstrap")]
    words = (
        f"BVE stays bounded in {sum(kept)} of {len(kept)} set-ups; given a bootstrap from the last "
        f"state, which has no logged action, it escapes in {sum(loose)} of {len(loose)}"
    )
    return Judgement(verdict(all(kept), any(kept)), words)


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
    return mean_interval({"all": numbered(run, prefix)})


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
    found = {
        run.spec["trap"]: row
        for run in runs
        if "layouts" in run.spec
        for row in run.rows
        if row.metric == "close"
    }
    if not found:
        return not_run()
    words = "within 5% of optimal, of random layouts whose optimal policy reaches the goal: "
    words += ", ".join(
        f"traps of {trap:g} {row.value:.0%} of {row.n}"
        for trap, row in sorted(found.items(), reverse=True)
    )
    good = [row.value > OFTEN for row in found.values()]
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
        "every optimiser, first layer fixed or learned, all transitions at once or one at a time: "
        "Q-learning escapes",
        escapes,
        "the paper's three transitions, two one-hot vectors swapped",
        experiment="divergence",
    ),
    Claim(
        "BVE avoids extrapolation errors in training",
        "section 'Related work'",
        "every optimiser, first layer fixed or learned, all transitions at once or one at a time: "
        "BVE stays bounded on the transitions that have a next logged action",
        stays,
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
        "One greedy step is optimal in deterministic processes whose only reward, L or H, comes at "
        "the end (γ = 1)",
        "appendix 'The surprising efficiency of 1-step', lemma 1",
        "no violation in random processes that meet the premises, in rational numbers",
        without_violation("end/full", "end/partial", "end/skewed"),
        EXACT,
        experiment="improvement",
    ),
    Claim(
        "Chain under uniform behaviour: one greedy step is optimal",
        "appendix 'The surprising efficiency of 1-step', lemma 2",
        "no violation in chains of 2 to 50 states (quick: 20) and 9 discounts, in rational numbers",
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
        "Many environments, it is assumed, share what makes one step effective",
        "appendix 'The surprising efficiency of 1-step'",
        "one step within 5% of optimal in more than half of random layouts, whatever traps cost",
        not_rare,
        "random grid worlds",
        experiment="gridworld",
    ),
)
