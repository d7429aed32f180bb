"""A policy takes rows as they stand in the log, and says what the log called its actions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbve.data import Dataset, Episode
from rbve.data.features import Feature, Features
from rbve.policy import Policy
from rbve.spec import Spec
from rbve.training.run import POLICY, train_members

FEATURES = Features(
    (
        Feature("clock", mean=1.7e9, scale=60.0),
        Feature("ward", "category", categories=("A", "B", "ICU")),
        Feature("age", mean=50.0, scale=20.0),
    )
)
ACTIONS = ("wait", "treat")


@pytest.fixture(scope="module")
def policy(small_job: Callable[..., Spec], tmp_path_factory: pytest.TempPathFactory) -> Policy:
    """Learns to treat in the ICU, and to wait elsewhere."""
    rng = np.random.default_rng(0)
    episodes = []
    for _ in range(200):
        ward, action = rng.integers(3), rng.integers(2)
        obs = np.array([[1.7e9 + rng.normal(0, 60), ward, rng.normal(50, 20)]] * 2)
        reward = 1.0 if action == (ward == 2) else -1.0
        episodes.append(Episode.from_steps(obs, [action], [reward], terminated=True))
    data = Dataset.from_episodes(episodes, ACTIONS, features=FEATURES)
    folder = tmp_path_factory.mktemp("policy")
    plan = {"steps": 600, "every": 600, "env": None, "hidden": (32,), "batch_size": 64}
    train_members([small_job("bve", plan, learning_rate=3e-3)], [data], [folder])
    return Policy.load(folder / POLICY)


def row(ward: str, **other: Any) -> dict[str, Any]:
    return {"clock": 1.7e9 + 30, "ward": ward, "age": 44, **other}


def test_rows_by_name(policy: Policy) -> None:
    assert policy.decide(row("ICU")) == "treat"
    assert policy.decide([row("A"), row("ICU"), row("B")]) == ["wait", "treat", "wait"]
    assert policy.act(row("ICU")) == 1
    assert policy.q_values(row("ICU")).shape == (2,)


def test_order_and_spare_columns_do_not_matter(policy: Policy) -> None:
    one = {"age": 44, "note": "x", "ward": "ICU", "clock": 1.7e9 + 30}
    np.testing.assert_array_equal(policy.q_values(one), policy.q_values(row("ICU")))


def test_rows_equal_the_numbers_the_store_holds(policy: Policy) -> None:
    raw = np.array([1.7e9 + 30, 2, 44])
    np.testing.assert_array_equal(policy.q_values(raw), policy.q_values(row("ICU")))


def test_large_numbers_keep_their_digits(policy: Policy) -> None:
    """Half a scale apart near 1.7e9, where float32 steps by 128."""
    first, second = (policy.q_values(row("A", clock=1.7e9 + more)) for more in (0, 30))
    assert not np.array_equal(first, second)


def test_saved_and_loaded(policy: Policy, tmp_path: Path) -> None:
    policy.save(tmp_path / "p.safetensors")
    again = Policy.load(tmp_path / "p.safetensors")
    assert again.features == FEATURES
    np.testing.assert_array_equal(again.q_values(row("B")), policy.q_values(row("B")))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"clock": 1.7e9, "age": 3}, "row 0 lacks the column 'ward'"),
        ([row("A"), {"ward": "A"}], "row 1 lacks the column 'clock'"),
        (row("icu"), "'ward': category 'icu' is not in the data.*Known: A, B, ICU"),
        (row("A", age="old"), "'age' takes a number; got 'old'"),
        (row("A", age=float("nan")), "'age' takes a finite number"),
        (row("A", age=10**400), "'age' takes a finite number"),
        ([1.0, 2.0], r"shape \(3,\)"),
        (["1", "2", "3"], "holds numbers"),
    ],
)
def test_rows_that_do_not_fit(policy: Policy, given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        policy.act(given)


def test_a_policy_without_named_columns_says_so(policy: Policy) -> None:
    nameless = dataclasses.replace(policy, features=None)
    with pytest.raises(ValueError, match="had no named columns"):
        nameless.act(row("A"))


@pytest.mark.parametrize(
    ("legal", "message"),
    [
        (["wait", "treet"], "unknown action 'treet'. Did you mean 'treat'"),
        (["False", "False"], "unknown action 'False'"),
        (["wait", "wait"], "names action 'wait' twice; it needs True or False for each of 2"),
        ("treat", r"a list of ids or names \('wait', 'treat'\); got 'treat'"),
        ([0, 2], r"id in \[0, 1\] or a name \(wait, treat\); got 2"),
        ([-1], r"id in \[0, 1\].*; got -1"),
        ([0.5, 0.5], r"id in \[0, 1\].*; got 0.5"),
        ([], "allows no action"),
        ([["wait"], ["treat"]], r"once or for each observation; got the shape \(2, 2\)"),
        ([[1, 0], [0, 1]], r"once or for each observation; got the shape \(2, 2\)"),
        ([True], r"got the shape \(1,\)"),
    ],
)
def test_masks_that_do_not_fit(policy: Policy, legal: Any, message: str) -> None:
    """Words are names: as truth values all of them would be allowed."""
    with pytest.raises(ValueError, match=message):
        policy.decide(row("ICU"), legal=legal)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ([], "row 1: legal allows no action"),
        ([False, False], "row 1: legal allows no action"),
        (["treet"], "row 1: unknown action 'treet'"),
        ([2], r"row 1: an action is an id in \[0, 1\]"),
        (["wait", "wait"], "row 1: legal names action 'wait' twice"),
    ],
)
def test_masks_of_a_batch_are_refused_by_row(policy: Policy, second: Any, message: str) -> None:
    first = [True, True] if second == [False, False] else ["wait"]
    with pytest.raises(ValueError, match=message):
        policy.decide([row("A"), row("A")], legal=[first, second])


def test_masks_once_or_for_each_row(policy: Policy) -> None:
    rng = np.random.default_rng(0)
    for mask in ([1, 0], [[1.0, 0.0]]):
        assert policy.decide(row("ICU"), legal=mask) == "wait"
        assert policy.act(row("ICU"), epsilon=1, rng=rng, legal=mask) == 0
    each = [[True, False], [False, True]]
    assert policy.decide([row("ICU"), row("A")], legal=each) == ["wait", "treat"]


def test_legal_actions_by_name_and_by_id(policy: Policy) -> None:
    for only in (["wait"], ("wait",), {"wait"}, [0], np.array([0]), [["wait"]], [[0]]):
        assert policy.decide(row("ICU"), legal=only) == "wait"
    both = [row("ICU"), row("A")]
    assert policy.decide(both, legal=["treat"]) == ["treat", "treat"]
    assert policy.decide(both, legal=[["wait"], ["treat", "wait"]]) == ["wait", "wait"]
    assert policy.decide(both, legal=[[0], [1]]) == ["wait", "treat"]
    # As many numbers as actions, all 0 or 1, are a mask; of other lengths they are ids.
    assert policy.decide(both, legal=np.array([0, 1], np.int8)) == ["treat", "treat"]
    assert policy.decide(both, legal=np.array([[0, 1], [1, 0]], np.int8)) == ["treat", "wait"]


def test_ids_that_are_names_of_others_are_refused(policy: Policy) -> None:
    doses = dataclasses.replace(policy, actions=("1", "0"))
    for one in (0, 1):
        with pytest.raises(
            ValueError, match=f"{one} may be the id of action '{1 - one}' or the na"
        ):
            doses.act(row("ICU"), legal=[one])
    assert doses.decide(row("ICU"), legal=["0"]) == "0"
    assert doses.decide(row("ICU"), legal=[True, False]) == "1"


def test_where_the_data_had_masks_decisions_need_them(policy: Policy, tmp_path: Path) -> None:
    assert policy.decide(row("ICU"), legal="all") == policy.decide(row("ICU")) == "treat"
    dataclasses.replace(policy, masked=True).save(tmp_path / "p.safetensors")
    careful = Policy.load(tmp_path / "p.safetensors")
    assert careful.masked
    session, rng = careful.start(), np.random.default_rng(0)
    calls: list[Callable[..., Any]] = [
        lambda **legal: careful.decide(row("ICU"), **legal),
        lambda **legal: careful.act(row("ICU"), **legal),
        lambda **legal: careful.act(row("ICU"), 1.0, rng, **legal),
        lambda **legal: careful.scores(row("ICU"), **legal),
        lambda **legal: session.act(row("ICU"), **legal),
        lambda **legal: session.decide(row("ICU"), **legal),
    ]
    needed = r"need legal=: True or False for each of 2 .*ids or names .*; or legal='all'"
    for call in calls:
        with pytest.raises(ValueError, match=needed):
            call()
        call(legal="all")
        call(legal=["wait"])
    assert careful.decide(row("ICU"), legal=["wait"]) == "wait"
    assert session.decide(row("ICU"), legal=["wait"]) == "wait"
    assert careful.decide([row("ICU"), row("ICU")], legal=[["wait"], [1]]) == ["wait", "treat"]


def test_rows_that_have_to_be_remembered(small_job: Callable[..., Spec], tmp_path: Path) -> None:
    """The ward is shown on the first day, and matters on the second."""
    rng = np.random.default_rng(0)
    episodes = []
    for _ in range(300):
        ward, first, second = rng.integers(3), rng.integers(2), rng.integers(2)
        days = [[1.7e9 + rng.normal(0, 60), shown, rng.normal(50, 20)] for shown in (ward, 0, 0)]
        reward = 1.0 if second == (ward == 2) else -1.0
        episodes.append(Episode.from_steps(np.array(days), [first, second], [0.0, reward], True))
    data = Dataset.from_episodes(episodes, ACTIONS, features=FEATURES)
    plan = {"steps": 300, "every": 300, "env": None, "hidden": (16,), "batch_size": 32}
    plan |= {"memory": 16, "n_step": 1}
    train_members([small_job("bve", plan, learning_rate=1e-2)], [data], [tmp_path])
    policy = Policy.load(tmp_path / POLICY)
    for ward, right, other in (("ICU", "treat", "wait"), ("B", "wait", "treat")):
        session = policy.start()
        session.decide(row(ward))
        assert session.decide(row("A"), 0.0) == right
        masked = policy.start()
        masked.decide(row(ward))
        legal = [action == other for action in ACTIONS]
        assert masked.decide(row("A"), 0.0, legal) == other


def test_named_columns_are_not_stacked(small_job: Callable[..., Spec], tmp_path: Path) -> None:
    """Such a policy would take two rows, and no log has them side by side."""
    made = Episode.from_steps(np.zeros((3, 3)), [0, 1], [0.0, 1.0], terminated=True)
    data = Dataset.from_episodes([made], ACTIONS, features=FEATURES)
    with pytest.raises(ValueError, match=r"named columns.*leave --stack out"):
        train_members([small_job("bve", {"stack": 2, "env": None})], [data], [tmp_path])
