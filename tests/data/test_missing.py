"""Missing values, rare and unseen categories, and inputs far from the training data."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import run
from support.logs import joined, joined_with_notes, said

import rbve
from rbve.data import Dataset, Episode, formats, load, write
from rbve.data.features import OTHER, Feature, Features
from rbve.data.logs import LogOptions, survey
from rbve.policy import Policy
from rbve.spec import Spec
from rbve.training.run import POLICY, train_members

# Known ages 20, 40 and 60: mean 40. The last row is a final one and holds no observation.
CSV = """\
episode,age,ward,action,reward,terminated
0,20,A,0,1,0
0,,B,1,0,0
0,40,NA,0,1,1
1,60,A,1,0,0
1,NaN,null,0,1,0
1,,,,,
"""
ROLES = LogOptions(observation=("age", "ward"))
GAPS = Features(
    (
        Feature("age", mean=40.0, scale=10.0, missing="indicator"),
        Feature("ward", "category", categories=("A", "B"), missing="indicator"),
    )
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text(CSV)
    return path


def with_choice(**choices: Any) -> LogOptions:
    return LogOptions(observation=("age", "ward"), **choices)


def test_gaps_are_refused_by_row_and_column_with_the_choices(log: Path) -> None:
    message = r"line 3: column 'age' is empty.*--missing mean or --missing indicator"
    with pytest.raises(ValueError, match=message):
        joined(log, ROLES)
    done = run("convert", log, log.parent / "store", "--observation", "age", "ward")
    assert (done.code, done.out) == (2, "")
    assert "line 3: column 'age'" in done.err
    found = rbve.inspect(log, observation=["age", "ward"])
    assert any("--missing mean" in finding.seen for finding in found.findings)


def test_gaps_become_the_mean_without_them(log: Path) -> None:
    data = joined(log, with_choice(missing="mean"))
    age, ward = data.features.columns if data.features else ()
    assert (age.mean, age.low, age.high, age.missing) == (40.0, 20.0, 60.0, "mean")
    assert age.scale == pytest.approx(math.sqrt(800 / 3))
    assert ward.categories == ("A", "B")
    nan = math.nan
    np.testing.assert_array_equal(
        data.obs[:3], np.array([[20, 0], [nan, 1], [40, nan]], data.obs.dtype)
    )
    assert data.features is not None
    seen = data.features.encode(data.obs)
    assert seen.shape == (len(data.obs), 3)
    np.testing.assert_array_equal(seen[1], [0, 0, 1])  # the mean
    np.testing.assert_array_equal(seen[2, 1:], [0, 0])  # no level
    np.testing.assert_array_equal(seen[5], [0, 0, 0])
    assert not data.finals_known[1]  # a final row without any value was not observed


def test_an_indicator_is_one_input_for_each_column_with_gaps(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "episode,a,b,c,action,reward\n0,1,x,5,0,1\n0,,y,6,1,1\n0,3,,7,0,1\n0,,,,,\n1,4,x,8,1,0\n"
    )
    data = joined(path, LogOptions(missing="indicator"))
    assert data.features is not None
    assert [column.missing for column in data.features.columns] == ["indicator"] * 2 + ["mean"]
    seen = data.features.encode(data.obs)
    assert seen.shape == (len(data.obs), 2 + 3 + 1)
    np.testing.assert_array_equal(seen[:3, 1], [0, 1, 0])
    np.testing.assert_array_equal(seen[:3, 2:5], [[1, 0, 0], [0, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_jax_sees_gaps_as_numpy_does(dtype: type[np.floating]) -> None:
    raw = np.array([[61, 1], [math.nan, 0], [45, math.nan]], dtype)
    found = jax.jit(lambda rows: GAPS.encode(rows, jnp))(raw.astype(np.float32))
    np.testing.assert_allclose(found, GAPS.encode(raw), rtol=1e-6)
    np.testing.assert_array_equal(found[1], [0, 1, 1, 0, 0])
    np.testing.assert_array_equal(found[2, 1:], [0, 0, 0, 1])


@pytest.mark.parametrize("suffix", ["", ".npz", ".parquet", ".csv"])
def test_gaps_survive_every_format(log: Path, suffix: str) -> None:
    data = joined(log, with_choice(missing="indicator"))
    target = log.parent / f"kept{suffix}"
    write(data, target)
    again = (
        joined(target, with_choice(missing="indicator"))  # text says no more than its cells
        if suffix == ".csv"
        else load(target)
    )
    assert again.features == data.features
    np.testing.assert_array_equal(again.obs, data.obs)
    assert rbve.inspect(again).exit_code == rbve.inspect(data).exit_code


def test_nan_and_null_of_parquet_are_gaps(tmp_path: Path) -> None:
    columns = {
        "episode": [0, 0, 0, 1],
        "x": [1.0, math.nan, None, 3.0],
        "n": pa.array([1, None, 3, 4], pa.int64()),
        "action": [0, 1, 0, 1],
        "reward": [1.0, 0.0, 1.0, 0.0],
    }
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table(columns), path)
    data = joined(path, LogOptions(missing="mean"))
    assert data.obs.dtype.kind == "f"
    assert data.features is not None
    assert [column.mean for column in data.features.columns] == [2.0, 8 / 3]
    np.testing.assert_array_equal(np.isnan(data.obs[:3]), [[0, 0], [1, 1], [1, 0]])


def test_infinity_is_no_gap(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("episode,x,action,reward\n0,1,0,1\n0,inf,1,1\n")
    with pytest.raises(ValueError, match="line 3: column 'x' is empty or not a finite value"):
        joined(path, LogOptions(missing="mean"))


def test_gaps_in_columns_that_have_none_are_refused() -> None:
    features = Features((Feature("x"), Feature("y", missing="mean")))
    obs = np.array([[0, math.nan], [math.nan, 0]])
    step = Episode.from_steps(obs, [0], [1.0], terminated=True)
    with pytest.raises(ValueError, match="episode 0, step 1: the observation is not finite"):
        Dataset.from_episodes([step], 2, features=features)


def test_an_audit_tells_the_share_of_gaps(log: Path) -> None:
    found = rbve.inspect(log, observation=["age", "ward"], missing="mean")
    assert not any("finite" in finding.name for finding in found.findings)
    assert any("missing values: age" in note for note in found.notes)


@pytest.fixture(scope="module")
def policy(small_job: Callable[..., Spec], tmp_path_factory: pytest.TempPathFactory) -> Policy:
    """Learns that treating pays where the age is missing, and only there."""
    rng = np.random.default_rng(0)
    episodes = []
    for _ in range(300):
        gap, action = rng.integers(2), rng.integers(2)
        ward = rng.choice([0, 1, math.nan])
        obs = np.array([[math.nan if gap else rng.normal(40, 10), ward]] * 2)
        reward = 1.0 if action == gap else -1.0
        episodes.append(Episode.from_steps(obs, [action], [reward], terminated=True))
    features = Features(
        (
            Feature("age", mean=40.0, scale=10.0, low=10, high=70, clip=5, missing="indicator"),
            Feature("ward", "category", categories=("A", "B"), missing="indicator", other=True),
        )
    )
    data = Dataset.from_episodes(episodes, ("wait", "treat"), features=features)
    folder = tmp_path_factory.mktemp("policy")
    plan = {"steps": 600, "every": 600, "env": None, "hidden": (32,), "batch_size": 64}
    train_members([small_job("bve", plan, learning_rate=3e-3)], [data], [folder])
    return Policy.load(folder / POLICY)


@pytest.mark.parametrize("nothing", [None, math.nan, np.float32("nan"), "", "NA", " null ", "NaN"])
def test_a_policy_takes_gaps_as_training_did(policy: Policy, nothing: Any) -> None:
    rows = [{"age": nothing, "ward": "A"}, {"age": 44, "ward": "A"}, {"age": 44, "ward": nothing}]
    assert policy.decide(rows) == ["treat", "wait", "wait"]
    held = policy.q_values(np.array([[math.nan, 0], [44, 0], [44, math.nan]]))
    np.testing.assert_array_equal(policy.q_values(rows), held)


def test_a_category_may_be_called_nan(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text('episode,bread,action,reward\n0,"nan",0,1\n0,"pita",1,1\n')
    features = joined(path, LogOptions(categorical=("bread",))).features
    assert features is not None
    assert features.rows([{"bread": "nan"}, {"bread": "pita"}]).tolist() == [[0], [1]]
    with pytest.raises(ValueError, match="row 0: column 'bread' takes a category; got nan"):
        features.rows({"bread": math.nan})


def test_an_absent_column_is_not_a_gap(policy: Policy) -> None:
    with pytest.raises(ValueError, match=r"row 0 lacks the column 'age'.*None where it is missing"):
        policy.decide({"ward": "A"})


def test_a_policy_without_gaps_in_its_data_refuses_them_by_row() -> None:
    features = Features((Feature("x"), Feature("w", "category", categories=("NA", "A"))))
    np.testing.assert_array_equal(features.rows({"x": 1, "w": "NA"}), [[1, 0]])  # a name like any
    with pytest.raises(ValueError, match="row 1: column 'x' takes a number; got ''"):
        features.rows([{"x": 1, "w": "A"}, {"x": "", "w": "A"}])
    with pytest.raises(ValueError, match="row 0: column 'w' takes a category; got None"):
        features.rows({"x": 1, "w": None})


def test_unseen_categories_are_flagged_and_count_as_no_level(policy: Policy) -> None:
    rows = [{"age": 44, "ward": "A"}, {"age": 44, "ward": "Z"}]
    said = "row 1: column 'ward' is of a category that is not in the data"
    assert policy.check(rows) == [said]
    with pytest.warns(UserWarning, match=said):
        assert policy.decide(rows) == ["wait", "wait"]


def test_numbers_far_from_the_data_are_flagged_and_bounded(policy: Policy) -> None:
    rows = [{"age": age, "ward": "A"} for age in (10, 75, 77, 1e30)]  # 10% of 60 beyond 70 is 76
    assert policy.check(rows[:2]) == []
    flagged = policy.check(rows)
    assert flagged[0] == "row 2: column 'age' is 77; the data reaches from 10 to 70"
    assert len(flagged) == 2
    assert len(policy.check(np.array([[77.0, 0], [40, 0]]))) == 1
    codes = np.array([[40, 1], [40, 2], [40, 0.5], [40, -1], [40, math.nan]])
    assert [said.split(":")[0] for said in policy.check(codes)] == ["row 1", "row 2", "row 3"]
    with pytest.warns(UserWarning, match=r"row 2: column 'age' is 77.*and 1 more"):
        values = policy.q_values(rows)
    with pytest.warns(UserWarning, match="far outside"):
        bound = policy.q_values({"age": 90, "ward": "A"})
    np.testing.assert_allclose(values[3], bound, rtol=1e-5)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"age": 1, "ward": "A"}, {"age": "x", "ward": "A"}], "row 1: column 'age' takes a num"),
        ([{"age": 40, "ward": "A"}, 3], "row 1 is no row by column name"),
        ([3, {"age": 40, "ward": "A"}], "row 0 is no row by column name"),
        ([[40, 0], [40, 0], [40]], r"row 2 has shape \(1,\)"),
        ([[40, 0], [math.inf, 0]], "row 1, column 'age': .* finite numbers"),
    ],
)
def test_one_bad_row_of_a_batch_is_named(policy: Policy, rows: Any, message: str) -> None:
    for decide in (policy.act, policy.decide, policy.scores, policy.q_values):
        with pytest.raises(ValueError, match=message):
            decide(rows)


def test_rare_categories_are_pooled(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    wards = ["A"] * 5 + ["B"] * 4 + ["C", "D"]
    path.write_text("w,action,reward\n" + "".join(f"{w},{k % 2},1\n" for k, w in enumerate(wards)))
    data, notes = joined_with_notes(path, LogOptions(ends="each", rare=3))
    assert data.features is not None
    (ward,) = data.features.columns
    assert (ward.categories, ward.other) == (("A", "B", OTHER), True)
    assert said(notes, "'w': 2 of 4 categories are in fewer than 3 rows")
    np.testing.assert_array_equal(data.obs[::2, 0], [0] * 5 + [1] * 4 + [2, 2])
    np.testing.assert_array_equal(data.features.rows([{"w": "B"}, {"w": "new"}]), [[1], [2]])
    for target in ("store", "kept.parquet"):
        write(data, tmp_path / target)
        assert load(tmp_path / target).features == data.features
    strict = joined(path, LogOptions(ends="each")).features
    assert strict is not None
    with pytest.raises(ValueError, match="row 0: column 'w': category 'new' is not in the data"):
        strict.rows({"w": "new"})


def test_too_many_categories_to_count_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting ends with the limit, so a name of many rows could pass for a rare one."""
    monkeypatch.setattr(survey, "MAX_RARE", 4)
    path = tmp_path / "log.csv"
    wards = [*"ABCDE", *["F"] * 9]
    path.write_text("w,action,reward\n" + "".join(f"{w},{k % 2},1\n" for k, w in enumerate(wards)))
    with pytest.raises(ValueError, match="column 'w' holds more than 4 different texts"):
        joined(path, LogOptions(ends="each", rare=3))


