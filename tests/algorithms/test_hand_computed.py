"""Losses worked out by hand, on numbers chosen so that each plausible mistake gives another value.

The value algorithms share one batch of two decisions. In the first, the logged next action (2), the
online network's choice (0) and the target network's choice (1) all differ; the second terminates.

    row 0:  Q(s, a) = 1,  r = .5,  γ = .5    target network at a', a*_online, a*_target: −1, 2, 6
    row 1:  Q(s, a) = 2,  r = .5,  γ = 0
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.losses import KEY, batch, head, values

from rbve import algorithms, ops, ranking
from rbve.data import Dataset, Episode
from rbve.types import Head, Views

LOG2, LOG5 = math.log(2), math.log(5)


VIEWS = Views(
    now=head([[1, 2, 0.5, 0.875], [2, 2.5, 0, 0]]),
    next=head([[4, 3, 1, 0], [7, 7, 7, 7]]),
    target=head([[2, 6, -1, 5], [9, 9, 9, 9]]),
)
BATCH = batch([0, 0], discount=[0.5, 0], next_action=[2, 0], g=[3, 1], g_scale=4)


def test_bve_bootstraps_from_the_logged_next_action_by_the_target_network() -> None:
    # (1 − (.5 − .5))², where a maximum gives 6.25, the online network 0, no discount 2.25.
    np.testing.assert_allclose(values("bve", VIEWS, BATCH), [1, 2.25])


def test_bve_under_huber() -> None:
    # ½·1² at an error of 1; 1.5 − ½ = 1 at an error of 1.5.
    np.testing.assert_allclose(values("bve", VIEWS, BATCH, ops.TD("huber")), [0.5, 1])


def test_dqn_chooses_by_the_online_and_values_by_the_target_network() -> None:
    # (1 − (.5 + .5·2))²; swapped networks give 1, the online network alone 2.25.
    np.testing.assert_allclose(values("dqn", VIEWS, BATCH), [0.25, 2.25])


def test_single_dqn_uses_the_target_network_alone() -> None:
    # (1 − (.5 + .5·6))²
    np.testing.assert_allclose(values("dqn", VIEWS, BATCH, double=False), [6.25, 2.25])


def test_dqn_does_not_choose_illegal_actions() -> None:
    masked = BATCH._replace(
        legal=jnp.ones((2, 4), bool),
        next_legal=jnp.array([[False, False, True, True], [False] * 4]),
    )
    # Online prefers 2 of {2, 3}: (1 − (.5 − .5))². The target network prefers 3: (1 − 3)².
    np.testing.assert_allclose(values("dqn", VIEWS, masked), [1, 2.25])
    np.testing.assert_allclose(values("dqn", VIEWS, masked, double=False), [4, 2.25])


# Row 0 violates the order by (1 + .25)² + (−.125 + .25)² = 1.578125, row 1 by (.5 + .25)² = .5625;
# the action itself would add .0625, no margin leaves 1 and .25. V̂ lies 1 above and below its mean.
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        # w = exp(±1 / .5) = 7.389 and .1353
        ({"normalise": "none"}, [6.830427, 2.288063]),
        # the deviation 4 divides as well: w = exp(±.5)
        ({"normalise": "dataset"}, [2.3009441, 2.4205867]),
        ({"normalise": "none", "cap": 3.0}, [3.3671875, 2.288063]),
        ({"filter": "none"}, [1.7890625, 2.53125]),
        ({"filter": "binary"}, [1.7890625, 2.25]),
        # mean Q 1.09375 and 1.125 instead of mean V̂, β = 2: w = exp(.953125) and exp(−.0625)
        ({"filter": "advantage", "normalise": "none", "beta": 2.0}, [3.0466724, 2.5142099]),
        # Σ softplus of (1, −.5, −.125) and of (.5, −2, −2)
        ({"filter": "none", "form": "softplus"}, [2.2099689, 2.8639665]),
        # −log of Π_i σ(Q_a − Q_i) over the sum of such products
        ({"filter": "none", "form": "listwise"}, [1.9839136, 2.7729320]),
    ],
)
def test_rbve_adds_the_ranking(settings: dict[str, Any], expected: list[float]) -> None:
    settings = {"lam": 0.5, "nu": 0.25, **settings}
    np.testing.assert_allclose(values("rbve", VIEWS, BATCH, **settings), expected, rtol=1e-6)


def test_rbve_defaults_are_the_papers_numbers() -> None:
    assert ranking.Config() == ranking.Config(lam=0.005, nu=0.05, beta=0.5, cap=20.0)
    # 1 + .005·e^.5·1.05² and 2.25 + .005·e^−.5·.55²; no other action lies within the margin.
    np.testing.assert_allclose(values("rbve", VIEWS, BATCH), [1.0090886, 2.2509174], rtol=1e-6)


def test_ranking_acts_on_what_the_head_ranks() -> None:
    views = VIEWS._replace(now=VIEWS.now._replace(ranked=jnp.zeros((2, 4))))
    # Equal Q̂: three other actions, each at the margin, 3·.25² = .1875.
    loss = values("rbve", views, BATCH, lam=0.5, nu=0.25, filter="none")
    np.testing.assert_allclose(loss, [1.09375, 2.34375])


def test_ranking_leaves_illegal_actions_alone() -> None:
    legal = jnp.array([[True, False, True, True], [True, True, True, True]])
    masked = BATCH._replace(legal=legal, next_legal=jnp.ones((2, 4), bool))
    loss = values("rbve", VIEWS, masked, lam=0.5, nu=0.25, filter="none")
    np.testing.assert_allclose(loss, [1 + 0.5 * 0.015625, 2.53125])


def test_rdqn_is_double_dqn_with_the_ranking() -> None:
    settings = {"lam": 0.5, "nu": 0.25, "normalise": "none"}
    loss = values("rdqn", VIEWS, BATCH, **settings)
    np.testing.assert_allclose(loss, [6.080427, 2.288063], rtol=1e-6)
    single = values("rdqn", VIEWS, BATCH, double=False, **settings)
    np.testing.assert_allclose(single, [12.080427, 2.288063], rtol=1e-6)


def test_cql_lowers_the_soft_maximum_against_the_logged_action() -> None:
    # exp Q = 1, 2, 5: log 8 − log 2 = 1.3862944. The target is Q − .5 and α = .5.
    views = VIEWS._replace(
        now=head([[0, LOG2, LOG5]]), next=head([[4, 3, 1]]), target=head([[2, 6, -1]])
    )
    one = batch([1], reward=[LOG2 - 1.5])
    np.testing.assert_allclose(values("cql", views, one, alpha=0.5), [0.9431472], rtol=1e-6)
    np.testing.assert_allclose(values("cql", views, one), [0.2638629], rtol=1e-6)
    # Without the third action: log 3 − log 2 = .4054651.
    masked = one._replace(legal=jnp.array([[True, True, False]]), next_legal=jnp.ones((1, 3), bool))
    np.testing.assert_allclose(values("cql", views, masked, alpha=0.5), [0.4527326], rtol=1e-6)


def mixture(count: int, key: jax.Array = KEY) -> jax.Array:
    """REM's α, read off losses: with Q^k = 1 and all else 0 the loss is α_k²."""
    rem = algorithms.load("rem")
    zero = jnp.zeros((1, count, 1))

    def one(k: jax.Array) -> jax.Array:
        parts = zero.at[0, k, 0].set(1.0)
        views = Views(*(Head(parts.mean(1), parts.mean(1), p) for p in (parts, zero, zero)))
        still = batch([0], reward=[0.0])
        return rem.loss(views, still, rem.config(), rem.options(heads=count), ops.TD(), key)[0][0]

    return jnp.sqrt(jax.vmap(one)(jnp.arange(count)))


