import numpy as np
import pytest

from rbve.paper.theory import extrapolation
from rbve.paper.theory.extrapolation import ACTIONS, Case, draw, fit_cubic, fit_mlp, measures


def test_states_are_standardised_and_sets_nested():
    few, many = draw(4, 5), draw(4, 12)
    assert few.q.mean() == pytest.approx(0, abs=1e-12)
    assert few.q.std() == pytest.approx(1)
    np.testing.assert_array_equal(few.q, many.q)
    assert set(few.observed) < set(many.observed)
    assert len(set(many.observed)) == 12
    assert not np.allclose(draw(5, 5).q, few.q)


def test_cubic_finds_a_cubic():
    a = extrapolation.actions()
    q = 1 - 2 * a + a**3
    found = fit_cubic([Case(q, np.array([3, 10, 20, 37]))], [0], 0)
    np.testing.assert_allclose(found[0], q, atol=1e-10)


def test_cubic_of_least_norm():
    # Both ends at 1: c0 + c2 = 1 and c1 + c3 = 0; the shortest is c0 = c2 = ½.
    case = Case(np.ones(ACTIONS), np.array([0, ACTIONS - 1]))
    a = extrapolation.actions()
    np.testing.assert_allclose(fit_cubic([case], [0], 0)[0], 0.5 + 0.5 * a**2, atol=1e-12)


def states(top: float):
    """Q is 2 at action 10, else 0; the fit adds `top` at the unobserved action 30."""
    q = np.zeros(ACTIONS)
    q[10] = 2.0
    fitted = q.copy()
    fitted[30] = top
    return Case(q, np.array([5, 10])), fitted


def test_measures_by_hand():
    found = measures(*states(3.0))
    assert found["exceeds"] == 1
    assert found["exceeds/clearly"] == 1
    assert found["chosen_unobserved"] == 1
    assert found["chosen_error"] == 3
    assert found["unchosen_error"] == pytest.approx(3 / 39)
    assert found["regret"] == 2
    assert found["regret/observed"] == 0
    assert found["fit_error"] == 0


def test_a_small_excess_is_not_clear():
    found = measures(*states(2.05))
    assert (found["exceeds"], found["exceeds/clearly"]) == (1, 0)


def test_below_the_true_maximum_nothing_exceeds():
    found = measures(*states(1.9))
    assert (found["exceeds"], found["chosen_unobserved"], found["chosen_error"]) == (0, 0, 0)


def test_padding_does_not_change_a_fit(monkeypatch):
    cases, seeds = [draw(k, 3) for k in (0, 1)], [0, 1]
    padded = fit_mlp(cases, seeds, 40)
    monkeypatch.setattr(extrapolation, "OBSERVED", (3,))
    np.testing.assert_allclose(fit_mlp(cases, seeds, 40), padded, atol=1e-4)
    assert not np.allclose(padded[0], padded[1])


def values(run, metric):
    start = f"{metric}/"
    return [r.value for r in run.rows if r.metric.startswith(start) and r.metric.count("/") == 1]


def test_networks_fit_what_they_see(extrapolation_runs):
    for count in (2, 3, 5):
        fits = values(extrapolation_runs[f"extrapolation/mlp/{count}"], "fit_error")
        assert len(fits) == 30
        assert np.mean(fits) < 0.05


def test_the_maximum_overestimates_and_the_mean_does_not(extrapolation_runs):
    run = extrapolation_runs["extrapolation/mlp/5"]
    assert np.mean(values(run, "chosen_error")) > 0.5
    assert abs(np.mean(values(run, "unchosen_error"))) < 0.3
    assert 0.2 < np.mean(values(run, "exceeds")) < 0.7


def test_examples_hold_what_the_figure_draws(extrapolation_runs):
    run = extrapolation_runs["extrapolation/mlp/5"]
    columns = {r.metric: r.value for r in run.rows if r.metric.startswith("example/1/")}
    assert len(columns) == 4 * ACTIONS
    case = draw(1, 5)
    assert columns["example/1/q/7"] == case.q[7]
    assert sum(columns[f"example/1/observed/{k}"] for k in range(ACTIONS)) == 5
    assert columns[f"example/1/observed/{case.observed[2]}"] == 1
    fitted = np.array([columns[f"example/1/fit/{k}"] for k in range(ACTIONS)])
    errors = {r.metric: r.value for r in run.rows}
    assert errors["chosen_error/1"] == fitted.max() - case.q[fitted.argmax()]
