"""Scores of a study, against values worked out by hand."""

from __future__ import annotations

import math

import pytest
from support.studies import finals_of, make_run, scored, study_of

from rbve.paper._pages.figures import over_problems, scores
from rbve.paper._pages.gather import OTHERS, results
from rbve.rows import Row

# On dataset 0 the first setting shines, elsewhere it fails.
LOUD, STEADY = (100.0, 0.0, 0.0), (30.0, 30.0, 30.0)


@pytest.fixture
def choosing():
    return [*scored("dqn", LOUD, rate=1e-4), *scored("dqn", STEADY, rate=1e-3)]


def test_a_setting_is_chosen_on_other_datasets(choosing):
    ((problem, (result,)),) = results(finals_of(choosing)).items()
    assert problem.label == "catch"
    # Without dataset 0 the steady one is best (30 > 0); without 1 or 2 the loud one (50 > 30).
    assert result.others == {0: 30.0, 1: 0.0, 2: 0.0}
    assert result.best == {0: 100.0, 1: 0.0, 2: 0.0}  # mean 33 > 30
    assert scores.chosen_words(result.finals) == "lr=0.0001 ×2, lr=0.001 ×1"


def test_the_chart_shows_both_ways_with_intervals_and_single_datasets(choosing):
    study = study_of(choosing)
    chart = scores.chart(study, results(finals_of(choosing)), "bsuite")
    (panel,) = chart.panels
    dots, rings = panel.series
    (dot,), (ring,) = dots.points, rings.points
    # The standard error of (30, 0, 0) is 10, that of (100, 0, 0) 100/3; two degrees of freedom.
    t = 4.3026527
    assert (dot.x, dot.y, dot.n) == ("DDQN", 10.0, 3)
    assert (dot.low, dot.high) == pytest.approx((10 - 10 * t, 10 + 10 * t))
    ends = (100 / 3, 100 / 3 * (1 - t), 100 / 3 * (1 + t))
    assert (ring.y, ring.low, ring.high) == pytest.approx(ends)
    assert (dots.marker, rings.marker) == ("dot", "ring")
    assert sorted(dots.members) == [("DDQN", 0.0), ("DDQN", 0.0), ("DDQN", 30.0)]
    # The data's mean return .2 lies half-way between random −.6 and the reference 1.
    assert [(mark.name, mark.value) for mark in panel.marks] == [
        ("random", 0.0),
        ("behaviour mean", pytest.approx(50.0)),
        ("online agent's best", 100.0),
    ]
    assert "n = 3 datasets" in chart.note


def test_without_settings_to_choose_there_are_no_rings():
    runs = [*scored("dqn", STEADY), *scored("rbve", LOUD)]
    known = results(finals_of(runs))
    drawn = [scores.chart(study_of(runs), known, "x"), over_problems.statistics_chart(known, "x")]
    assert {each.name for chart in drawn for panel in chart.panels for each in panel.series} == {
        "one setting a method"
    }
    assert not any("ring" in chart.note for chart in drawn)
    assert "best of all" not in over_problems.tables(study_of(runs), "bsuite")
    assert "best of all" not in scores.tables(study_of(runs), "bsuite").lower()
    charts = over_problems.figures(study_of(runs), "bsuite")
    assert charts
    assert not any("chosen on other" in chart.note for chart in charts)


def test_one_score_a_method_is_no_statistic():
    one = study_of([*scored("dqn", [5.0]), *scored("rbve", [7.0])])
    two = study_of([*scored("dqn", [5.0, 6.0]), *scored("rbve", [7.0])])
    assert over_problems.figures(one, "bsuite") is None
    assert over_problems.figures(two, "bsuite")


def test_the_data_without_a_reference_has_no_mark():
    runs = scored("dqn", LOUD, facts={"reference_return": None})
    (panel,) = scores.chart(study_of(runs), results(finals_of(runs)), "x").panels
    assert [mark.name for mark in panel.marks] == ["random", "online agent's best"]


def test_raw_weights_and_fewer_samples_are_methods_of_their_own():
    runs = [
        *scored("iqn", [1.0], settings={"samples": 8}),
        *scored("rbve", [2.0], settings={"normalise": "none"}),
        *scored("rbve", [3.0]),
        *scored("bc", [4.0]),
    ]
    (own,) = results(finals_of(runs)).values()
    assert [(each.method.name, each.others[0]) for each in own] == [
        ("R-BVE", 3.0),
        ("R-BVE, raw weights, λ .005", 2.0),
        ("IQN (N=N'=8, one setting)", 1.0),
        ("BC", 4.0),
    ]
    assert [each.method.strong for each in own] == [True, False, False, False]


def test_what_the_paper_does_not_compare_is_marked():
    runs = [*scored("crr", [1.0]), *scored("mc", [2.0])]
    (own,) = results(finals_of(runs)).values()
    assert [each.method.name for each in own] == ["MC", "CRR (not in the paper)"]


