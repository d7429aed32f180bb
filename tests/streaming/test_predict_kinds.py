"""`rbve predict` for policies without named columns, and for those with a memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from support.cli import run
from support.policies import ACTIONS, random_observations, random_policy

import rbve
from rbve.policy import Policy


def nested(obs: np.ndarray) -> pa.Array:
    """Arrays of arrays, as long as the observation has axes."""
    array = pa.array(obs.reshape(-1))
    for size in reversed(obs.shape[1:]):
        array = pa.FixedSizeListArray.from_arrays(array, size)
    return array


@pytest.mark.parametrize("kind", ["dense", "image"])
def test_arrays(kind: str, tmp_path: Path) -> None:
    policy = random_policy("rbve", kind)
    obs = random_observations(policy, 70)
    known = policy.decisions(obs)
    pq.write_table(pa.table({"observation": nested(obs)}), tmp_path / "r.parquet", row_group_size=9)
    done = rbve.predict(policy, tmp_path / "r.parquet", tmp_path / "out.parquet", values=True)
    assert done.rows == 70
    found = pq.read_table(tmp_path / "out.parquet")
    assert found["policy_action"].to_pylist() == known.action.tolist()
    np.testing.assert_allclose(found["policy_q:refer"], known.q[:, 2], rtol=1e-4, atol=1e-5)


def columns_of(obs: np.ndarray, prefix: str) -> dict[str, Any]:
    return {f"{prefix}{i}": obs[:, i] for i in range(obs.shape[1])}


@pytest.mark.parametrize(
    ("prefix", "flags"), [("observation_", ()), ("x", ("--observation", "x*"))]
)
def test_a_column_for_each_number(prefix: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    policy = random_policy("rbve", "dense")
    policy.save(tmp_path / "p.safetensors")
    obs = random_observations(policy, 30).astype(float)
    arrow_csv.write_csv(pa.table(columns_of(obs, prefix)), tmp_path / "rows.csv")
    out = tmp_path / "out.parquet"
    done = run("predict", tmp_path / "p.safetensors", tmp_path / "rows.csv", "--out", out, *flags)
    assert done.code == 0, done.err
    assert pq.read_table(out)["policy_action"].to_pylist() == policy.decisions(obs).action.tolist()


def test_rows_that_are_no_observations(tmp_path: Path) -> None:
    policy, rows, out = (
        random_policy("rbve", "dense"),
        tmp_path / "r.parquet",
        tmp_path / "o.parquet",
    )
    obs: list[Any] = random_observations(policy, 6).tolist()
    known = policy.decisions(obs).action
    obs[1], obs[2], obs[4] = obs[1][:3], [1.0, float("nan"), 0.0, 0.0, 0.0], None
    pq.write_table(pa.table({"seen": obs}), rows)
    with pytest.raises(ValueError, match=r"row 1: an observation of 3 numbers; the policy takes 5"):
        rbve.predict(policy, rows, out, observation=["seen"])
    done = rbve.predict(policy, rows, out, observation=["seen"], on_error="skip")
    assert (done.rows, done.skipped) == (3, 3)
    assert "row 2: column 'seen', number 1, takes a finite number" in done.listed[1]
    assert pq.read_table(out)["policy_action"].to_pylist() == known[[0, 3, 5]].tolist()
    with pytest.raises(ValueError, match=r"r\.parquet: no column 'observation"):
        rbve.predict(policy, rows, out, overwrite=True)
    with pytest.raises(ValueError, match="has no memory; leave out --episode"):
        rbve.predict(policy, rows, out, observation=["seen"], episode="seen", overwrite=True)


LENGTHS = (5, 1, 12, 30, 2, 9)


def episodes(policy: Policy) -> dict[str, Any]:
    """Of several lengths; the reward of their last rows is not known."""
    rng, count = np.random.default_rng(4), sum(LENGTHS)
    reward: list[float | None] = np.round(rng.normal(size=count), 3).tolist()
    for last in np.cumsum(LENGTHS) - 1:
        reward[last] = None
    return {
        "visit": np.repeat([f"v{i}" for i in range(len(LENGTHS))], LENGTHS).tolist(),
        "paid": reward,
        "did": np.array(ACTIONS)[rng.integers(4, size=count)].tolist(),
        "observation": random_observations(policy, count).tolist(),
    }


def replayed(policy: Policy, rows: dict[str, Any], logged: bool) -> list[str]:
    """By a session for each episode."""
    found, before = [], None
    for visit, did, obs, row in zip(
        rows["visit"], rows["did"], rows["observation"], range(10**6), strict=False
    ):
        if visit != before:
            session, before = policy.start(), visit
            found.append(session.decide(obs))
        else:
            found.append(session.decide(obs, rows["paid"][row - 1]))
        if logged:
            session.last_action = did
    return found


@pytest.mark.parametrize("logged", [True, False])
@pytest.mark.parametrize("form", ["saved", "exported"])
def test_a_memory_goes_on_along_an_episode(form: str, logged: bool, tmp_path: Path) -> None:
    policy = random_policy("iqn", "lstm")
    rows = episodes(policy)
    if not logged:
        rows.pop("did")
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet", row_group_size=7)  # within episodes
    shipped = tmp_path / ("shipped" if form == "exported" else "p.safetensors")
    rbve.export(policy, shipped)
    done = run(
        "predict", shipped, tmp_path / "rows.parquet", "--out", tmp_path / "out.parquet",
        "--episode", "visit", "--reward", "paid", *(("--action", "did") if logged else ()),
    )  # fmt: skip
    assert done.code == 0, done.err
    found = pq.read_table(tmp_path / "out.parquet")["policy_action"].to_pylist()
    assert found == replayed(policy, {"did": [""] * len(found), **rows}, logged)
    assert len(set(found)) > 1


@pytest.mark.parametrize(
    ("name", "row", "value", "message"),
    [
        ("paid", 8, float("inf"), "row 8: column 'paid' takes a finite number; got inf"),
        ("paid", 8, None, "row 9: the row before it in its episode has no paid"),
        ("did", 8, "treet", "row 8: column 'did': unknown action 'treet'. Did you mean 'treat'"),
        ("visit", 8, None, "row 8: column 'visit' says which episode a row is of; it is empty"),
        ("visit", 8, "v0", "column 'visit': the rows of episode 'v0' do not follow each other"),
    ],
)
def test_steps_that_are_none(name: str, row: int, value: Any, message: str, tmp_path: Path) -> None:
    policy = random_policy("rbve", "lstm")
    rows = episodes(policy)
    rows[name][row] = value
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    asked: dict[str, Any] = {"episode": "visit", "reward": "paid", "action": "did"}
    with pytest.raises(ValueError, match=message):
        rbve.predict(policy, tmp_path / "rows.parquet", tmp_path / "out.parquet", **asked)
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize("group", [7, 1000])  # within episodes, or all at once
@pytest.mark.parametrize(
    ("name", "value", "skipped"), [("paid", float("inf"), 10), ("paid", None, 9), ("did", "?", 10)]
)
def test_what_follows_a_row_that_is_left_out_is_left_out(
    name: str, value: Any, skipped: int, group: int, tmp_path: Path
) -> None:
    policy = random_policy("rbve", "lstm")
    rows = episodes(policy)
    whole, part = tmp_path / "whole.parquet", tmp_path / "part.parquet"
    asked: dict[str, Any] = {"episode": "visit", "reward": "paid", "action": "did"}
    asked["on_error"] = "skip"
    pq.write_table(pa.table(rows), whole, row_group_size=group)
    assert rbve.predict(policy, whole, tmp_path / "all.parquet", **asked).skipped == 0
    rows[name][8] = value  # the third row of v2, which has twelve
    pq.write_table(pa.table(rows), part, row_group_size=group)
    done = rbve.predict(policy, part, tmp_path / "some.parquet", **asked)
    assert done.skipped == skipped
    first = 18 - skipped  # of those left out, of which the last is row 17
    assert f"row {first}: " in done.listed[0]
    assert f"row {first + 1}: a row before it in its episode is left out" in done.listed[1]
    every = pq.read_table(tmp_path / "all.parquet")["policy_q"].to_pylist()
    some = pq.read_table(tmp_path / "some.parquet")["policy_q"].to_pylist()
    assert some == pytest.approx([*every[:first], *every[18:]], rel=1e-4, abs=1e-5)


def test_an_episode_that_is_no_number(tmp_path: Path) -> None:
    policy = random_policy("rbve", "lstm")
    rows = episodes(policy)
    rows["visit"] = [float(visit[1:]) for visit in rows["visit"]]
    rows["visit"][8] = float("nan")
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    asked: dict[str, Any] = {"episode": "visit", "reward": "paid", "action": "did"}
    with pytest.raises(ValueError, match="row 8: column 'visit' says which episode a row is of"):
        rbve.predict(policy, tmp_path / "rows.parquet", tmp_path / "out.parquet", **asked)


def test_columns_of_episodes_are_named(tmp_path: Path) -> None:
    policy = random_policy("rbve", "lstm")
    pq.write_table(pa.table(episodes(policy)), tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=r"has a memory, .* the column of its episodes with --epi"):
        rbve.predict(policy, tmp_path / "rows.parquet", tmp_path / "out.parquet")
    with pytest.raises(ValueError, match=r"no column 'visits'\. Did you mean 'visit'"):
        rbve.predict(policy, tmp_path / "rows.parquet", tmp_path / "out.parquet", episode="visits")