def test_rem_mixes_both_networks_by_one_draw() -> None:
    # Each head is off its own target by .5, so any shared mixture of sum 1 is off by .5.
    now = [[[1.5, 9]], [[-0.5, 9]], [[4, 9]]]
    target = [[[1, -7]], [[-3, -7]], [[6, -7]]]
    views = Views(
        *(
            head(np.zeros((2, 2)), parts=np.tile(np.transpose(parts, (1, 0, 2)), (2, 1, 1)))
            for parts in (now, np.full((3, 1, 2), 50.0), target)
        )
    )
    loss = values("rem", views, batch([0, 0]), heads=3)
    np.testing.assert_allclose(loss, [0.25, 0.25], rtol=1e-5)


def test_rem_maximises_the_mixture_not_its_parts() -> None:
    views = Views(
        now=head([[0, 0]], parts=[[[1, 0], [1, 0]]]),
        next=head([[9, 0]], parts=[[[9, 0], [9, 0]]]),
        target=head([[0, 9]], parts=[[[0, 8], [8, 0]]]),
    )
    share = float(mixture(2)[0])
    # r + γ·8·max(α, 1 − α); the maximum of each part would give .5 + 4.
    expected = (1 - (0.5 + 4 * max(share, 1 - share))) ** 2
    assert expected < 0.9 * (1 - 4.5) ** 2
    np.testing.assert_allclose(values("rem", views, batch([0]), heads=2), [expected], rtol=1e-5)


