"""Rules that judge claims: verdicts worked out by hand, settings chosen on other datasets."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rbve.paper import finals
from rbve.paper.claims import all_claims
from rbve.paper.finals import Final, Problem
from rbve.paper.judging import _effects as effects
from rbve.paper.judging import _rules as rules
from rbve.paper.judging._effects import NORMALISED_SCORE, Pick, Quantity
from rbve.paper.judging.verdicts import Judgement
from rbve.report import statistics

CATCH = Problem("catch", 0.0, None, 0.1, "all", "chosen")
NOISY = Problem("catch", 0.25, None, 0.1, "all", "chosen")
POLE = Problem("cartpole", 0.0, None, 0.1, "all", "chosen")


def runs(
    algorithm: str,
    scores: list[float],
    problem: Problem = CATCH,
    measure: str = "normalised_return",
    **settings: Any,
) -> list[Final]:
    """One run per dataset."""
    key = json.dumps(settings, sort_keys=True)
    return [
        Final(problem, algorithm, key, seed, {measure: score}, f"{algorithm}-{seed}-{key}")
        for seed, score in enumerate(scores)
    ]


def is_noisy(problem: Problem) -> bool:
    return problem.noise > 0


def is_quiet(problem: Problem) -> bool:
    return problem.noise == 0


def everywhere(problem: Problem) -> bool:
    return True


A, B, C = Pick("a"), Pick("b"), Pick("c")


@pytest.fixture(autouse=True)
def methods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects, "METHODS", {**effects.METHODS, "A": A, "B": B})


def test_the_setting_is_chosen_on_other_datasets() -> None:
    # x is best on dataset 0 alone: chosen there only by looking at what is reported.
    found = runs("a", [100, 0, 0], lam=1) + runs("a", [10, 20, 30], lam=2)
    honest = finals.on_other_datasets(found, "normalised_return", "normalised_return")
    # For 0: the others' means are 0 and 25 → λ 2. For 1: 50 and 20 → λ 1. For 2: 50 and 15 → λ 1.
    assert honest == {0: 10, 1: 0, 2: 0}
    greedy = finals.best_of_all(found, "normalised_return", "normalised_return")
    assert greedy == {0: 100, 1: 0, 2: 0}  # mean 33 against 20


def test_a_setting_that_did_not_run_everywhere_is_not_chosen() -> None:
    found = runs("a", [1, 1, 1], lam=1) + runs("a", [9, 9], lam=2)
    chosen = finals.on_other_datasets(found, "normalised_return", "normalised_return")
    assert chosen == {0: 1, 1: 1, 2: 1}


def test_a_diverged_setting_is_the_worst() -> None:
    found = runs("a", [float("nan")] * 2, lam=1) + runs("a", [-5, -6], lam=2)
    chosen = finals.on_other_datasets(found, "normalised_return", "normalised_return")
    assert chosen == {0: -5, 1: -6}


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ([10, 11, 12, 13, 14], [1, 2, 3, 4, 5], "reproduced"),  # 9 each time
        ([10, 0, 12, 2, 14], [1, 2, 3, 4, 15], "partly"),  # mean 2.6, of both signs
        ([1, 2, 3, 4, 5], [10, 11, 12, 13, 14], "not reproduced"),
        ([1, 2, 3], [], "not run"),
    ],
)
def test_better(ours: list[float], theirs: list[float], verdict: str) -> None:
    found = runs("a", ours) + runs("b", theirs)
    assert rules.better(A, {"b": B}, everywhere)(found).verdict == verdict


def test_few_datasets_reproduce_nothing() -> None:
    ours, theirs = runs("a", [10, 11]), runs("b", [1, 2])
    judged = rules.better(A, {"b": B}, everywhere)(ours + theirs)
    assert judged.verdict == "partly"  # 9 each time, but two datasets only
    assert "only 2 datasets of a kind" in judged.measured
    # One thin kind of data among thick ones counts too.
    thick = runs("a", [10] * 5, POLE) + runs("b", [1] * 5, POLE)
    assert rules.better(A, {"b": B}, everywhere)(ours + theirs + thick).verdict == "partly"


def test_better_than_some_is_partly() -> None:
    found = runs("a", [5, 6, 7]) + runs("b", [1, 2, 3]) + runs("c", [9, 9.5, 10])
    judged = rules.better(A, {"b": B, "c": C}, everywhere)(found)
    assert judged.verdict == "partly"  # one of two is clear
    assert judged.effects["b"].value == 4
    assert judged.effects["c"].value == -3.5


def test_lower_is_better_where_the_sign_says_so() -> None:
    found = runs("a", [1, 2, 1, 1], measure="overestimation") + runs(
        "b", [1e6, 1e7, 1e6, 1e6], measure="overestimation"
    )
    choose = [  # the choice of a setting needs a score
        Final(f.problem, f.algorithm, f.settings, f.seed, {**f.values, "normalised_return": 0.0})
        for f in found
    ]
    judged = rules.better(
        A, {"b": B}, everywhere, Quantity("overestimation", statistics.logarithm), -1
    )(choose)
    assert judged.verdict == "reproduced"
    common, other = np.log10(2 / (1 + 1e6)), np.log10(3 / (1 + 1e7))
    expected = (3 * common + other) / 4
    assert judged.effects["b"].value == pytest.approx(expected)


def test_effects_are_paired_by_dataset_and_averaged_over_problems() -> None:
    found = (
        runs("a", [10, 20]) + runs("b", [9, 17])
        + runs("a", [0, 0, 0], POLE) + runs("b", [6, 6, 6], POLE)
    )  # fmt: skip
    effect = effects.differences(found, {"b": (A, B)}, everywhere)["b"]
    assert effect.value == ((1 + 3) / 2 - 6) / 2  # each problem counts alike
    assert effect.n == 5
    # 1 and 3: the mean's deviation is 1; −6 each time adds nothing. One degree of freedom.
    reach = 12.7062 * 1 / 2
    assert (effect.low, effect.high) == pytest.approx((-2 - reach, -2 + reach), abs=1e-4)


def test_shares_of_one_recording_count_once() -> None:
    half = replace(CATCH, keep=0.5)
    found = (
        runs("a", [10, 20]) + runs("b", [9, 17])
        + runs("a", [5, 5], half) + runs("b", [0, 4], half)
        + runs("a", [1, 1], POLE) + runs("b", [0, 0], POLE)
    )  # fmt: skip
    effect = effects.differences(found, {"b": (A, B)}, everywhere)["b"]
    # catch: (1 + 5)/2 and (3 + 1)/2; cartpole: 1 and 1.
    assert effect.value == ((3 + 2) / 2 + 1) / 2
    assert (effect.n, effect.fewest) == (4, 2)
    reach = 12.7062 * 0.5 / 2  # of 3 and 2; cartpole's do not vary
    assert (effect.low, effect.high) == pytest.approx((1.75 - reach, 1.75 + reach), abs=1e-4)


def test_similar_scores_are_similar_everywhere() -> None:
    found = runs("a", [0, 0, 0, 0]) + runs("b", [3, 3, 3, 3])
    assert rules.similar(A, {"b": B}, everywhere, 10)(found).verdict == "reproduced"
    # −3 on catch and +21 on cartpole: 9 on average, but not on cartpole.
    found += runs("a", [21] * 4, POLE) + runs("b", [0] * 4, POLE)
    judged = rules.similar(A, {"b": B}, everywhere, 10)(found)
    assert judged.verdict == "partly"
    assert judged.measured == "b +9 [+9, +9] (n=8), apart: cartpole +21, catch −3"


def test_rising() -> None:
    def picks(*levels: float) -> dict[str, Pick]:
        return {str(level): Pick("a", {"lam": level}) for level in levels}

    found = [run for k in (1, 2, 3) for run in runs("a", [k, k + 1, k + 2, k + 3], lam=k)]
    assert rules.rising(picks(1, 2, 3), everywhere, NORMALISED_SCORE)(found).verdict == "reproduced"
    assert (
        rules.rising(picks(3, 2, 1), everywhere, NORMALISED_SCORE)(found).verdict
        == "not reproduced"
    )
    falling = rules.rising(picks(3, 2, 1), everywhere, NORMALISED_SCORE, -1)(found)
    assert falling.verdict == "reproduced"
    bump = found + runs("a", [9, 10, 11, 12], lam=2.5)
    steps = rules.rising(picks(1, 2, 2.5, 3), everywhere, NORMALISED_SCORE)(bump)
    assert steps.verdict == "partly"  # up in the end, one step clearly down
    assert "1 of 3 steps against it" in steps.measured


def test_ordered_and_reaches() -> None:
    found = runs("a", [9] * 4) + runs("b", [5] * 4) + runs("c", [1] * 4)
    assert rules.ordered({"a": A, "b": B, "c": C}, everywhere, NORMALISED_SCORE)(found).verdict == (
        "reproduced"
    )
    assert rules.ordered({"a": A, "c": C, "b": B}, everywhere, NORMALISED_SCORE)(found).verdict == (
        "partly"  # one of two steps is clear
    )
    assert rules.reaches({"a": A, "b": B}, everywhere, 4)(found).verdict == "reproduced"
    assert rules.reaches({"a": A, "b": B}, everywhere, 5)(found).verdict == "partly"  # not above
    assert rules.reaches({"a": A, "c": C}, everywhere, 5)(found).verdict == "partly"
    assert rules.reaches({"a": A, "x": Pick("x")}, everywhere, 5)(found).verdict == "not run"
    spread = runs("a", [4, 20, 4, 20])  # its mean is above 5, its interval reaches below
    assert rules.reaches({"a": A}, everywhere, 5)(spread).verdict == "partly"
    assert rules.reaches({"c": C}, everywhere, 5)(found).verdict == "not reproduced"
    assert rules.reaches({"c": C}, everywhere, 5, sign=-1)(found).verdict == "reproduced"
    assert rules.reaches({"a": A}, everywhere, 5, sign=-1)(found).verdict == "not reproduced"


def test_better_everywhere_counts_every_kind_of_data_by_itself() -> None:
    def verdict(on_catch: list[float], on_pole: list[float]) -> Judgement:
        found = runs("a", [10, 11, 12, 13]) + runs("b", on_catch)
        found += runs("a", [50, 51, 52, 53], POLE) + runs("b", on_pole, POLE)
        return rules.better_everywhere(A, {"b": B}, everywhere)(found)

    both = verdict([9, 10, 11, 12], [10, 11, 12, 13])
    assert (both.verdict, both.effects["b, catch"].value) == ("reproduced", 1)
    # 9 below on catch, 40 above on cartpole: clear on average, on one of the two by itself.
    one = verdict([19, 20, 21, 22], [10, 11, 12, 13])
    assert (one.verdict, one.effects["b, cartpole"].value) == ("partly", 40)
    assert one.measured.startswith("of 2 comparisons 1 clearly for it, 1 clearly against it")
    assert one.measured.endswith("on average against b +15.5 [+15.5, +15.5] (n=8)")
    assert verdict([19, 20, 21, 22], [60, 61, 62, 63]).verdict == "not reproduced"
    assert verdict([9, 10, 11, 12], []).verdict == "not run"
    few = verdict([9, 10], [10, 11, 12, 13])
    assert few.verdict == "partly"
    assert few.measured.endswith("only 2 datasets of a kind, 3 are asked for")


def test_between_kinds_of_data() -> None:
    scarce = Problem("catch", 0.0, None, 0.01, "all", "chosen")
    found = runs("a", [5, 6, 5, 6], scarce) + runs("a", [1] * 4, CATCH)
    judged = rules.between(
        {"a": A}, lambda p: p.keep == 0.01, lambda p: p.keep == 0.1, NORMALISED_SCORE
    )(found)
    assert judged.verdict == "reproduced"
    assert judged.effects["a"].value == 4.5


def test_similar_is_an_interval_within_the_margin() -> None:
    def verdict(theirs: list[float], margin: float) -> str:
        found = runs("a", [50, 51, 52, 53]) + runs("b", theirs)
        return rules.similar(A, {"b": B}, everywhere, margin)(found).verdict

    assert verdict([49, 50, 51, 52], 2) == "reproduced"  # 1 each time
    assert verdict([46, 50, 51, 56], 2) == "partly"  # mean ¾, from −3 to 4
    assert verdict([40, 41, 42, 43], 2) == "not reproduced"
    assert verdict([], 2) == "not run"


def test_alike_compares_across_kinds_of_data() -> None:
    found = runs("a", [5, 6, 5, 6], CATCH) + runs("a", [1] * 4, NOISY) + runs("b", [5] * 4, NOISY)
    own = rules.alike({"a": A}, is_quiet, is_noisy, 1)(found)
    assert (own.verdict, own.effects["a"].value) == ("not reproduced", 4.5)
    assert rules.alike({"a": A}, is_quiet, is_noisy, 6)(found).verdict == "reproduced"
    # 0, 1, 0, 1: ½ ± 3.182 · 0.289
    other = rules.alike({"a": A}, is_quiet, is_noisy, 1.5, B)(found)
    assert (other.verdict, other.effects["a"].value) == ("reproduced", 0.5)
    assert rules.alike({"a": A}, is_quiet, is_noisy, 1.4, B)(found).verdict == "partly"


def test_steadier_counts_changes_up_and_down_alike() -> None:
    found = runs("a", [50] * 4, CATCH) + runs("a", [52, 48, 52, 48], NOISY)
    found += runs("b", [50] * 4, CATCH) + runs("b", [70, 30, 70, 30], NOISY)
    judged = rules.steadier("A", {"B": B}, is_noisy, is_quiet)(found)
    assert judged.verdict == "reproduced"  # both mean changes are 0
    assert judged.effects["A − B"].value == 2 - 20
    assert rules.steadier("B", {"A": A}, is_noisy, is_quiet)(found).verdict == "not reproduced"
    assert rules.steadier("A", {"C": C}, is_noisy, is_quiet)(found).verdict == "not run"


def test_changes_are_compared_dataset_by_dataset() -> None:
    # Datasets 0 to 4 of a, 1 to 4 of b: the first of a has no partner.
    found = runs("a", [50] * 5, CATCH) + runs("a", [90, 51, 52, 53, 54], NOISY)
    found += runs("b", [50] * 5, CATCH)[1:] + runs("b", [0, 53, 54, 55, 56], NOISY)[1:]
    judged = rules.steadier("A", {"B": B}, is_noisy, is_quiet)(found)
    assert (judged.effects["A − B"].value, judged.effects["A − B"].n) == (-2, 4)


def test_a_lead_that_widens() -> None:
    # a leads by 1 without noise; with noise by 5, 6, 7, 8.
    found = runs("a", [11, 12, 13, 14], CATCH) + runs("b", [10, 11, 12, 13], CATCH)
    found += runs("a", [5, 7, 9, 11], NOISY) + runs("b", [0, 1, 2, 3], NOISY)
    judged = rules.widens("A", {"B": B}, is_noisy, is_quiet)(found)
    assert (judged.verdict, judged.effects["A − B"].value) == ("reproduced", 5.5)
    assert rules.widens("A", {"B": B}, is_quiet, is_noisy)(found).verdict == "not reproduced"
    assert rules.widens("B", {"A": A}, is_noisy, is_quiet)(found).verdict == "not reproduced"
    assert rules.widens("A", {"C": C}, is_noisy, is_quiet)(found).verdict == "not run"


def test_an_effect_smaller_than_claimed_is_partly_there() -> None:
    found = runs("a", [11, 12, 13, 14]) + runs("b", [10, 11, 12, 13])
    assert rules.better(A, {"b": B}, everywhere, least=1)(found).verdict == "reproduced"
    assert rules.better(A, {"b": B}, everywhere, least=2)(found).verdict == "partly"
    assert rules.better(B, {"a": A}, everywhere, least=2)(found).verdict == "not reproduced"


def test_below_everywhere() -> None:
    found = runs("a", [1, 2, 3, 4]) + runs("b", [2, 3, 4, 5])
    found += runs("a", [9, 9, 9, 9], POLE) + runs("b", [5, 5, 5, 5], POLE)
    judged = rules.better_everywhere(A, {"b": B}, everywhere, sign=-1)(found)
    assert judged.verdict == "partly"
    assert judged.measured.startswith("of 2 comparisons 1 clearly for it, 1 clearly against it")


def test_errors_of_either_sign_on_a_log_scale() -> None:
    values = np.array([-99.0, 0.0, 9.0, np.inf, -np.inf])
    np.testing.assert_allclose(statistics.logarithm(values), [-2, 0, 1, 30, -30])


def test_every_claim_has_a_rule_and_judges_nothing_as_not_run() -> None:
    texts = [claim.text for claim in all_claims()]
    assert len(set(texts)) == len(texts) >= 45
    for claim in all_claims():
        assert claim.rule
        assert claim.paper
        if claim.experiment:
            assert claim.judge([]).verdict == "not run", claim.text


def test_a_claim_of_two_parts_is_as_good_as_its_weaker() -> None:
    def settled(judgement: Judgement) -> rules.Rule:
        return lambda finals: judgement

    good = settled(Judgement("reproduced", "x"))
    bad, half = settled(Judgement("not reproduced", "y")), settled(Judgement("partly", "y"))
    assert rules.worst(good, bad)([]).verdict == "not reproduced"
    assert rules.worst(good, half)([]).measured == "x; y"


def test_problems_from_rows() -> None:
    from rbve.rows import Row, Run

    spec = {
        "data": {"keep": 0.1, "keep_seed": 3, "side": "all", "action": "chosen"},
        "algorithm": "rbve",
        "settings": {"lam": 0.5, "form": "hinge2"},
        "optimiser": {"learning_rate": 1e-4},
        "evaluation": {"env": "catch"},
    }
    source = {"behaviour": "policy", "noise": 0.25, "epsilon": 0.1}
    done = Run("j", spec, {"source": source}, [Row(9, "final/return", 2.0, 5), Row(9, "x", 1, 1)])
    (final,) = finals.finals([done, done._replace(rows=[])])
    assert final.problem == Problem("catch", 0.25, 0.1, 0.1, "all", "chosen")
    assert final.values == {"return": 2.0}
    assert (final.seed, final.setting("lam"), final.setting("learning_rate")) == (3, 0.5, 1e-4)
    assert final.problem.label == "catch, noise 0.25, expert ε 0.1"


def test_a_score_above_the_behaviours() -> None:
    from rbve.rows import Row, Run

    spec = {
        "data": {"keep": 0.1, "keep_seed": 3, "side": "all", "action": "chosen"},
        "algorithm": "rbve",
        "settings": {},
        "optimiser": {"learning_rate": 1e-4},
        "evaluation": {"env": "catch"},
    }
    facts = {"behaviour_return": 0.5, "random_return": -0.5, "reference_return": 1.5}
    done = Run("j", spec, facts, [Row(9, "final/normalised_return", 80.0, 5)])
    (final,) = finals.finals([done])  # the behaviour is half way from random to the reference
    assert final.values == {"normalised_return": 80.0, finals.GAIN: 30.0}
