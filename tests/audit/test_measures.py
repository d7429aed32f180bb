"""Figures of an audit against values found another way."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from rbve import ranking
from rbve.audit import audit
from rbve.audit.measure import histogram, limit_of
from rbve.audit.weights import GRID, Effect, recommend, weights
from rbve.data import Dataset, Episode
from rbve.data.features import Feature, Features
from rbve.types import Batch, Head


def cells_of(counts: list[list[int]]) -> Dataset:
    """One-step episodes: as many rows at each of well-separated states as `counts` says."""
    states = np.repeat(np.arange(len(counts)), [sum(row) for row in counts])
    taken = np.concatenate([np.repeat(range(len(row)), row) for row in counts])
    rng = np.random.default_rng(0)
    episodes = [
        Episode(
            np.full((2, 1), 10.0 * state) + 0.01 * rng.normal(),
            np.array([action, -1]),
            np.array([rng.normal(), 0], np.float32),
            True,
        )
        for state, action in zip(states, taken, strict=True)
    ]
    return Dataset.from_episodes(episodes, len(counts[0]))


def test_coverage_and_entropy_by_hand() -> None:
    # 160 rows, 2 actions: 4 cells; each state is a cell of its own.
    counts = [[20, 20], [40, 0], [36, 4], [10, 30]]
    found = audit(cells_of(counts)).support
    assert sorted(found.cells) == sorted(counts)
    assert found.coverage == pytest.approx(6 / 8)  # (1, 1) and (2, 1) have fewer than 5 rows
    assert found.one_sided == pytest.approx(80 / 160)

    def bits(p: float) -> float:
        return 0.0 if p in (0, 1) else -p * np.log2(p) - (1 - p) * np.log2(1 - p)

    assert found.entropy == pytest.approx(np.mean([bits(0.5), 0, bits(0.1), bits(0.25)]))
    assert found.counts == [106, 54]


def test_illegal_pairs_do_not_count() -> None:
    counts = [[20, 20], [40, 0], [40, 0], [10, 30]]
    data = cells_of(counts)
    legal = np.ones((len(data.action), 2), bool)
    legal[80:160, 1] = False  # two rows an episode: state 1 has one legal action
    found = audit(replace(data, legal=legal)).support
    assert found.coverage == pytest.approx((80 + 40 + 40 + 80) / (80 + 40 + 80 + 80))
    assert found.one_sided == pytest.approx(40 / 120)
    assert found.forced == pytest.approx(40 / 160)
    assert found.mean_legal == pytest.approx((120 * 2 + 40) / 160)
    quarter = -(0.25 * np.log2(0.25) + 0.75 * np.log2(0.75))
    assert found.entropy == pytest.approx((40 + 40 * quarter) / 120)


def test_propensities_by_hand() -> None:
    counts = [[20, 20], [40, 0], [36, 4], [10, 30]]
    data = cells_of(counts)
    p = np.where(data.action == 0, 0.8, 0.4).astype(np.float32)
    found = audit(replace(data, propensity=p)).support.propensities
    assert found is not None
    assert found.totals == pytest.approx([106 / 160 / 0.8, 54 / 160 / 0.4], rel=1e-6)
    inverse = np.array([1 / 0.8] * 106 + [0.0] * 54)
    assert found.errors[0] == pytest.approx(inverse.std() / np.sqrt(160), rel=1e-6)
    assert found.mean == pytest.approx((106 * 0.8 + 54 * 0.4) / 160, rel=1e-6)
    surprise = -(106 * np.log(0.8) + 54 * np.log(0.4)) / 160 / np.log(2)
    assert found.entropy == pytest.approx(surprise, rel=1e-6)


@pytest.mark.parametrize("normalise", ["dataset", "none"])
@pytest.mark.parametrize("beta", [0.1, 0.5, 2.0])
def test_weights_are_those_of_training(normalise: str, beta: float) -> None:
    g = np.random.default_rng(0).gamma(2.0, 3.0, 500)
    options = ranking.Options(normalise=normalise)  # type: ignore[arg-type]
    none = jnp.zeros(len(g))
    batch = Batch(
        action=none,
        reward=none,
        discount=none,
        next_action=none,
        has_next_action=none,
        g=jnp.asarray(g, jnp.float32),
        g_scale=jnp.float32(g.std()),
        weight=jnp.ones(len(g)),
        legal=None,
        next_legal=None,
    )
    head = Head(q=jnp.zeros((len(g), 2)), ranked=jnp.zeros((len(g), 2)))
    config = ranking.Config(beta=beta)
    expected = ranking.success_weight(head, batch, config, options)
    assert weights(g, beta, normalise) == pytest.approx(np.asarray(expected), rel=2e-4)
    share = ranking.effective_share(expected, batch.weight)
    found = weights(g, beta, normalise)
    assert found.sum() ** 2 / (found**2).sum() / 500 == pytest.approx(float(share), rel=1e-3)


def test_the_beta_recommended() -> None:
    def grid(useful: set[float], asked: float = 0.5) -> list[Effect]:
        betas = sorted({*GRID, asked})
        return [Effect(b, "dataset", 0.0, b / 10, 0.5, b in useful) for b in betas]

    assert recommend(grid({0.1, 0.5, 1.0}), 0.5).beta == 0.5
    assert recommend(grid({0.1, 1.0, 2.0}), 0.5).beta == 1.0  # never below the paper's
    assert recommend(grid({0.3, 0.5}, 0.3), 0.3).beta == 0.3  # what was asked for goes first
    assert recommend(grid({0.5}, 0.3), 0.3).beta == 0.5
    assert recommend(grid(set()), 0.5).beta == 5.0  # the largest effective share


def test_values_and_what_the_horizon_sees() -> None:
    steps = Episode.from_steps(np.arange(4.0)[:, None], [0, 1, 0], [1, 0, 8], True)
    cut = Episode.from_steps(np.arange(3.0)[:, None] + 9, [1, 0], [2, 4], False)
    found = audit(Dataset.from_episodes([steps, cut], 2), gamma=0.5).weights
    # V̂: 3, 4, 8 and 4 (the last decision of the truncated episode has no next pair).
    assert (found.rows, found.dropped) == (4, 1)
    assert found.value.mean == pytest.approx(19 / 4)
    assert (found.value.low, found.value.high) == (3, 8)
    assert found.horizon == 2
    assert found.seen_from_start == pytest.approx((1 + 2 + 2 + 2) / 15)
    assert found.beyond == pytest.approx(2 / 7)


def test_counts_of_a_mixed_log() -> None:
    state = np.arange(6.0)[:, None]
    episodes = [
        Episode.from_steps(state[:4], [0, 1, 0], [1, 0, 8], True),
        Episode.from_steps(state[:3], [1, 1], [2, 4], False),
        Episode(state[:2], np.array([0, 1]), np.array([1.0, 0]), False, False, 30.0),
        Episode(state[:2], np.array([0, -1]), np.array([1.0, 0]), True, final_observed=False),
    ]
    found = audit(Dataset.from_episodes(episodes, 2))
    counts = found.counts
    assert (counts.episodes, counts.transitions) == (4, 7)
    assert (counts.terminated, counts.truncated, counts.fragments) == (2, 2, 1)
    assert counts.without_final == 1
    assert counts.above_mean == 0.25  # returns 9, 6, 30, 1
    assert found.support.counts == [4, 3]  # the fragment's next action is no decision
    assert found.support.sampled == 7
    assert any("1 fragment without V̂" in note for note in found.notes)
    assert any("1 episode without a final observation" in note for note in found.notes)


def test_executed_actions() -> None:
    executed = np.array([0, 0, -1, 1, 1, -1], np.int32)
    state = np.arange(3.0)[:, None]
    episodes = [Episode.from_steps(state, [0, 1], [1, 0], True) for _ in range(2)]
    data = replace(Dataset.from_episodes(episodes, 2), executed=executed)
    assert audit(data).counts.executed_differs == 0.5


def test_columns_are_described(walk_log: Dataset) -> None:
    for column, values in zip(audit(walk_log).scan.columns, walk_log.obs.T, strict=True):
        values = values.astype(np.float64)
        assert (column.low, column.high) == (values.min(), values.max())
        assert column.mean == pytest.approx(values.mean())
        assert column.deviation == pytest.approx(values.std())


def test_named_columns_keep_their_names(bandit_log: Dataset) -> None:
    assert [column.name for column in audit(bandit_log).scan.columns] == ["age", "device"]


@pytest.mark.parametrize(
    ("lengths", "limit"),
    [
        ([9] * 50, 9),
        ([3, 5, 8, 11, 17, 30, 30, 30, 30, 30], 30),
        ([1] * 100, None),  # one-step logs
        (list(range(3, 9)) * 20, None),  # as many at the longest as elsewhere
        ([10] * 90 + [50], None),  # one long episode is no pile
        ([], None),
    ],
)
def test_where_episodes_pile_up(lengths: list[int], limit: int | None) -> None:
    assert limit_of(np.array(lengths, np.int64)) == limit


def test_whole_numbers_get_bins_of_whole_width() -> None:
    few = histogram(np.array([1, 1, 2, 4]))
    assert (few.edges, few.counts) == ([0.5, 1.5, 2.5, 3.5, 4.5], [2, 1, 0, 1])
    many = histogram(np.arange(100))
    assert set(many.counts[:-1]) == {4}
    assert sum(many.counts) == 100
    assert histogram(np.array([0.5, 0.5])).counts == [2]


def test_a_category_that_is_a_fault_for_none(bandit_log: Dataset) -> None:
    """Categories are one-hot for the cells: their codes have no order."""
    codes = bandit_log.obs.copy()
    codes[:, 1] = np.array([2, 0, 1])[codes[:, 1].astype(int)]
    named = (
        Feature("age", "number", 40.0, 12.0),
        Feature("d", "category", categories=tuple("xyz")),
    )
    other = replace(bandit_log, obs=codes, features=Features(named))
    same, renamed = audit(bandit_log).support, audit(other).support
    assert renamed.coverage == pytest.approx(same.coverage, abs=0.02)