def test_rem_does_not_choose_illegal_actions() -> None:
    same = [[[2, 6], [2, 6]]]
    views = Views(
        now=head([[1, 0]], parts=[[[1, 0], [1, 0]]]),
        next=head([[2, 6]], parts=same),
        target=head([[2, 6]], parts=same),
    )
    masked = batch([0], legal=[[True, True]], next_legal=[[True, False]])
    # (1 − (.5 + .5·2))² instead of (1 − 3.5)²
    np.testing.assert_allclose(values("rem", views, masked, heads=2), [0.25], rtol=1e-5)


def test_rem_draws_uniform_weights_and_normalises_them() -> None:
    shares = jax.jit(jax.vmap(lambda key: mixture(2, key)))(jax.random.split(KEY, 4000))
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
    # P(U₁ / (U₁ + U₂) < ¼) = P(U₁ < U₂ / 3) = 1/6; on the simplex it would be 1/4.
    assert abs(float(jnp.mean(shares[:, 0] < 0.25)) - 1 / 6) < 0.02


# π(·|s') = .125, .625, .25 by the online network: over their maximum .2, 1, .4.
BCQ_VIEWS = Views(
    now=head([[1, 2, 0.5]], logits=[[0, LOG2, LOG5]]),
    next=head([[4, 1, 3]], logits=[[0, LOG5, LOG2]]),
    target=head([[2, 6, 4]], logits=[[LOG5, 0, 0]]),
)


@pytest.mark.parametrize(
    ("threshold", "td_loss"),
    [
        (0.3, 2.25),  # 2 is the better of {1, 2}: (1 − (.5 + .5·4))²; π > .3 itself leaves 1: 6.25
        (0.1, 0.25),  # all pass, 0 is best
        (0.5, 6.25),  # only the likeliest, 1
        (1.0, 6.25),  # the likeliest passes at any threshold
    ],
)
def test_bcq_chooses_among_likely_actions(threshold: float, td_loss: float) -> None:
    # −log ⅛ and .5 · the mean of 0, log² 2 and log² 5 (1.0235811; their sum is 3.0707434)
    expected = td_loss + 2.0794415 + 0.5117906
    loss = values("bcq", BCQ_VIEWS, batch([0]), threshold=threshold, logit_penalty=0.5)
    np.testing.assert_allclose(loss, [expected], rtol=1e-6)


def test_single_bcq_filters_and_chooses_by_the_target_network() -> None:
    # The target network's policy allows 0 alone (ratios 1, .2, .2): (1 − (.5 + .5·2))².
    loss = values("bcq", BCQ_VIEWS, batch([0]), double=False, logit_penalty=0.0)
    np.testing.assert_allclose(loss, [0.25 + 2.0794415], rtol=1e-6)


def test_bcq_threshold_is_strict() -> None:
    bcq = algorithms.load("bcq")
    never = head([[5, 1, 2]], logits=[[-1e4, 0, 0]])  # the probability of 0 underflows to 0
    scores = bcq.scores(never, None, bcq.config(threshold=0.0), bcq.options())
    np.testing.assert_array_equal(scores, np.float32([[-1e8, 1, 2]]))


def test_bcq_acts_under_its_filter() -> None:
    bcq = algorithms.load("bcq")
    choose = lambda legal: int(  # noqa: E731
        jnp.argmax(bcq.scores(BCQ_VIEWS.next, legal, bcq.config(), bcq.options()))
    )
    assert choose(None) == 2
    # Without 1, the ratios of 0 and 2 are .5 and 1: both pass and 0 has the larger Q.
    assert choose(jnp.array([[True, False, True]])) == 0


