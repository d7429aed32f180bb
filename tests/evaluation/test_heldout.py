"""Held-out episodes: which they are, and the figures of a policy on them, by hand."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cli import run

from rbve import rows
from rbve.data import Dataset, Episode, View, write
from rbve.evaluation.heldout import HeldOutEpisodes
from rbve.evaluation.metric import HeldOut, evaluate_held_out, held_out_metrics, tabulated
from rbve.parts import DataRef
from rbve.policy import Policy
from rbve.policy.outputs import outputs_on
from rbve.spec import Spec
from rbve.sweep.run import run_jobs
from rbve.training.run import POLICY

NAN = math.nan


def log(
    episodes: int = 20, masked: bool = False, steps: int = 3, seed: int = 0, cut: int = 0
) -> Dataset:
    """Episodes that name themselves in their first observation; every `cut`-th is truncated."""
    rng = np.random.default_rng(seed)
    made = []
    for k in range(episodes):
        obs = rng.normal(size=(steps + 1, 3))
        obs[:, 0] = k
        action = rng.integers(3, size=steps)
        each = Episode.from_steps(obs, action, rng.normal(size=steps), not cut or k % cut > 0)
        if masked:
            legal = rng.random((steps + 1, 3)) < 0.5
            legal[np.arange(steps), action] = True
            legal[-1] = True
            each = each._replace(legal=legal)
        made.append(each)
    return Dataset.from_episodes(made, 3)


def names(data: Dataset | None) -> list[int]:
    assert data is not None
    return data.obs[data.offsets[:-1], 0].astype(int).tolist()


@pytest.mark.parametrize(("episodes", "share", "held"), [(20, 0.2, 4), (5, 0.2, 1), (30, 0.01, 1),
                                                         (10, 0.99, 9), (7, 0.5, 4)])  # fmt: skip
def test_every_episode_either_trains_or_judges(episodes: int, share: float, held: int) -> None:
    data = log(episodes)
    ref = DataRef(holdout=share)
    train, judge = names(ref.of(data)), names(ref.held_out(data))
    assert sorted(train + judge) == list(range(episodes))
    assert len(judge) == held
    assert train == sorted(train)
    assert judge == sorted(judge)
    assert names(DataRef(holdout=share).held_out(log(episodes))) == judge


def test_the_seed_chooses() -> None:
    data = log(40)
    chosen = {tuple(names(DataRef(holdout=0.2, holdout_seed=k).held_out(data))) for k in range(5)}
    assert len(chosen) == 5


def test_the_split_is_of_what_is_kept() -> None:
    data = log(60)
    ref = DataRef(keep=0.5, keep_seed=1, side="above", holdout=0.25)
    kept = DataRef(keep=0.5, keep_seed=1, side="above", holdout=0.0).of(data)
    train, judge = names(ref.of(data)), names(ref.held_out(data))
    assert sorted(train + judge) == names(kept)
    assert len(judge) == round(0.25 * len(train + judge))


@pytest.mark.parametrize(("episodes", "share"), [(4, 0.5), (20, 0.0), (20, None)])
def test_nothing_is_held_out(episodes: int, share: Any) -> None:
    data = log(episodes)
    ref = DataRef(holdout=share)
    assert ref.of(data) is data
    assert ref.held_out(data) is None


CASE = HeldOut(
    action=np.array([0, 1, 0, 1]),
    choice=np.array([1, 1, 0, 2]),
    g=np.array([1.0, 2.0, NAN, -1.0]),
    scores=np.log([[0.2, 0.5, 0.3], [0.1, 0.8, 0.1], [0.5, 0.25, 0.25], [0.1, 0.4, 0.5]]),
    q=np.array([[1.0, 3.0, 2.5], [0.0, 5.0, 1.0], [9.0, 1.0, 7.0], [8.0, 1.0, 2.0]]),
    legal=np.array([[1, 1, 1], [0, 1, 0], [1, 1, 0], [0, 1, 1]], bool),
    supported=np.array([[1, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1]], bool),
    values=True,
)


def test_figures_by_hand() -> None:
    figures = evaluate_held_out(CASE)
    expected = {
        # Of the three decisions whose return is known: errors 2, 3, 3 of its own choices
        "heldout_overestimation": ((2 + 3 + 3) / 3, 3),
        "heldout_value_error": ((0 + 3 + 2) / 3, 3),  # and 0, 3, 2 of the logged actions
        "heldout_value_rmse": (math.sqrt(13 / 3), 3),
        "heldout_action_gap": ((0.5 + 0 + 8 + 1) / 4, 4),  # of legal actions
        "heldout_agreement": (0.5, 4),
        "heldout_coverage": (0.75, 4),
    }
    assert figures.keys() == expected.keys()
    for name, (value, count) in expected.items():
        assert figures[name] == (pytest.approx(value), count), name


def test_cloning_has_no_values() -> None:
    figures = evaluate_held_out(CASE._replace(values=False))
    loss = -np.log([0.2, 0.8, 0.5, 0.4]).mean()
    assert figures == {
        "heldout_log_loss": (pytest.approx(loss), 4),
        "heldout_agreement": (0.5, 4),
        "heldout_coverage": (0.75, 4),
    }


def test_a_figure_of_nothing_is_not_a_number() -> None:
    figures = evaluate_held_out(CASE._replace(g=np.full(4, NAN)))
    for name in ("heldout_overestimation", "heldout_value_error", "heldout_value_rmse"):
        assert math.isnan(figures[name][0])
        assert figures[name][1] == 0
    assert set(held_out_metrics()) <= set(tabulated())


def run_job(data: Dataset, out: Path, **fields: Any) -> Path:
    own = {"path": "log", "fingerprint": "f", "steps": 40, "every": 20, "batch_size": 8}
    job = Spec.of(**{**own, "hidden": (8,), **fields})
    (folder,) = run_jobs([job], out, datasets={"log": data})
    return folder


@pytest.mark.parametrize(
    ("fields", "masked"),
    [
        ({"algorithm": "bve"}, True),
        ({"algorithm": "bc"}, True),
        ({"algorithm": "bve", "rows": "disk"}, False),
        ({"algorithm": "dqn", "memory": 4}, True),
        ({"algorithm": "dqn", "memory": 4, "sequence": 2, "burn_in": 1}, False),
        ({"algorithm": "bcq", "clip_rewards": True}, True),
    ],
)
def test_rows_hold_the_figures_of_the_policy(
    tmp_path: Path, fields: dict[str, Any], masked: bool
) -> None:
    """Those of the last interval, remade from the saved policy, decision by decision."""
    data = log(30, masked, cut=4)
    folder = run_job(data, tmp_path, **fields)
    run = rows.read(folder / rows.FILE)
    policy = Policy.load(folder / POLICY)
    assert {run.field("holdout"), run.facts["held_out_episodes"], run.facts["episodes"]} == {
        0.2,
        6,
        24,
    }
    held = Spec.from_json(policy.info["job"]).data.held_out(data)
    assert held is not None
    scores, q = outputs_on(policy, held)
    g, legal = np.full(len(held.action), NAN), np.ones(q.shape, bool)
    reward = np.clip(held.reward, -1, 1) if "clip_rewards" in fields else held.reward
    for k in np.flatnonzero(held.terminated):
        start, stop = held.offsets[k : k + 2]
        for row in range(start, stop):
            g[row] = sum(0.99 ** (j - row) * reward[j] for j in range(row, stop))
    decided = np.flatnonzero(held.action >= 0)
    assert 0 < np.isnan(g[decided]).sum() < len(decided)
    if held.legal is not None:
        legal = held.legal
    choice = np.array([max(np.flatnonzero(legal[r]), key=lambda a, r=r: scores[r, a])
                       for r in decided])  # fmt: skip
    logged = held.action[decided]
    expected = {"heldout_agreement": (choice == logged).mean()}
    if fields["algorithm"] == "bc":
        chance = np.where(legal, np.exp(q), 0)
        chance /= chance.sum(axis=1, keepdims=True)
        expected["heldout_log_loss"] = -np.log(chance[decided, logged]).mean()
    else:
        expected["heldout_value_error"] = np.nanmean(q[decided, logged] - g[decided])
        expected["heldout_overestimation"] = np.nanmean(q[decided, choice] - g[decided])
    for name, value in expected.items():
        assert run.last(name) == pytest.approx(value, rel=1e-4, abs=1e-5), name
        assert run.last(f"final/{name}") == run.last(name)
        assert [row.step for row in run.rows if row.metric == name] == [20, 40]


def test_what_the_log_did_in_like_states(tmp_path: Path) -> None:
    """Action 2 is never taken where the first number is positive."""
    rng = np.random.default_rng(0)
    made = []
    for _ in range(200):
        sign = rng.choice([-1.0, 1.0])
        obs = np.array([[10 * sign + rng.normal(scale=0.1)]] * 2)
        made.append(Episode.from_steps(obs, [int(rng.integers(2 if sign > 0 else 3))], [0.0], True))
    data = Dataset.from_episodes(made, 3)
    ref = DataRef(holdout=0.3)
    held, train = ref.held_out(data), ref.of(data)
    assert held is not None
    sample = HeldOutEpisodes(held, train, View(), memory=False)._sample
    positive = held.obs[sample.rows, 0] > 0
    assert sample.supported[:, :2].all()
    assert (sample.supported[:, 2] == ~positive).all()


@pytest.mark.parametrize("memory", [0, 4])
def test_a_sample_is_enough(memory: int) -> None:
    data = log(400, steps=20)
    sample = HeldOutEpisodes(data, data, View(), memory=memory > 0)._sample
    assert 1900 < len(sample.rows) <= 2048
    start = sample.dataset.offsets[:-1]
    assert (np.diff(start) > 0).all()
    if memory:  # whole episodes, over all of the data
        ids = sample.dataset.obs[start, 0]
        assert (ids[0], ids[-1]) == (0, 399)
        assert set(np.diff(sample.dataset.offsets)) == {21}
        whole = log(400, steps=20)
        row = whole.offsets[int(ids[1])]
        g = sum(0.99**k * whole.reward[row + k] for k in range(20))
        assert sample.g[20] == pytest.approx(g)


def test_long_episodes_are_judged_by_their_beginning() -> None:
    data = log(5, steps=3000)
    sample = HeldOutEpisodes(data, data, View(0.5), memory=True)._sample
    assert len(sample.rows) == 2048
    g = sum(0.5**k * data.reward[2047 + k] for k in range(60))
    assert sample.g[2047] == pytest.approx(g)


def test_ids_and_old_jobs() -> None:
    """Runs that were made before episodes were held out keep their ids, and say so."""
    alone, played = Spec.of(path="a"), Spec.of(path="a", env="catch")
    assert (alone.resolved().data.holdout, played.resolved().data.holdout) == (0.2, 0.0)
    assert played.id == "rbve-" + PLAYED
    assert alone.varied(holdout=0.0).id == "rbve-" + ALONE
    assert alone.id == alone.varied(holdout=0.2).id != alone.varied(holdout=0.0).id
    assert alone.id != alone.varied(holdout_seed=1).id
    for job in (alone, played):
        content = job.resolved().to_json()
        assert Spec.from_json(content).data.holdout == content["data"]["holdout"]
        del content["data"]["holdout"], content["data"]["holdout_seed"]
        old = Spec.from_json(content)
        assert old.data.holdout == old.resolved().data.holdout == 0.0
        assert old.id == job.varied(holdout=0.0).id


# As they were before.
PLAYED, ALONE = "e28bcd937159", "0218397e8f16"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stores") / "log"
    write(log(30), path)
    return path


SMALL = ("--steps", 20, "--every", 10, "--hidden", 4, "--batch-size", 8)


def test_the_command_shows_them_and_says_what_is_next(store: Path, tmp_path: Path) -> None:
    done = run("train", store, *SMALL, "--algorithm", "bve", "bc", "--out", tmp_path / "runs")
    assert done.code == 0, done.err
    for heading in ("held-out claim", "held-out error", "held-out RMS", "log loss", "covered"):
        assert heading in done.out
    (policy,) = (tmp_path / "runs").glob("bve-*/policy.safetensors")
    assert f"rbve ope {policy} {store}" in done.err
    page = tmp_path / "page.html"
    assert run("report", tmp_path / "runs", "--out", page).code == 0
    (figure,) = (tmp_path / "page-figures").glob("*heldout.csv")
    told = figure.read_text()
    for metric in held_out_metrics().values():
        assert metric.label in told
    assert "heldout_value_error_mean" in (tmp_path / "page-figures" / "summary.csv").read_text()


def test_without_them_nothing_is_said(store: Path, tmp_path: Path) -> None:
    done = run("train", store, *SMALL, "--holdout", 0, "--out", tmp_path)
    assert done.code == 0, done.err
    assert "last training loss" in done.out
    assert "held" not in done.out + done.err
    (found,) = rows.find([tmp_path])
    assert found.facts["episodes"] == 30
    assert not [row for row in found.rows if "heldout" in row.metric]


def test_too_few_episodes_are_told(tmp_path: Path) -> None:
    write(log(4), tmp_path / "few")
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # as for a user, to whom the command shows them as notes
        done = run("train", tmp_path / "few", *SMALL, "--out", tmp_path / "runs")
    assert done.code == 0, done.err
    words = "has 4 of the 5 episodes from which on some are held out: all of them train"
    assert f"note: {tmp_path / 'few'} {words}" in done.err
    assert [each.facts["episodes"] for each in rows.find([tmp_path / "runs"])] == [4]


@pytest.mark.parametrize("value", ["1", "-0.1", "nan", "1.5"])
def test_a_bad_share_is_one_line(store: Path, value: str) -> None:
    done = run("train", store, f"--holdout={value}")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "holdout must lie in [0, 1), 0 = no episode is held out" in done.err
