"""Fitted Q evaluation and cloning through the trainer, cross-fitted over episodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from support.ope import Process, process, record, state_of

from rbve import ops
from rbve.data.dataset import Dataset
from rbve.off_policy import fits
from rbve.off_policy.fits import FitPlan, Rest, fit_cloning, fit_values, fold_of
from rbve.off_policy.log import DecisionLog
from rbve.policy.outputs import Outputs

PLAN = FitPlan(steps=2500, hidden=(32,), learning_rate=3e-3)


def logged() -> tuple[Process, DecisionLog]:
    """Masks, ends and cuts; every legal action of every state is tried often."""
    made = process(1, gamma=0.8, ends=0.3, limit=5, noise=0.1)
    return made, DecisionLog.of(record(made, 600), made.gamma)


def other_policy(made: Process) -> np.ndarray:
    worst = np.where(made.legal, made.reward, np.inf).argmin(axis=1)
    return np.eye(made.reward.shape[1])[worst]


def counted(made: Process, log: DecisionLog, keep: np.ndarray) -> Process:
    """The process as the given episodes (E,) show it: what a fit to them can know."""
    state, chosen = state_of(log.dataset), keep[log.episode]
    following, reward = np.zeros_like(made.following), np.zeros_like(made.reward)
    last = np.zeros(len(log.action), bool)
    last[log.offsets[1:][~log.cut] - 1] = True
    pair = state[log.rows[chosen]], log.action[chosen]
    count = np.zeros_like(reward)
    np.add.at(count, pair, 1)
    np.add.at(reward, pair, log.reward[chosen])
    np.add.at(following, (*pair, state[log.rows[chosen] + 1]), ~last[chosen])
    often = np.maximum(count, 1)
    return replace(made, reward=reward / often, following=following / often[..., None])


def test_near_the_exact_values_of_every_policy() -> None:
    """The fixed point of what a fit has seen, by a linear system, and less near to the truth."""
    made, log = logged()
    state, fold = state_of(log.dataset), fold_of(log.episodes, PLAN.folds, PLAN.seed)
    tables = [made.policy, other_policy(made)]
    exact = [made.q_of(table) for table in tables]
    assert np.abs(exact[0] - exact[1])[made.legal].mean() > 0.3 * exact[0][made.legal].std()
    found = fit_values(log, [table[state] for table in tables], PLAN)
    legal = made.legal[state[log.rows]]
    for table, truth, own in zip(tables, exact, found, strict=True):
        assert own.q.shape == (len(log.action), 3)
        spread = truth[made.legal].std()
        for part in range(PLAN.folds):
            known = counted(made, log, fold != part).q_of(table)
            mine = fold[log.episode] == part
            error = np.abs(own.q - known[state[log.rows]])[mine[:, None] & legal]
            assert error.mean() < 0.1 * spread
            assert error.max() < 0.3 * spread  # of pairs that were hardly seen
            v = (table * known).sum(axis=1)[state[log.final_rows]]
            assert np.abs(own.v_final - v)[log.cut & (fold == part)].mean() < 0.1 * spread
        assert np.abs(own.q - truth[state[log.rows]])[legal].mean() < 0.2 * spread
    # Rewards in another unit make no other fit.
    scaled = replace(log.dataset, reward=1000 * log.dataset.reward)
    [again] = fit_values(
        DecisionLog(scaled, log.gamma), [made.policy[state]], replace(PLAN, steps=50)
    )
    [short] = fit_values(log, [made.policy[state]], replace(PLAN, steps=50))
    np.testing.assert_allclose(again.q, 1000 * short.q, rtol=1e-2, atol=20)


@pytest.mark.slow
def test_with_memory_near_the_exact_values() -> None:
    """Sequences; a memory sees past rewards too and learns some of their noise."""
    made, log = logged()
    state = state_of(log.dataset)
    plan = replace(PLAN, memory=16, steps=1500, learning_rate=1e-3)
    [found] = fit_values(log, [made.policy[state]], plan)
    off = (found.q - made.q[state[log.rows]])[made.legal[state[log.rows]]]
    spread = made.q[made.legal].std()
    assert np.abs(off).mean() < 0.5 * spread
    assert abs(off.mean()) < 0.1 * spread


def test_memory_learns_values_on_the_scale_of_rewards(monkeypatch: pytest.MonkeyPatch) -> None:
    """R2D2's square-root scale makes the mean of a random target low."""
    assert float(ops.unscale(ops.rescale(jnp.float32(10.0)) / 2)) < 3.7  # of 0 or 10
    jobs: list = []

    def run_jobs(given: list, out: Path, report: object, held: dict[str, Dataset]) -> list:
        jobs.extend(given)
        raise InterruptedError

    monkeypatch.setattr(fits, "run_jobs", run_jobs)
    made, log = logged()
    with pytest.raises(InterruptedError):
        fit_values(log, [made.policy[state_of(log.dataset)]], replace(PLAN, memory=16))
    assert len(jobs) == PLAN.folds
    for job in jobs:
        own = job.resolved()
        assert own.network.memory == 16
        assert own.network.rescale is False
        assert own.view.n_step == 1
        assert own.view.gamma == made.gamma


