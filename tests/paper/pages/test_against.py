"""Figures of a measure against what varies, and curves."""

from __future__ import annotations

import math

import pytest
from support.studies import finals_of, make_run, scored, study_of

from rbve.paper import experiments
from rbve.paper._pages.figures import against, training
from rbve.paper.finals import finals
from rbve.rows import Row


def charts(name, runs):
    return {chart.name: chart for chart in against.charts(name, experiments.load(name), finals_of(runs))}  # fmt: skip  # noqa: E501


def over(value):
    return {"overestimation": value, "normalised_return": 10.0, "action_gap": 0.5}


@pytest.fixture
def fractions():
    """Over-estimation 10^k − 1: k by environment and share."""
    powers = {("catch", 0.1): (1, 3), ("catch", 0.01): (4, 4), ("cartpole", 0.1): (1, 1)}
    powers |= {("cartpole", 0.01): (2, 2), ("mountain_car", 0.1): (0, 0)}
    return [
        make_run("dqn", seed, over(10.0**k - 1), data={"env": env, "keep": keep})
        for (env, keep), both in powers.items()
        for seed, k in enumerate(both)
    ]


def test_fractions_by_hand(fractions):
    chart = charts("fractions", fractions)["fractions-overestimation"]
    assert (chart.kind, chart.x_scale, chart.y_scale) == ("lines", "log", "symlog")
    assert [panel.title for panel in chart.panels] == [
        "catch",
        "cartpole",
        "mountain_car",
        "median of environments",
    ]
    (line,) = chart.panels[0].series
    assert [point.x for point in line.points] == [1.0, 10.0]  # percent, scarce first
    assert line.points[0].y == pytest.approx(10**4 - 1)
    # Powers 1 and 3: 2 ± 12.706 · 1, but an error is never below 0.
    assert line.points[1][1:5] == pytest.approx((99, 0.0, 10**14.7062047 - 1, 2), rel=1e-5)
    assert (10.0, pytest.approx(999.0)) in line.members
    (median,) = chart.panels[-1].series
    # mountain_car lacks 1%, so the median stands at 10% alone: powers 2, 1, 0.
    assert [(point.x, point.n) for point in median.points] == [(10.0, 6)]
    assert median.points[0].y == pytest.approx(9.0)
    assert "Last panel: the median" in chart.note


def test_measures_nobody_has_make_no_chart(fractions):
    assert set(charts("fractions", fractions)) == {
        "fractions-overestimation",
        "fractions-normalised-return",
    }
    assert charts("fractions", []) == {}


def test_lambda_is_ordered_by_size():
    runs = [make_run("rbve", 0, over(1.0), settings={"lam": lam}) for lam in (5, 0.05, 0, 0.5)]
    (line,) = charts("ranking_strength", runs)["ranking-strength-action-gap"].panels[0].series
    assert [point.x for point in line.points] == ["0", "0.05", "0.5", "5"]


def test_of_several_methods_a_row_each_and_a_series_per_category():
    runs = [
        make_run(name, 0, {"normalised_return": score}, data={"side": side})
        for name, side, score in (
            ("dqn", "above", 1.0),
            ("dqn", "below", 2.0),
            ("bve", "above", 3.0),
            ("bve", "below", 4.0),
            ("bc", "below", 5.0),
        )
    ]
    (chart,) = charts("reward_distribution", runs).values()
    assert (chart.kind, chart.x_label) == ("rows", "method")
    below, above = chart.panels[0].series
    assert "below" in below.name
    assert [(p.x, p.y) for p in below.points] == [("BVE", 4.0), ("DDQN", 2.0), ("BC", 5.0)]
    assert [(p.x, p.y) for p in above.points] == [("BVE", 3.0), ("DDQN", 1.0)]
    assert below.colour != above.colour


def test_of_one_method_a_row_per_setting():
    tried = [{"beta": 0.1}, {"form": "softplus"}, {}, {"bounded": "true"}]
    runs = [make_run("rbve", 0, over(1.0), settings=each) for each in tried]
    (panel,) = charts("ranking_forms", runs)["ranking-forms-action-gap"].panels
    (only,) = panel.series
    assert [point.x for point in only.points] == [
        "default",
        "bounded=true",
        "form=softplus",
        "β=0.1",
    ]
    # In a study that has only just begun, what is usual is still known.
    (panel,) = charts("ranking_forms", runs[:2])["ranking-forms-action-gap"].panels
    assert [point.x for point in panel.series[0].points] == ["form=softplus", "β=0.1"]


def test_filters_say_the_scale_where_it_matters():
    tried = [("exponential", "none"), ("binary", "dataset"), ("exponential", "dataset")]
    runs = [
        make_run("rbve", 0, over(1.0), settings={"filter": name, "normalise": scale})
        for name, scale in tried
    ]
    (panel,) = charts("filters", runs)["filters-overestimation"].panels
    assert [point.x for point in panel.series[0].points] == [
        "binary",
        "exponential, raw V̂",
        "exponential, standardised V̂",
    ]


