"""Gates: what has to hold before a number is called an estimate.

Each looks at one way in which an estimate can be wrong without looking wrong. A failed gate says
what failed and what would help.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rbve.off_policy.behaviour import BehaviourPolicy
from rbve.off_policy.case import OpeCase
from rbve.off_policy.intervals import student

LEAST_EFFECTIVE = 50  # episodes' worth of weights
LARGEST_SHARE = 0.1  # of all weights, one episode's
HEAVIEST_TAIL = 0.7  # Pareto k̂ (Vehtari et al., 2024): beyond it means converge hopelessly slowly
RARE = 0.01  # an action the behaviour takes less often is not supported,
RARE_OF_UNIFORM = 0.2  # or less often than so much of one legal action's share, if that is less
BEYOND_CUTS = 0.1  # share of the value that may be fitted without the fit being asked for
RARE_RETURNS = 0.5  # share of episodes up to which returns other than the most common are events
LEAST_EVENTS = 5  # episodes' worth of weights on returns other than the most common one
UNSUPPORTED = 0.05  # share of the policy's decisions
CALIBRATION = 0.05  # expected calibration error
FIT_BIAS = 0.1  # of the returns' deviation
DISAGREEMENT = 0.0  # of the returns' deviation, beyond what intervals allow
DEVIATIONS = 3.0  # standard errors that chance may do
MEAN_WEIGHT = 0.15  # how far from 1 weights may average, chance apart
_ROUNDING = 1e-9  # of a value that is 1 whatever the weights are


@dataclass(frozen=True)
class Gate:
    name: str
    passed: bool
    value: float
    limit: float
    said: str  # what was found, with the limit
    remedy: str = ""

    def __str__(self) -> str:
        return self.said if self.passed else f"{self.said}; {self.remedy}"


def effective_episodes(weight: np.ndarray) -> float:
    """(Σ w)² / Σ w²."""
    square = float((weight**2).sum())
    return float(weight.sum()) ** 2 / square if square else 0.0


def pareto_tail(weight: np.ndarray) -> float:
    """k̂ of a generalised Pareto distribution fitted to the largest weights (Zhang and Stephens,
    2009), as Pareto-smoothed importance sampling does; −inf where weights have no tail."""
    count = int(min(0.2 * len(weight), 3 * math.sqrt(len(weight))))
    if count < 5:
        return math.inf
    ordered = np.sort(weight)
    excess = ordered[-count:] - ordered[-count - 1]
    excess = excess[excess > 0]
    if len(excess) < 5:
        return -math.inf  # all alike
    size = len(excess)
    quarter = excess[int(size / 4 + 0.5) - 1]
    grid = 30 + int(math.sqrt(size))
    b = 1 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))
    b = b / (3 * quarter) + 1 / excess[-1]
    k = np.log1p(-b[:, None] * excess).mean(axis=1)
    likelihood = size * (np.log(-(b / k)) - k - 1)
    weights = np.exp(likelihood - likelihood.max())
    best = float((b * weights).sum() / weights.sum())
    k_hat = float(np.log1p(-best * excess).mean())
    return (k_hat * size + 5) / (size + 10)  # drawn towards .5, as they advise


def weight_gates(case: OpeCase) -> list[Gate]:
    """Of estimators that weigh episodes."""
    weight = case.log.last(case.weight)
    total = float(weight.sum())
    ess = effective_episodes(weight)
    share = float(weight.max()) / total if total else 1.0
    tail = pareto_tail(weight)
    error = float(weight.std(ddof=1)) / math.sqrt(len(weight)) if len(weight) > 1 else math.inf
    off, may = abs(float(weight.mean()) - 1), max(DEVIATIONS * error, MEAN_WEIGHT)
    longest = "shorter episodes" if not case.log.one_step else "more rows of the actions it takes"
    nearer = f"a policy nearer to the log (a larger ε or temperature), more episodes, or {longest}"
    return [
        Gate(
            "effective episodes", ess >= LEAST_EFFECTIVE, ess, LEAST_EFFECTIVE,
            f"weights are worth {ess:.3g} of {len(weight):,} episodes (at least {LEAST_EFFECTIVE})",
            f"needs {nearer}",
        ),
        Gate(
            "largest weight", share <= LARGEST_SHARE, share, LARGEST_SHARE,
            f"one episode has {share:.1%} of all weight (at most {LARGEST_SHARE:.0%})",
            f"needs {nearer}",
        ),
        Gate(
            "weight tail", tail <= HEAVIEST_TAIL, tail, HEAVIEST_TAIL,
            "the weights have no tail" if tail == -math.inf else
            f"the tail of the weights has k̂ = {tail:.2f} (at most {HEAVIEST_TAIL})",
            f"needs {nearer}",
        ),
        Gate(
            "mean weight", off <= may, off, may,
            f"weights average {weight.mean():.3g}, and 1 is what right propensities give "
            f"(± {may:.2g})",
            "the propensities do not fit the log, or the policy takes actions the log never took; "
            "check the column, or estimate them",
        ),
    ]  # fmt: skip


LATE = 0.1  # share of the rewards that may come after weights have lost their worth


def horizon_gate(case: OpeCase) -> list[Gate]:
    """How far into episodes weights reach: each decision multiplies one more ratio, and after some
    of them a handful of episodes has all the weight. None on logs of one decision."""
    log = case.log
    if log.one_step:
        return []
    reach = log.worth(case.weight, LEAST_EFFECTIVE)
    size = np.abs(log.discount * case.reward)
    total = float(size.sum())
    late = float(size[log.step >= reach].sum()) / total if total else 0.0
    longest = int(log.lengths.max())
    return [
        Gate(
            "horizon", late <= LATE, late, LATE,
            f"weights are worth {LEAST_EFFECTIVE} episodes up to decision {reach:,} of at most "
            f"{longest:,}, and {late:.0%} of the rewards come later (at most {LATE:.0%})",
            "needs a shorter horizon (a smaller --gamma), a policy nearer to the log (a larger ε "
            "or temperature), or more episodes",
        )
    ]  # fmt: skip


def most_common(returns: np.ndarray) -> tuple[float, np.ndarray]:
    """The most common return, and (E,) where it is another."""
    values, counts = np.unique(returns, return_counts=True)
    common = float(values[counts.argmax()])
    return common, returns != common


def events_gate(case: OpeCase) -> Gate:
    """Of estimators that weigh episodes, where few returns differ, as clicks do: weights may be
    healthy, and the episodes that a spread needs to be seen may be missing among them. Without any
    an interval has no width, however little is known."""
    common, other = most_common(case.returns)
    weight = case.log.last(case.weight)
    events = effective_episodes(weight[other])
    # What to expect of other episodes, by the share of such returns in the whole log.
    expected = float(other.mean()) * effective_episodes(weight)
    more = "more"
    if 0 < expected < LEAST_EVENTS:
        more = f"about {float(f'{LEAST_EVENTS / expected * len(weight):.2g}'):,.0f}"
    return Gate(
        "events", events >= LEAST_EVENTS, events, LEAST_EVENTS,
        f"weights are worth {events:.3g} episodes that return anything but {common:g} (at least "
        f"{LEAST_EVENTS})",
        f"needs {more} episodes, since such returns are rare, or a policy nearer to the log",
    )  # fmt: skip


def known_value_gate(case: OpeCase, estimate: Callable[[OpeCase], np.ndarray], label: str) -> Gate:
    """Of estimators that nothing holds back where large weights are missing by chance, or one too
    many is there: they show it on a value that is known.

    What they make of rewards that give every episode a return of 1 differs from 1 as weights
    happen to differ, and what they make of the real rewards goes the same way.
    """
    values = estimate(case.with_returns_of_one())
    low, high = student(values)
    off, may = abs(float(values.mean()) - 1), (high - low) / 2 + _ROUNDING
    return Gate(
        f"known value of {label}", off <= may, off, may,
        f"{label} makes {values.mean():.3g} ± {(high - low) / 2:.2g} of a value that is 1",
        "go by DR or WIS, or needs a policy nearer to the log, or more episodes",
    )  # fmt: skip


def support_gate(case: OpeCase, behaviour: BehaviourPolicy, actions: Sequence[str]) -> Gate:
    """How much of the policy's choices the behaviour hardly ever makes.

    Of many actions each is rare: what counts as hardly ever is then a part of a uniform choice.
    """
    legal = case.log.legal
    count = np.array([case.policy.shape[1]]) if legal is None else legal.sum(axis=1)
    limit = np.minimum(RARE, RARE_OF_UNIFORM / np.maximum(count, 1))
    rare = case.policy * (behaviour.every < limit[:, None])
    share = float(rare.sum() / len(rare))
    most = int(rare.sum(axis=0).argmax())
    return Gate(
        "support", share <= UNSUPPORTED, share, UNSUPPORTED,
        f"{share:.1%} of its choices are actions the behaviour takes in under "
        f"{100 * limit.max():.3g}% of such states (at most {UNSUPPORTED:.0%})",
        f"collect more decisions with action {actions[most]!r}, or stay nearer to the log",
    )  # fmt: skip


def calibration_gate(behaviour: BehaviourPolicy) -> Gate:
    """Of estimated propensities."""
    error = behaviour.calibration.error
    return Gate(
        "calibration", error <= CALIBRATION, error, CALIBRATION,
        f"estimated propensities are off by {error:.1%} on average (at most {CALIBRATION:.0%})",
        "log the probabilities with which actions are taken, or give more episodes",
    )  # fmt: skip


def fit_gate(case: OpeCase) -> Gate:
    """Whether the fitted values explain held-out returns of the behaviour without bias.

    Along an episode Σ_t γ^t (r_t + γ V̂(s_{t+1}) − Q̂(s_t, a_t)) is 0 on average for the true Q.
    """
    log = case.log
    following = np.roll(case.v, -1)
    following[log.offsets[1:] - 1] = 0.0  # what follows a cut is in the reward
    residual = log.sum(log.discount * (case.reward + log.gamma * following - case.q_taken))
    spread = float(case.returns.std()) or 1.0
    low, high = student(residual)
    nearest = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    bias = nearest / spread
    return Gate(
        "fit", bias <= FIT_BIAS, bias, FIT_BIAS,
        f"on held-out episodes the fit is off by at least {bias:.0%} of the returns' deviation "
        f"(at most {FIT_BIAS:.0%})",
        "fit longer (--fit-steps), with a larger network, or give more episodes",
    )  # fmt: skip


def agreement_gate(case: OpeCase, values: Mapping[str, np.ndarray]) -> Gate:
    """Whether the estimators agree within their intervals and a margin."""
    spread = float(case.returns.std()) or 1.0
    bounds = {name: student(each) for name, each in values.items() if np.isfinite(each).all()}
    gap, pair = 0.0, ("", "")
    for one, (low, _) in bounds.items():
        for other, (_, high) in bounds.items():
            if low - high > gap:
                gap, pair = low - high, (one, other)
    apart = gap / spread
    return Gate(
        "agreement", apart <= DISAGREEMENT, apart, DISAGREEMENT,
        "the estimators agree" if not gap else
        f"{pair[0]} and {pair[1]} contradict each other: their intervals are {apart:.1%} of the "
        "returns' deviation apart",
        "trust none of them: more episodes, or a policy nearer to the log",
    )  # fmt: skip
