"""Judge policies by a log: estimates by every estimator, intervals, gates, and the difference to
what the log's own behaviour brings."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rbve.off_policy import estimators, gates, intervals
from rbve.off_policy.behaviour import BehaviourPolicy, Source
from rbve.off_policy.case import OpeCase
from rbve.off_policy.fits import FitPlan, Fits
from rbve.off_policy.gates import Gate
from rbve.off_policy.groups import Subgroup
from rbve.off_policy.log import DecisionLog
from rbve.off_policy.sensitivity import MOST_STEPS, Bounds, breakdown, sensitivity
from rbve.off_policy.values import ValueCheck

_ODDS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0)  # by which hidden reasons may change an action's odds
_FEW = 30  # episodes whose return is not the most common one


@dataclass(frozen=True)
class ValueEstimate:
    """By one estimator."""

    name: str
    label: str
    value: float
    interval: tuple[float, float] | None  # None where its spread over episodes tells nothing
    difference: float  # to the behaviour's own value, episode by episode
    difference_interval: tuple[float, float] | None
    failed: tuple[str, ...]  # names of gates
    influence: np.ndarray = field(repr=False, compare=False)  # (E,)

    @property
    def passed(self) -> bool:
        return not self.failed


@dataclass(frozen=True)
class PolicyJudgement:
    """Of one policy."""

    policy: str
    estimates: tuple[ValueEstimate, ...]
    gates: tuple[Gate, ...]
    agreement: float  # share of logged actions that the policy would take
    confounding: tuple[Bounds, ...] = ()  # bounds under hidden confounding; of short episodes alone
    breakdown: float | None = None  # odds at which the difference to the behaviour may be nothing

    @property
    def refusing(self) -> list[Gate]:
        """Gates that refuse DR, by which policies are ranked; others may fail of no consequence."""
        failed = next(each.failed for each in self.estimates if each.name == "dr")
        return [gate for gate in self.gates if gate.name in failed]

    @property
    def best(self) -> ValueEstimate | None:
        """The first estimate with an interval that passed all its gates."""
        return next((e for e in self.estimates if e.passed and e.interval is not None), None)


@dataclass(frozen=True)
class OpeResult:
    gamma: float
    level: float  # of intervals
    interval: str  # how they are made
    episodes: int
    decisions: int
    behaviour: float  # mean discounted return
    behaviour_interval: tuple[float, float]
    propensities: BehaviourPolicy = field(repr=False)
    judgements: tuple[PolicyJudgement, ...]
    notes: tuple[str, ...]
    returns: np.ndarray = field(repr=False)  # (E,) of the behaviour
    log: DecisionLog = field(repr=False)  # the episodes that judged
    values: Mapping[str, ValueCheck] = field(default_factory=dict)  # of policies that have them
    groups: tuple[Subgroup, ...] = ()
    by: str = ""  # the column of the groups
    acting: str = ""  # how trained policies act
    bellman_errors: Mapping[str, float] = field(default_factory=dict)  # held-out, if asked for

    def __getitem__(self, policy: str) -> PolicyJudgement:
        return next(each for each in self.judgements if each.policy == policy)


@dataclass(frozen=True)
class OpePlan:
    """How policies are judged.

    Attributes:
        propensities: "logged" or "estimated"; None = logged where the log has them.
        fit: Of fitted values and propensities.
        interval: student, bootstrap or bernstein.
        level: Probability that an interval holds the value.
    """

    propensities: Source | None = None
    fit: FitPlan = field(default_factory=FitPlan)
    interval: str = "student"
    level: float = intervals.LEVEL

    def __post_init__(self) -> None:
        if self.interval not in intervals.METHODS:
            known = ", ".join(intervals.METHODS)
            raise ValueError(f"interval is one of {known}; got {self.interval!r}")
        if not 0 < self.level < 1:
            raise ValueError(f"level lies between 0 and 1; got {self.level}")


def judge(
    log: DecisionLog,
    policies: Mapping[str, np.ndarray],
    fits: Mapping[str, Fits],
    behaviour: BehaviourPolicy,
    plan: OpePlan,
    beyond: Fits | None = None,
) -> OpeResult:
    """Judge policies, given as probabilities (R, A) of every row of the log's dataset.

    Args:
        log: The episodes that judge.
        policies: Their probabilities, by name.
        fits: Of each.
        behaviour: Who made the log.
        plan: How intervals are made.
        beyond: Fit of the behaviour, for what follows where episodes were cut.
    """
    returns = log.sum(log.discount * log.reward)
    if beyond is not None:
        later = log.gamma ** log.lengths.astype(np.float64) * beyond.v_final
        returns = returns + np.where(log.cut, later, 0.0)
    judged = []
    for name, table in policies.items():
        case = OpeCase(log, table[log.rows], behaviour.taken, fits[name].q, fits[name].v_final)
        judged.append(_judgement(name, case, behaviour, returns, plan))
    return OpeResult(
        gamma=log.gamma,
        level=plan.level,
        interval=plan.interval,
        episodes=log.episodes,
        decisions=len(log.action),
        behaviour=float(returns.mean()),
        behaviour_interval=intervals.METHODS[plan.interval](returns, plan.level),
        propensities=behaviour,
        judgements=tuple(judged),
        notes=(*log.notes, *_few_events(returns)),
        returns=returns,
        log=log,
    )


def _judgement(
    name: str, case: OpeCase, behaviour: BehaviourPolicy, returns: np.ndarray, plan: OpePlan
) -> PolicyJudgement:
    log = case.log
    influence = {each: estimators.load(each).estimate(case) for each in estimators.suited(log)}
    asked = _Gates.of(case, behaviour)
    own = {each: asked.of_estimator(each, behaviour.source) for each in influence}
    agreement = gates.agreement_gate(case, _comparable(influence, own, log))
    make = intervals.METHODS[plan.interval]
    estimates = []
    for each, values in influence.items():
        kind = estimators.load(each).ESTIMATOR
        failed = [gate.name for gate in (agreement, *own[each]) if not gate.passed]
        value = float(values.mean())
        if not math.isfinite(value):
            failed.append("no overlap")
        difference = values - returns
        estimates.append(
            ValueEstimate(
                name=each,
                label=kind.name_on(log),
                value=value,
                interval=make(values, plan.level) if kind.interval else None,
                difference=float(difference.mean()),
                difference_interval=make(difference, plan.level) if kind.interval else None,
                failed=tuple(failed),
                influence=values,
            )
        )
    taken = case.policy[np.arange(len(log.action)), log.action]
    bounds: tuple[Bounds, ...] = ()
    breaks = None
    if log.lengths.max() <= MOST_STEPS and log.last(case.weight).any():
        bounds = tuple(sensitivity(case, _ODDS))
        breaks = breakdown(case, float(returns.mean()))
    every = (agreement, *asked.every)
    return PolicyJudgement(name, tuple(estimates), every, float(taken.mean()), bounds, breaks)


@dataclass(frozen=True)
class _Gates:
    """Of one policy, by what an estimator makes use of."""

    common: tuple[Gate, ...]
    weighted: tuple[Gate, ...]
    known: Mapping[str, Gate]  # by estimator, of a value that is known
    fitted: tuple[Gate, ...]
    cut: bool  # much of the value lies beyond cuts, where it is a fitted one that no weight mends

    @staticmethod
    def of(case: OpeCase, behaviour: BehaviourPolicy) -> "_Gates":
        common = [gates.support_gate(case, behaviour, case.log.dataset.actions)]
        weighted = [*gates.weight_gates(case), *gates.horizon_gate(case)]
        if behaviour.source == "estimated":
            weighted.append(gates.calibration_gate(behaviour))
        # Of one decision a fit has seen no more such returns than the weights have; of several it
        # may have learned from parts of episodes.
        if gates.most_common(case.returns)[1].mean() < gates.RARE_RETURNS:
            (common if case.log.one_step else weighted).append(gates.events_gate(case))
        known = {}
        for name in estimators.suited(case.log):
            file = estimators.load(name)
            if file.ESTIMATOR.unheld:
                label = file.ESTIMATOR.name_on(case.log)
                known[name] = gates.known_value_gate(case, file.estimate, label)
        fitted = (gates.fit_gate(case),)
        return _Gates(
            tuple(common), tuple(weighted), known, fitted, _beyond_cuts(case) > gates.BEYOND_CUTS
        )

    @property
    def every(self) -> tuple[Gate, ...]:
        return (*self.common, *self.weighted, *self.known.values(), *self.fitted)

    def of_estimator(self, name: str, source: Source) -> list[Gate]:
        kind = estimators.load(name).ESTIMATOR
        # Where weights are right, what a fit lacks is made up for by them, up to a cut.
        made_up = kind.weights and source == "logged" and not self.cut
        asked = [*self.common, *(self.weighted if kind.weights else ())]
        asked += self.fitted if (kind.values or self.cut) and not made_up else ()
        return [*asked, *([self.known[name]] if name in self.known else [])]


def _beyond_cuts(case: OpeCase) -> float:
    """Share of the value, by size, that is a fitted one of what followed after a cut."""
    log = case.log
    if case.v_cut is None or not log.cut.any():
        return 0.0
    fitted = np.abs(log.gamma ** log.lengths.astype(np.float64) * case.v_cut)[log.cut].sum()
    logged = np.abs(log.discount * log.reward).sum()
    return float(fitted / (fitted + logged)) if fitted else 0.0


def _comparable(
    influence: Mapping[str, np.ndarray], own: Mapping[str, Sequence[Gate]], log: DecisionLog
) -> dict[str, np.ndarray]:
    """Those whose intervals should meet: of estimators that passed all other gates."""
    kinds = {each: estimators.load(each).ESTIMATOR for each in influence}
    return {
        kinds[each].name_on(log): values
        for each, values in influence.items()
        if kinds[each].interval and all(gate.passed for gate in own[each])
    }


def _few_events(returns: np.ndarray) -> list[str]:
    common, other = gates.most_common(returns)
    count = int(other.sum())
    if count >= _FEW or other.mean() >= gates.RARE_RETURNS:
        return []
    return [
        f"{count:,} of {len(returns):,} episodes return anything but {common:g}: all that is said "
        "here, of the behaviour too, rests on these few"
    ]


def every_row(log: DecisionLog, behaviour: BehaviourPolicy) -> np.ndarray:
    """(R, A) of the behaviour; where nothing is known of final rows, as in the last decision."""
    table = np.empty((len(log.dataset.action), log.dataset.num_actions))
    table[log.rows] = behaviour.every
    final = behaviour.final
    table[log.final_rows] = behaviour.every[log.offsets[1:] - 1] if final is None else final
    return table
