import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbve.paper.theory import divergence
from rbve.paper.theory.divergence import Case, Toy, q_values, trajectories

W, U1, U2, Q22 = 0, 1, 2, 6  # columns: w, Q(s1, a0), Q(s1, a1), Q(s2, a2)


@pytest.fixture(scope="module")
def paths():
    """The first 300 updates of the cases below."""
    cases = [
        Case("q"),
        Case("q", first_layer="learned"),
        Case("q", factor=2.0),
        Case("q", batch="one", seed=3),
        Case("q", w=-1.0),
        Case("bve"),
        Case("bve", end="terminal"),
        Case("bve", end="bootstrap"),
        Case("bve", w=2.0),
        Case("q", "momentum"),
        Case("q", "rmsprop"),
        Case("q", "adam"),
    ]
    return dict(zip(cases, trajectories(cases, 300), strict=True))


def test_values_of_the_network_are_those_of_the_paper():
    last = jnp.array([3.0, 5.0, 7.0, 11.0])  # w, u1, u2, u3
    found = q_values(Toy(jnp.array(divergence.FIRST), last), jnp.array([0.0, 1.0, 1.1]))
    # Q(s1, ·) = u1, u2, 0; Q(s2, ·) = w; Q(s3, ·) = 1.1 w
    np.testing.assert_allclose(found, [[5, 7, 0], [3, 3, 3], [3.3, 3.3, 3.3]], rtol=1e-6)


def test_gradients_are_those_of_the_paper_without_the_factor_two():
    with jax.enable_x64(True):
        toy = Toy(jnp.array(divergence.FIRST), jnp.array([2.0, 0.5, 0.25, 9.0]))
        discount = jnp.array([0.0, 0.99, 0.99])
        slope = jax.grad(divergence.loss)(toy, "q", discount, jnp.ones(3)).last
    # (1 − γβ) w, u1 − 1, u2 − γ w, 0
    np.testing.assert_allclose(slope, [(1 - 1.089) * 2, -0.5, 0.25 - 1.98, 0.0], rtol=1e-12)


def test_q_learning_grows_by_the_closed_form(paths):
    path = paths[Case("q")]
    np.testing.assert_allclose(path[:, W], 1.0089 ** np.arange(301), rtol=1e-12)
    assert path[1, U1] == pytest.approx(0.1)
    assert path[1, U2] == pytest.approx(0.099)
    np.testing.assert_allclose(path[:, U1], 1 - 0.9 ** np.arange(301), rtol=1e-12)


def test_the_printed_loss_doubles_the_pull(paths):
    path = paths[Case("q", factor=2.0)]
    np.testing.assert_allclose(path[:, W], 1.0178 ** np.arange(301), rtol=1e-12)


def test_a_negative_start_escapes_downwards(paths):
    np.testing.assert_allclose(paths[Case("q", w=-1.0)][:, W], -paths[Case("q")][:, W])


def test_one_transition_per_update_grows_when_the_third_is_drawn(paths):
    drawn = np.random.default_rng(3).choice([0, 1, 2], size=300) == 2
    expected = 1.0089 ** np.concatenate([[0], np.cumsum(drawn)])
    np.testing.assert_allclose(paths[Case("q", batch="one", seed=3)][:, W], expected, rtol=1e-12)


def test_learned_first_layer_by_hand(paths):
    # δ = 1 − 1.089; w, the weight of s and that of a[2] each move by .1 · .089.
    path = paths[Case("q", first_layer="learned")]
    assert path[1, Q22] == pytest.approx(1.0089 * (1.0089 + 0.0089), rel=1e-12)


def test_bve_keeps_w_and_learns_what_the_log_holds(paths):
    decay = 0.9 ** np.arange(301)
    path = paths[Case("bve")]
    assert (path[:, W] == 1).all()
    np.testing.assert_allclose(path[:, U1], 1 - decay, rtol=1e-12)
    np.testing.assert_allclose(path[:, U2], 0.99 * (1 - decay), rtol=1e-12)
    np.testing.assert_allclose(paths[Case("bve", end="terminal")][:, W], decay, rtol=1e-12)


def test_bve_that_bootstraps_at_s3_is_q_learning(paths):
    np.testing.assert_array_equal(paths[Case("bve", end="bootstrap")][:, W], paths[Case("q")][:, W])