def test_bcq_policy_and_penalty_count_legal_actions_only() -> None:
    masked = batch([0], legal=[[True, True, False]], next_legal=[[True, True, True]])
    # log 3 and .5 · log² 2 / 2
    loss = values("bcq", BCQ_VIEWS, masked, logit_penalty=0.5)
    np.testing.assert_allclose(loss, [2.25 + 1.0986123 + 0.1201133], rtol=1e-6)


# Two levels τ at s and three at s'. Target means say action 1, the means of its parts and the
# online network say 0. Goals: 1 + .5·(0, 4, −2) = 1, 3, 0; predictions 0 and 2.
IQN_VIEWS = Views(
    now=head([[0, 0]], parts=[[[0, 70], [2, 70]]], taus=[[0.25, 0.75]]),
    next=head([[9, 0]], parts=[[[9, 0]] * 3], taus=[[0.1] * 3]),
    target=head([[0, 9]], parts=[[[20, 0], [20, 4], [20, -2]]], taus=[[0.5, 0.125, 0.875]]),
)
IQN_BATCH = batch([0], reward=[1.0])


def test_iqn_sums_over_levels_and_averages_over_goals() -> None:
    # τ = .25: errors 1, 3, 0, Huber .5, 2.5, 0, all weighed .25: mean .25.
    # τ = .75: errors −1, 1, −2, Huber .5, .5, 1.5, weighed .25, .75, .25: mean .875 / 3.
    np.testing.assert_allclose(values("iqn", IQN_VIEWS, IQN_BATCH), [0.5416667], rtol=1e-6)


def test_iqn_divides_by_kappa() -> None:
    # κ = 2: Huber ½, 2·(3 − 1) = 4, 0 and ½, ½, 2, halved: .1875 and (.0625 + .1875 + .25) / 3.
    loss = values("iqn", IQN_VIEWS, IQN_BATCH, kappa=2.0)
    np.testing.assert_allclose(loss, [0.1875 + 0.5 / 3], rtol=1e-6)


def test_iqn_does_not_choose_illegal_actions() -> None:
    masked = IQN_BATCH._replace(legal=jnp.ones((1, 2), bool), next_legal=jnp.array([[True, False]]))
    # All goals are 1 + .5·20 = 11: .25·(11 − .5) + .75·(9 − .5).
    np.testing.assert_allclose(values("iqn", IQN_VIEWS, masked), [9.0], rtol=1e-6)


@pytest.mark.parametrize("name", ["bc", "filtered_bc"])
def test_cloning_is_the_negative_log_likelihood(name: str) -> None:
    clone = VIEWS._replace(now=head([[0, LOG2, LOG5], [0, LOG2, LOG5]]))
    # π = 1/8, 2/8, 5/8
    np.testing.assert_allclose(
        values(name, clone, batch([1, 2])), [1.3862944, 0.4700036], rtol=1e-6
    )
    masked = batch([1, 2], legal=[[True, True, False], [False, True, True]])
    np.testing.assert_allclose(values(name, clone, masked), [0.4054651, 0.3364722], rtol=1e-6)


def test_filtered_bc_keeps_episodes_above_the_mean_return() -> None:
    def episode(rewards: list[float]) -> Episode:
        return Episode.from_steps(
            np.zeros((len(rewards) + 1, 1)), [0] * len(rewards), rewards, True
        )

    # Returns 1, 3, 8, 0: the mean is 3, the median 2; per step the second is best.
    data = Dataset.from_episodes(map(episode, ([1], [3], [2] * 4, [0, 0])), 1)
    kept = algorithms.load("filtered_bc").keep(data)
    np.testing.assert_array_equal(kept.episode_return, [8])


def test_filtered_bc_keeps_all_of_equal_episodes_and_says_so() -> None:
    episode = Episode.from_steps(np.zeros((2, 1)), [0], [1.0], True)
    data = Dataset.from_episodes([episode, episode], 1)
    with pytest.warns(UserWarning, match="same return"):
        assert algorithms.load("filtered_bc").keep(data).num_episodes == 2


def test_mc_regresses_to_the_reward_to_go() -> None:
    # (1 − 3)² and (2 − 1)²; neither reward nor next state enters.
    np.testing.assert_allclose(values("mc", VIEWS, BATCH), [4, 1])
    np.testing.assert_allclose(values("mc", VIEWS, BATCH, ops.TD("huber")), [1.5, 0.5])