def test_cloning_is_near_the_behaviour() -> None:
    made, log = logged()
    logits = fit_cloning(log, replace(PLAN, steps=600))
    assert logits.shape == (len(log.dataset.action), 3)
    state = state_of(log.dataset)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    found = odds / odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, made.behaviour[state], atol=0.12)
    assert (found[~made.legal[state]] < 1e-6).all()


def test_folds_are_even_and_seeded() -> None:
    fold = fold_of(11, 3, 0)
    assert sorted(np.bincount(fold)) == [3, 4, 4]
    np.testing.assert_array_equal(fold, fold_of(11, 3, 0))
    assert (fold != fold_of(11, 3, 1)).any()
    with pytest.raises(ValueError, match="3 folds needs as many episodes; the log has 2"):
        fold_of(2, 3, 0)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [({"steps": 0}, "at least one update; got 0"), ({"folds": 1}, "at least 2 folds; got 1")],
)
def test_plans_that_make_no_sense(keywords: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FitPlan(**keywords)  # type: ignore[arg-type]


class Traced:
    """Fits that only tell which episodes they are fitted to and which they judge."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.trained: list[set[int]] = []
        self.judged: list[set[int]] = []
        monkeypatch.setattr(fits, "run_jobs", self.run_jobs)
        monkeypatch.setattr(fits, "outputs_on", self.outputs_on)
        loaded = SimpleNamespace(algorithm=SimpleNamespace(values=False))
        monkeypatch.setattr(fits.Policy, "load", lambda path: loaded)

    def run_jobs(
        self, jobs: list[object], out: Path, report: object, held: dict[str, Dataset]
    ) -> list:
        self.trained.extend(set(np.unique(data.obs).tolist()) for data in held.values())
        return [out] * len(jobs)

    def outputs_on(self, policy: object, dataset: Dataset) -> Outputs:
        self.judged.append(set(np.unique(dataset.obs).tolist()))
        return Outputs(np.repeat(dataset.obs, 3, axis=1), np.repeat(dataset.obs, 3, axis=1))


def numbered() -> DecisionLog:
    """Observations are the numbers of their episodes."""
    _, log = logged()
    rows = np.repeat(np.arange(600), log.lengths + 1)[:, None]
    return DecisionLog(replace(log.dataset, obs=rows), 0.9)


def test_each_episode_is_judged_by_a_fit_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is trained on and what is judged: disjoint, together everything."""
    log, traced = numbered(), Traced(monkeypatch)
    found = fit_cloning(log, FitPlan(folds=3))
    assert len(traced.trained) == len(traced.judged) == 3
    for learned, told in zip(traced.trained, traced.judged, strict=True):
        assert learned.isdisjoint(told)
        assert learned | told == set(range(600))
    np.testing.assert_array_equal(found[:, 0], log.dataset.obs[:, 0])  # each output in its own row
    found = fit_cloning(log, FitPlan(folds=3), crossed=False)
    assert traced.trained[3:] == traced.judged[3:] == [set(range(600))]
    np.testing.assert_array_equal(found[:, 0], log.dataset.obs[:, 0])


def test_where_other_episodes_are_there_fits_learn_from_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One fit to all of them judges all of the log."""
    whole, traced = numbered(), Traced(monkeypatch)
    log, rest = (
        DecisionLog(whole.dataset.select(np.arange(*some), "part"), 0.9)
        for some in ((0, 100), (100, 600))
    )
    tables = [np.full((len(each.dataset.action), 3), 1 / 3) for each in (log, rest)]
    [found] = fit_values(log, [tables[0]], FitPlan(), rest=Rest(rest, iter(tables[1:])))
    assert traced.trained == [set(range(100, 600))]
    assert traced.judged == [set(range(100))]
    assert found.q.shape == (len(log.action), 3)


def test_a_fit_takes_no_more_rows_than_it_can_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """A random choice of whole episodes, the same each time."""
    log, traced = numbered(), Traced(monkeypatch)
    few = FitPlan(steps=5)
    for _ in range(2):
        fit_cloning(log, few, crossed=False)
    first, again = traced.trained
    assert first == again
    rows = sum(int(log.lengths[each]) + 1 for each in first)
    most = 32 * few.steps
    assert most - (log.lengths.max() + 1) < rows <= most
    assert max(first) > 300  # not the first ones
    fit_cloning(log, replace(few, seed=1), crossed=False)
    assert traced.trained[2] != first


def test_fits_of_other_data_are_other_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept in a folder is taken up only where folds, data, ends, masks and policy agree."""
    _, log = logged()
    seen: list[tuple[str, ...]] = []

    def run_jobs(jobs: list, out: Path, report: object, held: dict[str, Dataset]) -> list:
        seen.append(tuple(job.id for job in jobs))
        raise InterruptedError

    monkeypatch.setattr(fits, "run_jobs", run_jobs)
    data, policy = log.dataset, np.full((len(log.dataset.action), 3), 1 / 3)
    assert data.legal is not None
    others = {
        "same": (data, policy, PLAN),
        "again": (data, policy, PLAN),
        "folds": (data, policy, replace(PLAN, folds=3)),
        "seed": (data, policy, replace(PLAN, seed=1)),
        "steps": (data, policy, replace(PLAN, steps=7)),
        "reward": (replace(data, reward=data.reward + 1), policy, PLAN),
        "ends": (replace(data, terminated=~data.terminated), policy, PLAN),
        "masks": (replace(data, legal=np.ones_like(data.legal)), policy, PLAN),
        "policy": (data, policy[:, ::-1] * [0.5, 1, 1.5], PLAN),
    }
    for dataset, table, plan in others.values():
        with pytest.raises(InterruptedError):
            fit_values(DecisionLog(dataset, 0.9), [table], plan)
    first, again, *rest = map(set, seen)
    assert first == again
    for name, ids in zip(list(others)[2:], rest, strict=True):
        assert first.isdisjoint(ids), name


def test_kept_fits_are_taken_up(tmp_path: Path) -> None:
    made, log = logged()
    plan = replace(PLAN, steps=20, out=tmp_path / "fits")
    policy = made.policy[state_of(log.dataset)]
    [first] = fit_values(log, [policy], plan)
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "fits").rglob("*.safetensors")}
    assert len(files) >= 2
    [again] = fit_values(log, [policy], plan)
    np.testing.assert_array_equal(first.q, again.q)
    assert {file: file.stat().st_mtime_ns for file in files} == files


def test_targets_are_synced_often_enough_for_the_horizon() -> None:
    """A sync carries values one decision back: at 100 of them a value of 1 per decision, for good,
    comes out at 63 of the 100 that it is at γ = .99."""

    def syncs(length: int, gamma: float, steps: int = 10_000) -> float:
        made = process(0, ends=1 / length / 2, limit=length)
        log = DecisionLog.of(record(made, 20), gamma)
        return steps / fits._target_period(log, steps)

    assert syncs(1000, 0.99) == pytest.approx(250)
    assert syncs(1000, 0.9) == 100  # as in training
    assert syncs(5, 1.0) == 100
    assert 1000 < syncs(1000, 1.0) <= 2500
    assert syncs(1000, 1.0, steps=50) == 50