def test_momentum_by_its_own_recursion(paths):
    w, speed, expected = 1.0, 0.0, [1.0]
    for _ in range(300):
        speed = 0.9 * speed - 0.089 * w
        w -= 0.1 * speed
        expected.append(w)
    np.testing.assert_allclose(paths[Case("q", "momentum")][:, W], expected, rtol=1e-9)
    root = max(np.roots([1, -(1.9 + 0.0089), 0.9]))
    assert divergence.rate(Case("q", "momentum")) == pytest.approx(root)
    assert expected[-1] / expected[-2] == pytest.approx(root, rel=1e-6)


def test_adam_by_its_own_recursion(paths):
    w, mean, square, expected = 1.0, 0.0, 0.0, [1.0]
    for t in range(1, 301):
        slope = -0.089 * w
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        w -= 0.1 * (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
        expected.append(w)
    np.testing.assert_allclose(paths[Case("q", "adam")][:, W], expected, rtol=1e-9)
    assert expected[1] == pytest.approx(1.1, rel=1e-6)


def test_rmsprop_by_its_own_recursion(paths):
    w, square, expected = 1.0, 0.0, [1.0]
    for _ in range(300):
        slope = -0.089 * w
        square = 0.9 * square + 0.1 * slope**2
        w -= 0.1 * slope / np.sqrt(square + 1e-8)
        expected.append(w)
    np.testing.assert_allclose(paths[Case("q", "rmsprop")][:, W], expected, rtol=1e-6)


@pytest.mark.parametrize("optimiser", divergence.OPTIMISERS)
@pytest.mark.parametrize("layer", ["", "/first_layer=learned"])
def test_who_escapes(divergence_runs, optimiser, layer):
    escaped = {
        end: divergence_runs[f"divergence/{method}/{optimiser}{layer}{end}"].last("escaped")
        for method, end in (("bve", ""), ("bve", "/end=terminal"), ("bve", "/end=bootstrap"))
    }
    assert escaped == {"": 0, "/end=terminal": 0, "/end=bootstrap": 1}
    run = divergence_runs[f"divergence/q/{optimiser}{layer}"]
    assert run.last("escaped") == 1
    assert run.last("greedy/s1") != 0
    assert divergence_runs[f"divergence/bve/{optimiser}{layer}"].last("largest") < 2


def test_rows_of_the_plain_run(divergence_runs):
    run = divergence_runs["divergence/q/sgd"]
    assert run.last("growth") == pytest.approx(1.0089, rel=1e-10)
    assert run.last("growth/closed_form") == pytest.approx(1.0089, rel=1e-14)
    assert run.last("closed_form_error") < 1e-11
    assert run.last("w") == pytest.approx(1.0089**4000, rel=1e-9)
    assert run.last("overflowed_at") is None
    assert run.spec["learning_rate"] == 0.1
    assert json.loads(json.dumps(run.spec)) == run.spec


def test_preconditioned_growth_is_linear(divergence_runs):
    """Near lr per update: .100 under RMSProp; Adam's longer memory keeps its steps larger."""
    rmsprop = divergence_runs["divergence/q/rmsprop"].last("increment")
    adam = divergence_runs["divergence/q/adam"].last("increment")
    assert rmsprop == pytest.approx(0.1, rel=0.02)
    assert 0.1 < adam < 0.2


def test_overflow_is_named_and_no_row_is_infinite(divergence_runs):
    run = divergence_runs["divergence/q/sgd/first_layer=learned"]
    assert 50 < run.last("overflowed_at") < 70
    assert all(np.isfinite(row.value) for row in run.rows if row.metric.startswith(("q/", "w")))


def test_bounded_is_not_correct(divergence_runs):
    """From w = 2, BVE values a1 at γ · 2 > 1 and prefers it; nothing in the log corrects w."""
    run = divergence_runs["divergence/bve/sgd/w=2.0"]
    assert run.last("q/s1/a1") == pytest.approx(1.98)
    assert run.last("greedy/s1") == 1
    assert run.last("escaped") == 0


def test_wrong_scale_is_refused():
    with pytest.raises(ValueError, match="quick, desk, paper; got 'huge'"):
        divergence.run("huge")