def test_cells_of_a_table():
    over = (4.0, math.nan, 10.0)
    runs = [
        make_run("dqn", k, {"normalised_return": 50.0, "return": 0.2, "overestimation": value})
        for k, value in enumerate(over)
    ]
    runs[1].rows.append(Row(700, "diverged_at", 650.0, 1))
    study = study_of(runs)
    ((result,),) = results(finals_of(runs)).values()
    name, others, best, returned, median, n, diverged, chosen = scores.cells(study, result)
    assert (name, others, best, n) == ("DDQN", "50.0 [50.0, 50.0]", "50.0 [50.0, 50.0]", "3")
    assert returned == "0.20 [0.20, 0.20]"
    assert chosen == "one setting"
    assert median == "7.00"  # of 4 and 10; the one that is not finite is left out
    assert diverged == "1 of 3 runs"
    assert "1 of 3" in scores.tables(study, "bsuite")


def test_a_setting_that_lacks_a_dataset_is_not_chosen():
    runs = [*scored("dqn", (90.0, 90.0), rate=1e-4), *scored("dqn", STEADY, rate=1e-3)]
    ((result,),) = results(finals_of(runs)).values()
    assert result.others == {0: 30.0, 1: 30.0, 2: 30.0}
    assert scores.chosen_words(result.finals) == "one setting"


ENVS = ("catch", "cartpole", "mountain_car")
OURS = {"catch": (10.0, 30.0), "cartpole": (50.0, 50.0), "mountain_car": (100.0, 100.0)}
THEIRS = {"catch": (20.0, 20.0), "cartpole": (60.0, 40.0), "mountain_car": (0.0, 0.0)}


def everywhere(algorithm, table):
    return [run for env in table for run in scored(algorithm, table[env], data={"env": env})]


@pytest.fixture
def study():
    partial = {"catch": (99.0, 99.0)}
    return study_of(
        [*everywhere("rbve", OURS), *everywhere("dqn", THEIRS), *everywhere("bc", partial)]
    )


@pytest.fixture
def known(study):
    return results(study.of("bsuite"))


def test_problems_come_in_the_order_of_the_paper(known):
    assert [problem.env for problem in known] == list(ENVS)


def test_aggregates_by_hand(known):
    found = over_problems.statistics_of(known, OTHERS)
    ours = {name: next(v for m, v in each.items() if m.name == "R-BVE").value
            for name, each in found.items()}  # fmt: skip
    assert ours["mean"] == pytest.approx((20 + 50 + 100) / 3)
    assert ours["median"] == 50.0
    assert ours["interquartile mean"] == pytest.approx((30 + 50 + 50 + 100) / 4)
    mean = next(v for m, v in found["mean"].items() if m.name == "R-BVE")
    # Only catch varies, 10 and 30: the standard error of its mean is 10, one degree of freedom.
    reach = 12.7062047 * 10 / 3
    assert (mean.low, mean.high) == pytest.approx((170 / 3 - reach, 170 / 3 + reach))
    median = next(v for m, v in found["median"].items() if m.name == "R-BVE")
    assert (median.low, median.high) == (50.0, 50.0)  # resampled: 10 to 30, 50, 100
    assert mean.n == 6


def test_methods_that_lack_a_problem_are_left_out_and_named(study):
    chart = over_problems.figures(study, "bsuite")[0]
    rows = {point.x for panel in chart.panels for s in panel.series for point in s.points}
    assert rows == {"R-BVE", "DDQN"}
    assert "missing: BC." in over_problems.tables(study, "bsuite")
    assert "over 3 problems" in chart.title


def test_probability_of_improvement_by_hand(known):
    ((other, found),) = over_problems.improvements(known).items()
    assert other.name == "DDQN"
    # catch: 30 beats both, 10 none; cartpole: 50 beats 40 only; mountain_car: all.
    assert found.value == pytest.approx((0.5 + 0.5 + 1.0) / 3)
    chart = over_problems.improvement_chart(known, "x")
    assert [point.x for point in chart.panels[0].series[0].points] == ["DDQN"]


def test_profiles_by_hand(study, known):
    chart = over_problems.profile_chart(known, "x")
    ours = next(s for s in chart.panels[0].series if s.name == "R-BVE")
    at = {point.x: point.y for point in ours.points}
    assert (min(at), max(at)) == (0.0, 100.0)
    assert at[45.0] == pytest.approx(2 / 3)  # none of catch, all of the others
    assert at[20.0] == pytest.approx((0.5 + 1 + 1) / 3)
    assert at[100.0] == 0.0  # above, not at
    assert "above 90" in over_problems.tables(study, "bsuite")


def test_without_ours_there_is_no_improvement():
    study = study_of(everywhere("dqn", THEIRS))
    assert over_problems.improvements(results(study.of("bsuite"))) == {}
    assert [chart.name for chart in over_problems.figures(study, "bsuite")] == [
        "bsuite-aggregates",
        "bsuite-profiles",
    ]
    assert over_problems.figures(study_of([]), "bsuite") is None
