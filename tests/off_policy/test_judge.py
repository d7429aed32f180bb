"""Policies judged by a log: estimates, intervals, gates and the difference to the behaviour."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.ope import (
    Process,
    behaviour_on,
    case_of,
    one_step,
    process,
    record,
    standard_error,
    state_of,
)

from rbve.off_policy import estimators
from rbve.off_policy import fits as fits_module
from rbve.off_policy import run as run_module
from rbve.off_policy.behaviour import BehaviourPolicy
from rbve.off_policy.fits import FitPlan, Fits, fit_values
from rbve.off_policy.judge import OpePlan, OpeResult, judge
from rbve.off_policy.log import DecisionLog
from rbve.off_policy.run import Question, answer

MADE = process(1, ends=0.25, limit=4)
LOG = DecisionLog.of(record(MADE, 4000), MADE.gamma)
STATE = state_of(LOG.dataset)
HALF = (MADE.policy + MADE.behaviour) / 2
BEHAVIOUR_VALUE = float(MADE.start @ (MADE.behaviour * MADE.q_of(MADE.behaviour)).sum(axis=1))


def fits_of(made: Process, table: np.ndarray, shift: float = 0.0) -> Fits:
    q = made.q_of(table) + shift
    return Fits(q[STATE[LOG.rows]], (table * q).sum(axis=1)[STATE[LOG.final_rows]])


def judged(
    shift: float = 0.0, behaviour: BehaviourPolicy | None = None, **plan: object
) -> OpeResult:
    """The process' policy and the behaviour itself, with exact fits."""
    tables = {"new": MADE.policy, "same": MADE.behaviour}
    fits = {name: fits_of(MADE, table, shift) for name, table in tables.items()}
    own = behaviour or replace(behaviour_on(case_of(MADE, LOG.dataset), MADE), source="logged")
    return judge(
        LOG,
        {name: table[STATE] for name, table in tables.items()},
        fits,
        own,
        OpePlan(**plan),  # type: ignore[arg-type]
        fits_of(MADE, MADE.behaviour),
    )


def test_every_suited_estimator_tells_the_exact_value() -> None:
    found = judged()
    assert LOG.cut.any()
    assert [each.name for each in found["new"].estimates] == estimators.suited(LOG)
    for each in found["new"].estimates:
        error = standard_error(each.influence)
        assert abs(each.value - MADE.value) < 4 * error
        assert each.passed or each.failed == (f"known value of {each.label}",)  # by chance
        assert (each.interval is None) == (each.name == "fqe")
        if each.interval is not None:
            assert each.interval[0] < each.value < each.interval[1]
    assert found["new"].best is not None
    assert found["new"].best.name == "dr"
    taken = MADE.policy[STATE[LOG.rows], LOG.action]
    assert found["new"].agreement == pytest.approx(taken.mean())


def test_the_behaviour_s_own_value_counts_what_a_cut_hides() -> None:
    found = judged()
    low, high = found.behaviour_interval
    assert abs(found.behaviour - BEHAVIOUR_VALUE) < high - low
    assert LOG.sum(LOG.discount * LOG.reward).mean() < found.behaviour - 5 * (high - low)


def test_beyond_a_cut_the_behaviour_acts_by_what_it_sees_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not as in the decision before: the table that its values are fitted to."""
    final = MADE.behaviour[STATE[LOG.final_rows]]
    known = replace(behaviour_on(case_of(MADE, LOG.dataset), MADE), final=final)
    tables: list[np.ndarray] = []

    def fit_values(log: DecisionLog, policies: list[np.ndarray], *rest: object) -> list[Fits]:
        tables.extend(policies)
        return [fits_of(MADE, MADE.behaviour if len(tables) == 1 else MADE.policy)]

    monkeypatch.setattr(run_module, "behaviour_of", lambda *args: known)
    monkeypatch.setattr(run_module, "fit_values", fit_values)
    question = Question({"new": MADE.policy[STATE]}, gamma=MADE.gamma)
    found = answer(LOG.dataset, question, OpePlan())
    np.testing.assert_array_equal(tables[0], MADE.behaviour[STATE])
    low, high = found.behaviour_interval
    assert abs(found.behaviour - BEHAVIOUR_VALUE) < high - low


def test_the_difference_is_paired() -> None:
    """Of the behaviour to itself next to nothing: episodes are compared with themselves."""
    found = judged()
    same = {each.name: each for each in found["same"].estimates}
    for name in ("trajectory_is", "pdis", "wis"):
        assert same[name].difference == pytest.approx(0.0, abs=1e-6)
    truth = MADE.value - BEHAVIOUR_VALUE
    for each in found["new"].estimates:
        if each.difference_interval is not None:
            low, high = each.difference_interval
            assert each.difference == pytest.approx(each.value - found.behaviour)
            assert abs(each.difference - truth) < high - low


def test_failed_gates_stay_with_those_they_concern() -> None:
    whole = process(1, ends=0.25)
    log = DecisionLog.of(record(whole, 2000), whole.gamma)
    assert not log.cut.any()
    state = state_of(log.dataset)
    off = Fits(whole.q[state[log.rows]] + 1.0, np.zeros(log.episodes))
    for source, biased in (("logged", {"fqe"}), ("estimated", {"dr", "wdr", "fqe"})):
        own = replace(behaviour_on(case_of(whole, log.dataset), whole), source=source)
        found = judge(log, {"new": whole.policy[state]}, {"new": off}, own, OpePlan())["new"]
        # By right weights DR mends it.
        assert {each.name for each in found.estimates if "fit" in each.failed} == biased
    # What a fit adds beyond a cut no weight mends.
    own = replace(behaviour_on(case_of(MADE, LOG.dataset), MADE), source="logged")
    assert all("fit" in each.failed for each in judged(shift=1.0, behaviour=own)["new"].estimates)
    calibrated = behaviour_on(case_of(MADE, LOG.dataset), MADE, error=0.2)
    estimated = judged(behaviour=calibrated)["new"]
    own_value = {"known value of IS", "known value of PDIS"}  # of these weights, by chance
    assert {gate.name for gate in estimated.gates if not gate.passed} == {"calibration", *own_value}
    failed = {each.name: set(each.failed) - own_value for each in estimated.estimates}
    assert failed.pop("fqe") == set()
    assert all(names == {"calibration"} for names in failed.values())
    assert estimated.best is None


def test_estimators_that_take_bias_on_veto_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shrunk estimate far from the others is its own matter; DR stands."""
    made = one_step(1)
    log = DecisionLog.of(record(made, 2000), made.gamma)
    state = state_of(log.dataset)
    fits = {"new": Fits(made.q_of(made.policy)[state[log.rows]], np.zeros(log.episodes))}
    monkeypatch.setattr(
        estimators.load("dros"), "estimate", lambda case: np.full(log.episodes, -50.0)
    )
    own = behaviour_on(case_of(made, log.dataset), made)
    found = judge(log, {"new": made.policy[state]}, fits, own, OpePlan())["new"]
    assert next(each for each in found.estimates if each.name == "dros").value == -50
    assert found.best is not None
    assert found.best.label == "DR"


