"""Transitions without an episode and without a return: there is no V̂, and nothing pretends one."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from support.cli import run

import rbve
from rbve import ranking
from rbve.data import Dataset, Episode, load, write
from rbve.data.transitions import View, transitions
from rbve.spec import Spec
from rbve.training.batches.table import transition_table
from rbve.training.measures import facts
from rbve.training.notes import notes
from rbve.types import Batch

ROWS = 400


def log_of(path: Path, returns: bool = False) -> Path:
    """One row a transition; rewards are paid at the end alone."""
    rng = np.random.default_rng(0)
    lines = []
    for row in range(ROWS):
        x, y = rng.normal(size=2)
        end = row % 4 == 3
        total = f",{row % 7}" if returns else ""
        lines.append(
            f"{x:.3f},{row % 2},{10 * end + rng.normal():.3f},{y:.3f},{row % 2},{end:d}{total}"
        )
    header = "x,action,reward,next_observation_x,next_action,terminated" + (
        ",episode_return" if returns else ""
    )
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lone")
    done = run("convert", log_of(folder / "log.csv"), folder / "store", "--observation", "x")
    assert done.code == 0, done.err
    assert "--episode-return NAME" in done.err
    return folder / "store"


def test_the_return_is_unknown_not_the_reward(store: Path, tmp_path: Path) -> None:
    data = load(store)
    assert np.isnan(data.episode_return).all()
    assert np.isnan(transitions(data, View(), "pair").g).all()
    done = run("convert", log_of(tmp_path / "log.csv", returns=True), tmp_path / "b")
    assert done.code == 0, done.err
    assert "--episode-return" not in done.err
    known = load(tmp_path / "b")
    np.testing.assert_array_equal(known.episode_return, np.arange(ROWS) % 7)


@pytest.mark.parametrize("name", ["b.npz", "b.parquet", "b.csv", "minari"])
def test_it_stays_unknown_in_every_format(store: Path, tmp_path: Path, name: str) -> None:
    to = "minari_arrow" if name == "minari" else None
    rbve.data.convert.convert(store, tmp_path / name, to=to)
    found = load(tmp_path / name)
    assert not found.complete.any()
    assert np.isnan(found.episode_return).all()


def test_only_a_fragment_may_lack_its_return() -> None:
    whole = Episode.from_steps([[0.0], [1.0]], [0], [1.0], True)
    data = Dataset.from_episodes([whole, whole._replace(complete=False)], 2)
    np.testing.assert_array_equal(data.episode_return, [1, np.nan])
    with pytest.raises(ValueError, match="episode 0, step 0: the episode's return is not finite"):
        Dataset.from_episodes([whole._replace(episode_return=np.nan)], 2)
    with pytest.raises(ValueError, match="return is not finite"):
        Dataset.from_episodes([whole._replace(episode_return=np.inf, complete=False)], 2)


def test_choosing_by_return_leaves_out_what_is_unknown(store: Path) -> None:
    with pytest.raises(ValueError, match=r"no return of an episode is known.*--episode-return"):
        load(store).filter_by_return("above")
    episodes = [
        Episode.from_steps([[0.0], [1.0]], [0], [float(reward)], True) for reward in range(4)
    ]
    episodes[3] = episodes[3]._replace(complete=False)
    data = Dataset.from_episodes(episodes, 2)
    assert data.filter_by_return("above").episode_return.tolist() == [2]
    assert data.filter_by_return("below").episode_return.tolist() == [0, 1]
    assert facts(data, None)["best_return"] == 2
    assert facts(load(store), None)["best_return"] is None


# Weights


@pytest.mark.parametrize("kind", ["exponential", "binary", "advantage", "none"])
@pytest.mark.parametrize("normalise", ["dataset", "none"])
def test_rows_without_v_weigh_one_and_change_no_other(kind: str, normalise: str) -> None:
    options = ranking.Options(filter=kind, normalise=normalise)  # type: ignore[arg-type]
    q = jnp.asarray(np.random.default_rng(0).normal(size=(6, 3)))
    g = np.array([1.0, 2.0, 4.0, np.nan, np.nan, np.nan], np.float32)

    def weights(rows: slice) -> np.ndarray:
        ones = jnp.ones(len(g[rows]))
        batch = Batch(
            action=ones.astype(int), reward=ones, discount=ones, next_action=ones.astype(int),
            has_next_action=ones > 0, g=jnp.asarray(g[rows]), g_scale=jnp.float32(1.5),
            weight=ones, legal=None, next_legal=None,
        )  # fmt: skip
        return np.asarray(ranking.success_weight(q[rows], batch, ranking.Config(), options))

    both = weights(slice(None))
    np.testing.assert_array_equal(both[3:], 1)
    np.testing.assert_allclose(both[:3], weights(slice(3)), rtol=1e-6)
    np.testing.assert_array_equal(weights(slice(3, None)), 1)


def test_the_scale_is_that_of_known_values(store: Path) -> None:
    assert np.isnan(transition_table([load(store)], View(), "pair").g_scale).all()


def test_training_says_so_or_refuses(store: Path, tmp_path: Path) -> None:
    few = ("--steps", 20, "--every", 10, "--hidden", 8)
    done = run("train", store, *few, "--out", tmp_path / "a")
    assert done.code == 0, done.err
    assert "nor is the return of 400 of them, where rbve weighs all rows by 1" in done.err
    assert "go by the return" not in done.err
    assert "the same in every row" not in done.err
    (file,) = tmp_path.glob("a/*/rows.jsonl")
    rows = map(json.loads, file.read_text().splitlines())
    shares = [row["value"] for row in rows if row.get("metric") == "train/weight_ess"]
    assert len(shares) == 2
    assert all(share == pytest.approx(1) for share in shares)
    done = run("train", store, *few, "--algorithm", "filtered_bc", "--out", tmp_path / "b")
    assert (done.code, "no return of an episode is known" in done.err) == (2, True)
    done = run("train", store, *few, "--algorithm", "mc", "--out", tmp_path / "c")
    assert (done.code, "fragment without reward-to-go" in done.err) == (2, True)
    assert notes("d", load(store), [Spec.of(algorithm="bc").resolved()]) == []


# The audit


def test_the_audit_tells(store: Path, tmp_path: Path) -> None:
    done = run("inspect", store, "--html", tmp_path / "page.html")
    assert done.code == 3, done
    assert "returns unknown" in done.out
    assert "--episode-return NAME" in done.out
    assert "stands in" not in done.out
    assert "V̂ is not known: every weight is 1" in (tmp_path / "page.html").read_text()
    found = json.loads(run("inspect", store, "--json").out)
    assert found["counts"]["returns"] is None
    assert found["weights"]["value"] is None
    assert [finding["name"] for finding in found["findings"]] == ["returns unknown"]
    assert found["weights"]["unknown"] == ROWS


def test_the_audit_of_some_unknown_returns(store: Path) -> None:
    data = load(store)
    returns = np.where(np.arange(ROWS) < 100, data.episode_return, np.arange(ROWS) % 7)
    found = rbve.inspect(dataclasses.replace(data, episode_return=returns))
    assert found.counts.returns_unknown == 100
    assert found.counts.returns is not None
    assert found.counts.returns.high == 6
    assert found.weights.recommended is not None
    words = "300 fragments without V̂; the return of the episode stands in"
    assert any(note.startswith(words) for note in found.notes)


def test_lone_transitions_may_all_end(tmp_path: Path) -> None:
    log = log_of(tmp_path / "log.csv")
    flags = ("--observation", "x", "--terminated", "", "--ends", "terminated")
    done = run("convert", log, tmp_path / "store", *flags)
    assert done.code == 0, done.err
    assert "no end flags" not in done.err
    assert load(tmp_path / "store").terminated.all()


def test_a_round_trip_through_a_store_keeps_known_and_unknown(tmp_path: Path) -> None:
    lone = Episode.from_steps([[0.0], [1.0]], [0], [1.0], True)._replace(complete=False)
    data = Dataset.from_episodes([lone, lone._replace(episode_return=5.0)], 2)
    write(data, tmp_path / "store")
    np.testing.assert_array_equal(load(tmp_path / "store").episode_return, [np.nan, 5])