def test_noise_makes_panels_where_it_varies():
    runs = [
        make_run("bc", 0, {"normalised_return": 1.0}, source={"noise": noise})
        for noise in (0.0, 0.25)
    ]
    (chart,) = charts("logged_action", runs).values()
    assert [panel.title for panel in chart.panels] == ["catch, noise 0", "catch, noise 0.25"]


def test_curves_show_the_setting_best_on_all_datasets():
    def run(seed, rate, score, returns):
        curve = [(step, "return", value) for step, value in returns.items()]
        return make_run("dqn", seed, {"normalised_return": score}, curve, rate=rate)

    ended = run(1, 1e-4, 60.0, {500: 4.0})  # ended by diverging
    ended.rows.append(Row(500, "diverged_at", 480.0, 1))
    runs = [
        run(0, 1e-4, 60.0, {500: 2.0, 1000: 8.0}),
        ended,
        run(0, 1e-3, 50.0, {500: 99.0, 1000: 99.0}),
        run(1, 1e-3, 50.0, {500: 99.0, 1000: 99.0}),
    ]
    (returns,) = training.charts(study_of(runs), finals_of(runs), "x")  # nobody measured errors
    (line,) = returns.panels[0].series
    # At 1000 the diverged run keeps its last value.
    assert [(point.x, point.y, point.n) for point in line.points] == [(500, 3.0, 2), (1000, 6.0, 2)]
    ends = [end for point in line.points for end in (point.low, point.high)]
    wide = 12.7062  # Student, of two values
    assert ends == pytest.approx([3 - wide, 3 + wide, 6 - 2 * wide, 6 + 2 * wide], abs=1e-3)
    assert {mark.name: mark.value for mark in returns.panels[0].marks} == {
        "behaviour mean": 0.2,
        "random": -0.6,
        "online reference": 1.0,
    }
    assert "best over all datasets" in returns.note


def test_a_curve_that_begins_late_has_no_value_before():
    assert math.isnan(training.at({500: 1.0}, 200))
    assert training.at({500: 1.0, 700: 2.0}, 900) == 2.0


def test_what_could_not_be_measured_is_not_infinite():
    """Of episodes that were all cut, no error is known (n = 0); a diverged run's is infinite."""
    known = make_run("bve", 0, curve=[(500, "overestimation", 9.0), (1000, "overestimation", 9.0)])
    cut = make_run("bve", 1, curve=[(1000, "overestimation", 99.0)])
    cut.rows.insert(0, Row(500, "overestimation", math.nan, 0))
    assert [
        point[1:2] + point[4:5] for point in training.points([known, cut], "overestimation")
    ] == [
        (pytest.approx(9.0), 1),
        (pytest.approx(10**1.5 - 1), 2),
    ]
    cut.rows[0] = Row(500, "overestimation", math.inf, 3)
    first = training.points([known, cut], "overestimation")[0]
    assert first.y == pytest.approx(10**15.5)
    none = make_run("bve", 2, {"return": 1.0})
    none.rows.append(Row(1000, "final/overestimation", math.nan, 0))
    (final,) = finals([none])
    assert "overestimation" not in final.values


def test_of_several_settings_the_one_best_on_other_datasets_is_drawn():
    scores = {0.005: (10.0, 20.0, 90.0), 0.1: (50.0, 60.0, 10.0)}
    runs = [
        run
        for lam, own in scores.items()
        for run in scored(
            "rbve",
            own,
            settings={"lam": lam},
            data={"env": "collect:few", "keep": 1.0},
            source={"behaviour": "policy", "epsilon": 0.25},
        )
    ]
    chart = charts("memory_coverage", runs)["memory-coverage-normalised-return"]
    (line,) = chart.panels[0].series
    # Dataset 0 goes by 1 and 2 (55 against 35), 1 by 0 and 2 (50, 30), 2 by 0 and 1 (15, 55).
    assert [value for _, value in line.members] == [10.0, 20.0, 10.0]
    assert "the one best on the other datasets" in chart.note
    alone = charts("memory_coverage", runs[:3])["memory-coverage-return"]
    assert "several settings" not in alone.note


def test_curves_without_scores_go_by_the_return():
    runs = [
        make_run("bc", seed, {"return": value}, [(500, "return", value)], rate=rate)
        for rate, value in ((1e-4, 7.0), (1e-3, 5.0))
        for seed in (0, 1)
    ]
    returns = training.charts(study_of(runs), finals_of(runs), "x")[0]
    (line,) = returns.panels[0].series
    assert [point[:2] for point in line.points] == [(500, 7.0)]