def test_no_overlap_is_no_estimate() -> None:
    never = np.zeros_like(MADE.policy)
    case = case_of(MADE, LOG.dataset)
    found = judge(
        LOG,
        {"never": never[STATE]},
        {"never": fits_of(MADE, MADE.policy)},
        behaviour_on(case, MADE),
        OpePlan(),
        fits_of(MADE, MADE.behaviour),
    )["never"]
    wis = next(each for each in found.estimates if each.name == "wis")
    assert "no overlap" in wis.failed
    assert found.best is None


@pytest.mark.parametrize("interval", ["student", "bernstein"])
def test_intervals_by_name(interval: str) -> None:
    found = judged(interval=interval)
    assert found.interval == interval
    wide = judged(interval=interval, level=0.99)
    for narrow, wider in zip(found["new"].estimates, wide["new"].estimates, strict=True):
        if narrow.interval and wider.interval:
            assert wider.interval[0] < narrow.interval[0] < narrow.interval[1] < wider.interval[1]


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"interval": "guess"}, "interval is one of student, bootstrap, bernstein; got 'guess'"),
        ({"level": 1.0}, "level lies between 0 and 1; got 1.0"),
        ({"level": 0.0}, "level lies between 0 and 1"),
    ],
)
def test_plans_that_make_no_sense(keywords: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OpePlan(**keywords)  # type: ignore[arg-type]


def test_fragments_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a table stay with their episodes."""
    complete = np.ones(LOG.episodes, bool)
    complete[3] = False
    part = replace(LOG.dataset, complete=complete, terminated=np.ones(LOG.episodes, bool))
    seen: list[np.ndarray] = []

    def fit_values(log: DecisionLog, policies: list[np.ndarray], *rest: object) -> list[Fits]:
        seen.extend(policies)
        raise StopIteration

    monkeypatch.setattr(run_module, "behaviour_of", lambda *args: None)
    monkeypatch.setattr(run_module, "fit_values", fit_values)
    with pytest.raises(StopIteration):
        answer(part, Question({"new": MADE.policy[STATE]}, gamma=MADE.gamma), OpePlan())
    rows = np.repeat(complete, np.diff(part.offsets))
    np.testing.assert_allclose(seen[0], MADE.policy[STATE][rows], rtol=1e-12)


def test_judging_in_parts_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large logs hold the probabilities and values of a few policies at a time."""
    tables = {"new": MADE.policy[STATE], "same": MADE.behaviour[STATE], "half": HALF[STATE]}
    question = Question(tables, gamma=MADE.gamma)
    plan = OpePlan(fit=FitPlan(steps=60, hidden=(8,)))
    together = answer(LOG.dataset, question, plan)
    held: list[int] = []

    def counted(log: DecisionLog, policies: list[np.ndarray], *rest: Any) -> list[Fits]:
        held.append(len(policies))
        return fit_values(log, policies, *rest)

    monkeypatch.setattr(run_module, "fit_values", counted)
    monkeypatch.setattr(fits_module, "_HELD", 2 * 2 * 8 * LOG.dataset.legal.size)  # type: ignore[union-attr]
    parted = answer(LOG.dataset, question, plan)
    assert held == [1, 2, 1]  # what follows cuts, then the policies
    assert parted.judgements == together.judgements
    for one, other in zip(parted.judgements, together.judgements, strict=True):
        for mine, its in zip(one.estimates, other.estimates, strict=True):
            np.testing.assert_array_equal(mine.influence, its.influence)


def test_all_policies_are_checked_before_any_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "behaviour_of", lambda *args: pytest.fail("a fit was made"))
    tables = {"new": MADE.policy[STATE], "wrong": 2 * MADE.policy[STATE]}
    with pytest.raises(ValueError, match="probabilities sum to 2, not 1"):
        answer(LOG.dataset, Question(tables, gamma=MADE.gamma), OpePlan())
