"""The rule that chooses, on a process whose policies have known values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from support.ope import Process, behaviour_on, case_of, process, record, state_of

from rbve.off_policy.fits import Fits
from rbve.off_policy.judge import OpePlan, OpeResult, judge
from rbve.off_policy.log import DecisionLog
from rbve.off_policy.rule import guess, ranked_judgements, recommend

MADE = process(1, ends=0.5)
BEST = process(1, ends=0.5, greedy=True).policy


def judged(
    tables: Mapping[str, np.ndarray], episodes: int, made: Process = MADE, off: float = 0.0
) -> OpeResult:
    """Exact fits; cross-fitted probabilities that are `off` on average."""
    log = DecisionLog.of(record(made, episodes, seed=1), made.gamma)
    state = state_of(log.dataset)
    fits = {
        name: Fits(q[state[log.rows]], (table * q).sum(axis=1)[state[log.final_rows]])
        for name, table in tables.items()
        for q in [made.q_of(table)]
    }
    behaviour = behaviour_on(case_of(made, log.dataset), made, error=off)
    on_rows = {name: table[state] for name, table in tables.items()}
    return judge(log, on_rows, fits, behaviour, OpePlan())


def value(table: np.ndarray) -> float:
    return float(MADE.start @ (table * MADE.q_of(table)).sum(axis=1))


@pytest.fixture(scope="module")
def tables() -> dict[str, np.ndarray]:
    """A better and a worse one: one-step improvements of the behaviour's values, up and down."""
    q = np.where(MADE.legal, MADE.q_of(MADE.behaviour), -np.inf)
    worst = np.where(MADE.legal, q, np.inf).argmin(axis=1)
    found = {
        "better": 0.7 * MADE.behaviour + 0.3 * np.eye(3)[q.argmax(axis=1)],
        "worse": 0.7 * MADE.behaviour + 0.3 * np.eye(3)[worst],
    }
    assert value(found["worse"]) + 0.1 < value(MADE.behaviour) < value(found["better"]) - 0.1
    return found


def test_a_better_policy_is_deployed(tables: dict[str, np.ndarray]) -> None:
    result = judged(tables, 4000)
    found = recommend(result)
    assert (found.decision, found.policy) == ("deploy", "better")
    assert found.ranking == ("better", "worse")
    assert "more an episode than the behaviour (DR, 95.0% interval" in found.reasons[0]
    assert "2 of 2 candidates did" in found.reasons[1]


def test_the_interval_is_shared_out_over_all_candidates(tables: dict[str, np.ndarray]) -> None:
    """What one candidate shows, the best of five hundred alike does not."""
    episodes = 100
    one = recommend(judged({"better": tables["better"]}, episodes))
    assert one.decision == "deploy"
    result = judged({"better": tables["better"]}, episodes)
    copies = tuple(replace(result["better"], policy=f"copy {k}") for k in range(500))
    low, _ = result["better"].best.difference_interval  # type: ignore[union-attr, misc]
    assert low > 0
    many = recommend(replace(result, judgements=copies))
    assert many.decision == "stay"
    assert "99.98% interval" in many.reasons[0] or "100.0% interval" in many.reasons[0]


def test_where_none_is_better_one_stays(tables: dict[str, np.ndarray]) -> None:
    found = recommend(judged({"worse": tables["worse"], "same": MADE.behaviour}, 4000))
    assert (found.decision, found.policy) == ("stay", "same")
    assert found.ranking == ("same", "worse")
    assert "none of 2 candidates that could be judged is shown to be better" in found.reasons[0]


def test_a_small_difference_says_how_many_episodes_would_show_it(
    tables: dict[str, np.ndarray],
) -> None:
    slightly = 0.9 * MADE.behaviour + 0.1 * tables["better"]
    result = judged({"slightly": slightly}, 250)
    found = recommend(result)
    assert found.decision == "stay"
    best = result["slightly"].best
    assert best is not None
    assert best.difference > 0
    low, high = best.difference_interval  # type: ignore[misc]
    needed = 250 * ((high - low) / 2 / best.difference) ** 2
    assert f"about {int(np.ceil(needed)):,} held-out episodes" in found.reasons[1]


def test_where_none_can_be_judged_more_is_collected(tables: dict[str, np.ndarray]) -> None:
    found = recommend(judged(tables, 30))
    assert found.decision == "collect"
    assert found.policy is None or found.policy in tables
    assert any("of 2 candidates fail on effective episodes" in each for each in found.reasons)


def test_refused_numbers_rank_by_fitted_values(tables: dict[str, np.ndarray]) -> None:
    result = judged(tables, 4000, off=0.2)  # badly calibrated: weights are not to be trusted
    judgement, returns = result["better"], result.returns
    by_name = {each.name: each for each in judgement.estimates}
    assert not by_name["dr"].passed
    assert guess(judgement, returns) == by_name["fqe"].value
    trusted = judged(tables, 4000)
    dr = next(each for each in trusted["better"].estimates if each.name == "dr")
    assert guess(trusted["better"], trusted.returns) == dr.value


def test_a_promise_beyond_all_returns_does_not_rank_first(tables: dict[str, np.ndarray]) -> None:
    """Of two that promise more than any episode returned, the one nearer to the log."""
    result = judged(tables, 4000, off=0.2)
    by_name = {each.name: each for each in result["better"].estimates}
    promise = replace(by_name["fqe"], value=100.0, influence=np.full(4000, 100.0))
    far, near = (
        replace(result["better"], policy=name, agreement=share, estimates=(by_name["dr"], each))
        for name, share, each in (
            ("far", 0.3, replace(promise, value=101.0)), ("near", 0.8, promise)
        )
    )  # fmt: skip
    assert guess(near, result.returns) == guess(far, result.returns)
    assert guess(near, result.returns) == pytest.approx(result.returns.max())
    both = replace(result, judgements=(far, result["better"], near))
    assert [each.policy for each in ranked_judgements(both)] == ["near", "far", "better"]
    # A promise of one episode makes up for no other.
    uneven = replace(
        promise, value=50.0, influence=np.r_[np.full(2000, 200.0), np.full(2000, -100.0)]
    )
    middle = replace(far, estimates=(by_name["dr"], uneven))
    spread = result.returns.min(), result.returns.max()
    assert guess(middle, result.returns) == pytest.approx(sum(spread) / 2)
    nothing = replace(far, estimates=(by_name["dr"], replace(promise, value=np.nan)))
    assert guess(nothing, result.returns) == -np.inf
