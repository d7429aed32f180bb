"""Datasets: gathering episodes, choosing some of them, and refusing what cannot be right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbve.data import dataset, formats
from rbve.data.dataset import NO_ACTION, Dataset, Episode
from rbve.data.transitions import View, transitions


def numbered(index: int, length: int | None = None, seed: int = 0) -> Episode:
    """An episode whose every number tells where it comes from."""
    rng = np.random.default_rng([seed, index])
    length = int(rng.integers(1, 8)) if length is None else length
    return Episode(
        obs=(100.0 * index + np.arange(length + 1))[:, None].astype(np.float32),
        action=np.append(rng.integers(0, 4, length), NO_ACTION),
        reward=np.append(rng.normal(size=length), 0).astype(np.float32),
        terminated=bool(index % 2),
        complete=index % 5 != 4,
        episode_return=50.0 + index if index % 5 == 4 else None,
        executed=np.append(rng.integers(0, 4, length), NO_ACTION),
        legal=np.ones((length + 1, 4), bool),
        propensity=rng.uniform(0.1, 1, length + 1),
    )


def many(count: int = 40) -> Dataset:
    return Dataset.from_episodes([numbered(i) for i in range(count)], 4, {"source": "test"})


def ids(data: Dataset) -> list[int]:
    """Which numbered episodes a dataset holds."""
    return [int(row) // 100 for row in data.obs[data.offsets[:-1], 0]]


def assert_equal(found: Episode, expected: Episode) -> None:
    for name, ours, theirs in zip(Episode._fields, found, expected, strict=True):
        if name == "episode_return" and theirs is None:
            theirs = float(np.sum(expected.reward, dtype=np.float64))
        if name == "propensity" and theirs is not None:
            theirs = theirs.astype(np.float32)
        np.testing.assert_array_equal(ours, theirs, err_msg=name)


def test_from_steps_adds_the_final_row() -> None:
    made = Episode.from_steps([[0.0], [1.0], [2.0]], [1, 0], [0.5, 2.0], terminated=True)
    assert made.obs.shape == (3, 1)
    assert made.action.tolist() == [1, 0, NO_ACTION]
    assert made.reward.tolist() == [0.5, 2.0, 0.0]
    assert made.terminated
    assert made.complete


def test_from_steps_counts() -> None:
    with pytest.raises(ValueError, match="2 observations, 2 actions, 1 rewards"):
        Episode.from_steps([[0.0], [1.0]], [1, 0], [0.5], terminated=True)


def test_from_episodes_lays_rows_one_after_another() -> None:
    data = Dataset.from_episodes([numbered(0, 2), numbered(1, 1), numbered(2, 3)], 4)
    assert data.offsets.tolist() == [0, 3, 5, 9]
    assert data.obs[:, 0].tolist() == [0, 1, 2, 100, 101, 200, 201, 202, 203]
    assert (data.num_episodes, data.num_transitions, data.num_actions) == (3, 6, 4)
    assert data.lengths.tolist() == [2, 1, 3]
    assert data.obs_shape == (1,)
    assert data.actions == ("0", "1", "2", "3")
    assert data.terminated.tolist() == [False, True, False]
    assert data.action[data.offsets[1:] - 1].tolist() == [NO_ACTION] * 3
    assert data.episode_return[0] == pytest.approx(data.reward[:3].sum())
    dtypes = {
        "action": "int32",
        "reward": "float32",
        "offsets": "int64",
        "terminated": "bool",
        "complete": "bool",
        "episode_return": "float64",
        "executed": "int32",
        "legal": "bool",
        "propensity": "float32",
    }
    assert {name: getattr(data, name).dtype.name for name in dtypes} == dtypes


def test_episodes_come_back_as_they_went_in() -> None:
    data = many()
    for index in range(40):
        assert_equal(data.episode(index), numbered(index))
    assert_equal(data.episode(-1), numbered(39))
    with pytest.raises(IndexError):
        data.episode(40)


def test_missing_columns_stay_missing() -> None:
    data = Dataset.from_episodes([numbered(0)._replace(executed=None, legal=None)], 4)
    assert data.executed is None
    assert data.legal is None
    assert data.propensity is not None
    assert data.episode(0).executed is None


@pytest.mark.parametrize(
    ("actions", "names"),
    [(2, ("0", "1")), (np.int64(2), ("0", "1")), (["left", "right"], ("left", "right"))],
)
def test_actions_are_counted_or_named(actions: Any, names: tuple[str, ...]) -> None:
    made = Episode.from_steps(np.zeros((2, 1)), [1], [0], True)
    assert Dataset.from_episodes([made], actions).actions == names


@pytest.mark.parametrize("actions", [0, [], ["left", "left"]])
def test_action_names_differ(actions: Any) -> None:
    with pytest.raises(ValueError, match="non-empty list of different names"):
        Dataset.from_episodes([numbered(0)], actions)


def test_select_takes_the_order_given() -> None:
    data = many()
    chosen = data.select(np.array([7, 2, 30]), "by hand")
    assert ids(chosen) == [7, 2, 30]
    for place, index in enumerate([7, 2, 30]):
        assert_equal(chosen.episode(place), numbered(index))
    assert chosen.provenance == {"source": "test", "select": ["by hand"]}
    assert chosen.select(np.array([1]), "again").provenance["select"] == ["by hand", "again"]
    assert data.provenance == {"source": "test"}


def test_subsample_keeps_whole_episodes_in_order() -> None:
    data = many()
    part = data.subsample(0.25, seed=3)
    kept = ids(part)
    assert len(kept) == 10
    assert kept == sorted(set(kept))
    for place, index in enumerate(kept):
        assert_equal(part.episode(place), numbered(index))
    assert part.provenance["select"] == ["subsample 0.25 seed 3"]


def test_subsample_follows_its_seed() -> None:
    data = many()
    assert ids(data.subsample(0.25, seed=1)) == ids(data.subsample(0.25, seed=1))
    drawn = {tuple(ids(data.subsample(0.25, seed=seed))) for seed in range(20)}
    assert len(drawn) == 20
    assert set().union(*drawn) == set(range(40))


@pytest.mark.parametrize(
    ("fraction", "count"), [(1.0, 40), (0.9, 36), (0.1, 4), (0.04, 2), (0.001, 1)]
)
def test_subsample_counts_episodes(fraction: float, count: int) -> None:
    assert many().subsample(fraction).num_episodes == count


def test_subsampling_leaves_v_hat_alone() -> None:
    data = many()
    part = data.subsample(0.3, seed=5)
    whole, found = transitions(data, View(0.9, 3)), transitions(part, View(0.9, 3))
    rows = np.concatenate([np.arange(*data.offsets[i : i + 2]) for i in ids(part)])
    picked = np.isin(whole.row, rows)
    np.testing.assert_array_equal(found.g, whole.g[picked])
    np.testing.assert_array_equal(found.reward, whole.reward[picked])
    np.testing.assert_array_equal(part.obs[found.next_row], data.obs[whole.next_row[picked]])


@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.5, float("nan")])
def test_subsample_refuses_a_wrong_share(fraction: float) -> None:
    with pytest.raises(ValueError, match=rf"\(0, 1\]; got {fraction}"):
        many().subsample(fraction)


def test_split_is_disjoint_and_complete() -> None:
    train, validation = many().split(0.8, seed=2)
    assert (train.num_episodes, validation.num_episodes) == (32, 8)
    assert sorted(ids(train) + ids(validation)) == list(range(40))
    assert ids(train) == sorted(ids(train))
    assert ids(train) == ids(many().split(0.8, seed=2)[0])
    assert ids(train) != ids(many().split(0.8, seed=3)[0])
    assert train.provenance["select"] == ["split 0.8 seed 2 train"]
    assert validation.provenance["select"] == ["split 0.8 seed 2 validation"]


@pytest.mark.parametrize("fraction", [0.0, 1.0, -1.0])
def test_split_refuses_a_wrong_share(fraction: float) -> None:
    with pytest.raises(ValueError, match=rf"\(0, 1\); got {fraction}"):
        many().split(fraction)


def test_split_needs_an_episode_on_each_side() -> None:
    with pytest.raises(ValueError, match=r"'split 0\.9 seed 0 validation' on 2 episodes"):
        many(2).split(0.9)


def returns(*values: float) -> Dataset:
    made = (Episode.from_steps(np.full((2, 1), v), [0], [v], True) for v in values)
    return Dataset.from_episodes(made, 2)


def test_filter_by_return() -> None:
    # The mean is 4, the median 2: an episode at the mean is not above it.
    data = returns(0, 13, 1, 4, 2)
    assert data.filter_by_return("above").episode_return.tolist() == [13]
    assert data.filter_by_return("below").episode_return.tolist() == [0, 1, 4, 2]
    assert data.filter_by_return("above").provenance["select"] == ["return above mean"]


def test_filter_by_return_says_when_nothing_is_left() -> None:
    with pytest.raises(ValueError, match="'return above mean' on 2 episodes"):
        returns(3, 3).filter_by_return("above")
    with pytest.raises(ValueError, match="'above' or 'below'; got 'over'"):
        returns(1, 2).filter_by_return("over")  # type: ignore[arg-type]


def test_executed_actions_replace_the_chosen_ones() -> None:
    data = many(3)
    executed = data.with_executed_actions()
    np.testing.assert_array_equal(executed.action, data.executed)
    assert (executed.action != data.action).any()
    assert executed.provenance == {"source": "test", "action": "executed"}
    found = transitions(executed, View(), "pair")
    assert (executed.action[found.row] == found.action).all()
    with pytest.raises(ValueError, match="does not hold executed actions"):
        returns(1).with_executed_actions()


def test_no_episodes() -> None:
    with pytest.raises(ValueError, match="at least one episode"):
        Dataset.from_episodes([], 2)


def changed(column: str, step: int, value: Any) -> Episode:
    made = numbered(0, 3)
    values = getattr(made, column).copy()
    values[step] = value
    return made._replace(**{column: values})


def typed(column: str, dtype: Any) -> Episode:
    made = numbered(0, 3)
    return made._replace(**{column: getattr(made, column).astype(dtype)})


def shifted_masks() -> Episode:
    made = numbered(0, 3)
    legal = np.ones((4, 4), bool)
    legal[2, made.action[2]] = False
    return made._replace(legal=legal)


GOOD = numbered(0, 3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            GOOD._replace(action=GOOD.action[:1]),
            "episode 1: an episode needs at least one decision; got 0",
        ),
        (GOOD._replace(action=GOOD.action[:0]), "episode 1: .* at least one decision; got 0"),
        (GOOD._replace(reward=GOOD.reward[:3]), "episode 1: 'reward' has 3 rows and 'action' 4"),
        (GOOD._replace(obs=GOOD.obs[:3]), "episode 1: 'obs' has 3 rows"),
        (GOOD._replace(legal=GOOD.legal[:2]), "episode 1: 'legal' has 2 rows"),
        (GOOD._replace(executed=GOOD.executed[:2]), "episode 1: 'executed' has 2 rows"),
        (GOOD._replace(propensity=GOOD.propensity[:2]), "episode 1: 'propensity' has 2 rows"),
        (
            GOOD._replace(obs=np.zeros((4, 2))),
            r"episode 1: observations have shape \(2,\), those of the first episode \(1,\)",
        ),
        (GOOD._replace(legal=None), "episode 1 lacks 'legal'"),
        (changed("action", 2, 4), "episode 1, step 2: action 4 is not one of the 4 .*0 to 3"),
        (changed("action", 1, -2), "episode 1, step 1: action -2"),
        (changed("executed", 0, 9), "episode 1, step 0: executed action 9"),
        (changed("action", 3, 2), "episode 1, step 3: action 2 in the row of the final"),
        (changed("executed", 3, 2), "episode 1, step 3: executed action 2 in the row"),
        (changed("reward", 1, np.nan), "episode 1, step 1: the reward is not finite"),
        (changed("reward", 0, np.inf), "episode 1, step 0: the reward is not finite"),
        (changed("obs", 3, -np.inf), "episode 1, step 3: the observation is not finite"),
        (changed("reward", 3, 1.5), "episode 1, step 3: reward 1.5 in the row of the final"),
        (
            GOOD._replace(episode_return=np.nan),
            "episode 1, step 0: the episode's return is not finite",
        ),
        (shifted_masks(), "episode 1, step 2: action [0-3] was taken and 'legal' says it is not"),
        (GOOD._replace(legal=np.ones((4, 3), bool)), r"episode 1: 'legal' .* of shape \(4,\)"),
        (typed("action", float), "episode 1: 'action' holds float64 .* needs whole numbers"),
        (typed("obs", object), "episode 1: 'obs' holds object .* needs numbers"),
        (typed("legal", int), "episode 1: 'legal' holds int64 .* needs True and False"),
        (
            GOOD._replace(reward=GOOD.reward[:, None]),
            r"episode 1: 'reward' holds float32 of shape \(1,\) a row; it needs .* of shape \(\)",
        ),
    ],
)
def test_a_wrong_episode_is_refused_by_place(wrong: Episode, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Dataset.from_episodes([numbered(0), wrong], 4)


def test_observations_without_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"episode 0: observations of shape \(0,\) hold no number"):
        Dataset.from_episodes([Episode.from_steps(np.zeros((2, 0)), [0], [0], True)], 2)


def test_fractional_actions_are_not_cut_off() -> None:
    with pytest.raises(ValueError, match="'action' holds float64"):
        Dataset.from_episodes([Episode.from_steps(np.zeros((2, 1)), [1.7], [0], True)], 2)  # type: ignore[list-item]


def test_integers_have_no_infinity_to_look_for() -> None:
    pixels = np.full((3, 2, 2), 255, np.uint8)
    data = Dataset.from_episodes([Episode.from_steps(pixels, [0, 1], [1, 0], False)], 2)
    assert data.obs.dtype == np.uint8


def test_ids_beyond_int32_are_refused() -> None:
    """Cut to 32 bits, 2³² + 1 would be action 1."""
    good = Episode.from_steps([[0.0]] * 3, [1, 0], [0.0, 1.0], terminated=True)
    for bad in (2**32 + 1, -(2**32) + 1, np.uint64(2**63 + 1)):
        action = np.array([bad, -1 if int(bad) < 2**63 else 0], np.asarray(bad).dtype)
        huge = good._replace(action=np.insert(action, 1, 0))
        with pytest.raises(ValueError, match=r"episode 1, step 0: action .* is not one of the 4"):
            Dataset.from_episodes([good, huge], 4)
    executed = np.array([2**32, 0, -1])
    with pytest.raises(ValueError, match=r"step 0: executed action .* is not one of the 4"):
        Dataset.from_episodes([good._replace(executed=executed)], 4)


def test_chosen_rows_of_large_columns_stay_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = many()
    formats.write(held, tmp_path / "store")
    mapped = formats.load(tmp_path / "store")
    expected = held.filter_by_return("below").subsample(0.5)
    monkeypatch.setattr(dataset, "LARGE", 0)
    found = mapped.filter_by_return("below").subsample(0.5)
    assert isinstance(found.obs, dataset.MappedRows)
    assert found.obs.base is mapped.obs  # chosen twice, read once
    assert ids(found) == ids(expected)
    for index in range(expected.num_episodes):
        assert_equal(found.episode(index), expected.episode(index))
    for ours, theirs in zip(transitions(found, View()), transitions(expected, View()), strict=True):
        np.testing.assert_array_equal(ours, theirs)