def test_sparse_numbers_are_bounded(tmp_path: Path) -> None:
    """One 1 among 10,000 rows is 100 deviations from the mean."""
    path = tmp_path / "log.csv"
    path.write_text("x,action,reward\n" + "0,0,1\n0,1,0\n" * 4999 + "0,0,1\n1,1,0\n")
    highest = {}
    for clip in (10.0, 3.0, math.inf):
        data = joined(path, LogOptions(ends="each", clip=clip))
        assert data.features is not None
        highest[clip] = float(data.features.encode(data.obs).max())
        write(data, tmp_path / f"{clip}")
        assert load(tmp_path / f"{clip}").features == data.features
    assert highest[10.0] == 10
    assert highest[3.0] == 3
    assert highest[math.inf] == pytest.approx(99.995, rel=1e-4)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"missing": "median"}, "missing must be 'error', 'mean' or 'indicator'; got 'median'"),
        ({"rare": -1}, "rare must be 0 or a number of rows"),
        ({"clip": 0.0}, "clip must be a positive number"),
        ({"clip": math.nan}, "clip must be a positive number"),
    ],
)
def test_choices_that_cannot_be(choice: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LogOptions(**choice)


def test_choices_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "columns.toml"
    path.write_text('missing = "mean"\nrare = 5\nclip = 3\n')
    assert formats.from_toml(path, LogOptions) == LogOptions(missing="mean", rare=5, clip=3)
    path.write_text("rare = 2.5\n")
    with pytest.raises(ValueError, match="option 'rare' takes a number"):
        formats.from_toml(path, LogOptions)


def test_damaged_features_are_refused() -> None:
    good = GAPS.to_json()
    assert Features.from_json(good, "here") == GAPS
    for name, value in [("missing", "x"), ("other", 1), ("clip", 0), ("low", 5), ("low", "a")]:
        with pytest.raises(ValueError, match="here: 'features'"):
            Features.from_json([{**good[0], "high": 1, name: value}], "here")


def test_from_a_log_with_gaps_to_a_decision(log: Path) -> None:
    store, runs = log.parent / "store", log.parent / "runs"
    seen = ("--observation", "age", "ward", "--missing", "indicator", "--rare", 1, "--clip", 5)
    assert run("convert", log, store, *seen).code == 0
    assert run("inspect", log, *seen).code == run("inspect", store).code
    done = run("train", store, "--steps", 20, "--holdout", 0, "--out", runs)
    assert done.code == 0, done.err
    (file,) = runs.glob("*/policy.safetensors")
    assert Policy.load(file).decide({"age": None, "ward": ""}) in ("0", "1")
