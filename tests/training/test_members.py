"""Members of a sweep: each equals the same job done alone, and differs where its numbers do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbve import rows
from rbve.data import Dataset, Episode
from rbve.evaluation import evaluate
from rbve.evaluation.actors import UniformActor
from rbve.evaluation.vector import Trace, VectorEnv
from rbve.policy import Policy
from rbve.spec import Spec
from rbve.sweep.run import run_jobs
from rbve.tensors import read_tensors
from rbve.training import run
from rbve.training.batches.table import transition_table
from rbve.training.batches.transitions import NUMBERS
from rbve.training.run import CHECKPOINT, POLICY, MemberRun, train_members
from rbve.training.update import DRAWS, Member, Program, TrainState, draw, make_program

PLAN = {"steps": 150, "every": 70}
Maker = Callable[..., Spec]


def train(
    jobs: Sequence[Spec], data: Sequence[Dataset], out: Path, vectorise: bool | None = None
) -> list[Path]:
    folders = [out / str(index) for index in range(len(jobs))]
    train_members(jobs, data, folders, vectorise=vectorise)
    return folders


def weights(folder: Path) -> np.ndarray:
    return read_tensors(folder / POLICY)[0]["weights"]


def assert_same_member(one: Path, other: Path) -> None:
    for name in (CHECKPOINT, POLICY):
        tensors, _ = read_tensors(one / name)
        others, _ = read_tensors(other / name)
        for key in tensors:
            np.testing.assert_array_equal(tensors[key], others[key], err_msg=f"{name} {key}")
    assert (one / rows.FILE).read_bytes() == (other / rows.FILE).read_bytes()


@pytest.fixture(scope="module")
def mixed(small_job: Maker, catch: Dataset) -> tuple[list[Spec], list[Dataset]]:
    """Three members that differ in data, size of data, seed, λ and learning rate."""
    jobs = [
        small_job("rbve", PLAN, {"lam": 0.005}, seed=0, learning_rate=1e-3),
        small_job("rbve", PLAN, {"lam": 0.5}, seed=1, learning_rate=1e-3, target_period=11),
        small_job("rbve", PLAN, {"lam": 0.05}, seed=0, learning_rate=1e-4),
    ]
    keeps = [1.0, 0.3, 0.7]
    jobs = [
        replace(job, data=replace(job.data, keep=keep))
        for job, keep in zip(jobs, keeps, strict=True)
    ]
    return jobs, [job.data.of(catch) for job in jobs]


@pytest.fixture(scope="module")
def together(
    mixed: tuple[list[Spec], list[Dataset]], tmp_path_factory: pytest.TempPathFactory
) -> list[Path]:
    return train(*mixed, tmp_path_factory.mktemp("together"))


def test_a_member_equals_the_job_done_alone(
    mixed: tuple[list[Spec], list[Dataset]], together: list[Path], tmp_path: Path
) -> None:
    jobs, data = mixed
    for index in (1, 2):
        (alone,) = train([jobs[index]], [data[index]], tmp_path / str(index))
        assert_same_member(alone, together[index])


def test_a_sweep_over_devices_changes_nothing(
    mixed: tuple[list[Spec], list[Dataset]], together: list[Path], tmp_path: Path
) -> None:
    jobs, _ = mixed
    for mine, folder in zip(together, run_jobs(jobs, tmp_path), strict=True):
        assert_same_member(mine, folder)


def test_vectorised_members_agree(
    mixed: tuple[list[Spec], list[Dataset]], together: list[Path], tmp_path: Path
) -> None:
    folders = train(*mixed, tmp_path, vectorise=True)
    for mine, folder in zip(together, folders, strict=True):
        np.testing.assert_allclose(weights(folder), weights(mine), atol=1e-4)
        one, other = rows.read(mine / rows.FILE), rows.read(folder / rows.FILE)
        assert [row[:2] for row in one.rows] == [row[:2] for row in other.rows]
        assert [row.value for row in one.rows if row.metric == "train/td_loss"] == pytest.approx(
            [row.value for row in other.rows if row.metric == "train/td_loss"], abs=1e-4
        )


@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [
        ("rbve", [{}, {"lam": 0.5}, {"lam": 0.5, "nu": 0.5}, {"lam": 0.5, "beta": 2.0}]),
        ("cql", [{}, {"alpha": 3.0}]),
    ],
)
def test_numbers_of_a_member_matter(
    algorithm: str,
    settings: list[dict[str, float]],
    small_job: Maker,
    catch: Dataset,
    tmp_path: Path,
) -> None:
    plan = {"steps": 30, "every": 30, "env": None}
    jobs = [small_job(algorithm, plan, each) for each in settings]
    jobs += [
        small_job(algorithm, plan, learning_rate=1e-3),
        small_job(algorithm, plan, target_period=5),
        small_job(algorithm, plan, seed=1),
    ]
    found = [weights(folder) for folder in train(jobs, [catch] * len(jobs), tmp_path)]
    for i, one in enumerate(found):
        for other in found[:i]:
            assert not np.array_equal(one, other)
    # Nearly every weight: a unit that no batch reached keeps its bias of 0.
    assert np.mean(found[-1] != found[0]) > 0.9


def test_seeds(small_job: Maker, catch: Dataset, tmp_path: Path) -> None:
    plan = {"steps": 30, "every": 30}
    jobs = [small_job("dqn", plan, seed=seed) for seed in (5, 5, 6)]
    first, again, other = train(jobs, [catch] * 3, tmp_path)
    assert_same_member(first, again)
    assert not np.array_equal(weights(first), weights(other))


@pytest.mark.parametrize("vectorise", [False, True])
def test_a_diverged_member_is_frozen_and_the_others_go_on(
    vectorise: bool, small_job: Maker, catch: Dataset, tmp_path: Path
) -> None:
    reward = np.array(catch.reward)
    reward[reward != 0] *= 1e30
    huge = replace(catch, reward=reward)
    jobs = [
        small_job("bve", PLAN, seed=0),
        small_job("bve", PLAN, seed=1, learning_rate=1e30),
        small_job("bve", PLAN, seed=2),
        small_job("bve", PLAN, seed=3),
    ]
    data = [catch, catch, huge, catch]
    folders = train(jobs, data, tmp_path / "mixed", vectorise)
    clean = train([jobs[0], jobs[3]], [catch] * 2, tmp_path / "clean", vectorise)
    for mine, folder in zip(clean, (folders[0], folders[3]), strict=True):
        np.testing.assert_allclose(weights(folder), weights(mine), atol=1e-6 if vectorise else 0)
        assert rows.read(folder / rows.FILE).last("diverged_at") is None
    for folder in folders[1:3]:
        run = rows.read(folder / rows.FILE)
        diverged = run.last("diverged_at")
        assert diverged is not None
        assert 0 <= diverged < 70
        assert {row.step for row in run.rows} == {70}, "stops at the interval it diverged in"
        assert run.last("final/return") is not None
        assert np.isfinite(weights(folder)).all()
        tensors, info = read_tensors(folder / CHECKPOINT)
        assert info["finished"]
        assert all(np.isfinite(tensor).all() for tensor in tensors.values())
        with pytest.warns(UserWarning, match=f"training diverged at update {diverged:.0f};"):
            assert Policy.load(folder / POLICY).act(np.zeros((10, 5))) in (0, 1, 2)


def test_one_program_only(small_job: Maker, catch: Dataset, tmp_path: Path) -> None:
    jobs = [small_job("bve", {"gamma": gamma}) for gamma in (0.9, 0.99)]
    with pytest.raises(ValueError, match="share one program"):
        train(jobs, [catch] * 2, tmp_path)


def program_of(
    job: Spec, data: Dataset, folder: Path
) -> tuple[Program, jax.Array, Member, TrainState]:
    table = transition_table([data], job.view, job.load_algorithm().bootstrap)  # type: ignore[arg-type]
    program = make_program(job, table.items)
    run = MemberRun(job, data, folder, program, table, 0)
    return program, jax.tree.map(jnp.asarray, table.store), run.inputs, run.state


@pytest.mark.parametrize("period", [1, 7, 64, 1000])
def test_one_call_equals_single_updates(
    period: int, small_job: Maker, catch: Dataset, tmp_path: Path
) -> None:
    """And the target network is the online one as of the last multiple of the period."""
    job = small_job("dqn", target_period=period)
    program, table, member, state = program_of(job, catch, tmp_path)
    advance = jax.jit(program.advance)
    until = DRAWS + 30
    whole, sums = advance(state, table, member, until)
    synced, totals = state.params, jax.tree.map(np.zeros_like, sums)
    for step in range(1, until + 1):
        state, metrics = advance(state, table, member, step)
        assert int(state.step) == step
        totals = jax.tree.map(np.add, totals, metrics)
        if step % period == 0:
            synced = state.params
        np.testing.assert_array_equal(state.target, synced, err_msg=f"step {step}")
    for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(state), strict=True):
        np.testing.assert_array_equal(one, other)
    for name, total in totals.items():
        np.testing.assert_allclose(sums[name], total, rtol=1e-5, atol=1e-6, err_msg=name)


def test_advance_uses_the_drawn_rows(small_job: Maker, catch: Dataset, tmp_path: Path) -> None:
    """Update k sees the rows that draw() gives for block k // DRAWS, resumed there or not."""
    job = small_job("mc", {"batch_size": 4})
    program, table, member, state = program_of(job, catch, tmp_path)
    advance = jax.jit(program.advance)
    numbers = table.numbers
    key_draws, size = jax.random.split(member.key)[0], jnp.int32(len(numbers))
    poison = jnp.broadcast_to(NUMBERS.pack(reward=np.nan, g=np.nan), numbers.shape)
    for step in (0, 1, DRAWS - 1, DRAWS, DRAWS + 9):
        drawn = draw(key_draws, jnp.int32(step // DRAWS), size, 4)[step % DRAWS]
        # Only rows drawn can enter: with all others poisoned, the update stays the same.
        poisoned = table._replace(numbers=poison.at[drawn].set(numbers[drawn]))
        here = state._replace(step=jnp.int32(step))
        expected, _ = advance(here, table, member, step + 1)
        found, _ = advance(here, poisoned, member, step + 1)
        assert int(found.diverged_at) == -1
        np.testing.assert_array_equal(found.params, expected.params)


def test_draws_are_uniform() -> None:
    key, size, batch, blocks = jax.random.key(0), 37, 128, 20
    found = np.concatenate(
        [np.asarray(draw(key, jnp.int32(k), jnp.int32(size), batch)).ravel() for k in range(blocks)]
    )
    counts = np.bincount(found, minlength=size)
    assert len(counts) == size
    expected = len(found) / size
    chi2 = np.sum((counts - expected) ** 2 / expected)
    # Mean 36, deviation 8.5.
    assert 10 < chi2 < 85


def test_draws_are_by_counter() -> None:
    key, size = jax.random.key(1), jnp.int32(1_000_003)
    blocks = [np.asarray(draw(key, jnp.int32(k), size, 8)) for k in range(3)]
    assert blocks[0].shape == (DRAWS, 8)
    np.testing.assert_array_equal(blocks[2], draw(key, jnp.int32(2), size, 8))
    together = np.concatenate([block.ravel() for block in blocks])
    assert len(np.unique(together)) > 0.99 * len(together)
    assert together.min() >= 0
    assert together.max() < 1_000_003
    other = np.asarray(draw(jax.random.key(2), jnp.int32(0), size, 8))
    assert np.mean(other == blocks[0]) < 0.01
    assert not np.asarray(draw(key, jnp.int32(0), jnp.int32(1), 8)).any()


def test_outside_jax_members_play_episodes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    pytest.importorskip("gymnasium")

    def note(*_: Any, seed: int, salt: int) -> Any:
        seen.append((seed, salt))
        return iter([Trace(0, np.random.default_rng(0), reward=[1.0])])

    monkeypatch.setattr(evaluate, "play", note)
    episode = Episode.from_steps(np.zeros((3, 4)), [0, 1], [1.0, 1.0], terminated=True)
    data = Dataset.from_episodes([episode], 2)
    env = "gymnasium:CartPole-v1"
    spec = Spec.of(algorithm="bve", env=env, steps=10, every=5).resolved()
    closed: list[VectorEnv] = []
    monkeypatch.setattr(VectorEnv, "close", lambda env: closed.append(env))
    with run.evaluating(spec, data) as play:
        for number in (0, 1):
            member: Any = SimpleNamespace(
                job=SimpleNamespace(seed=number), policy=lambda: UniformActor()
            )
            play(member, 5)
        assert not closed
    assert seen == [(5, 0), (5, 1)]
    assert len(closed) == 1


@pytest.mark.parametrize("algorithm", ["rbve", "bcq"])
def test_first_weights_do_not_depend_on_how_they_are_compiled(
    algorithm: str, small_job: Maker, catch: Dataset
) -> None:
    spec = small_job(algorithm)
    bootstrap = spec.load_algorithm().bootstrap
    program = make_program(
        spec, transition_table([catch], spec.view, bootstrap, spec.network.stack).items
    )  # type: ignore[arg-type]
    fully = {"xla_backend_optimization_level": 3}
    wanted = jax.jit(program.init.__wrapped__, compiler_options=fully)(jax.random.key(1))  # type: ignore[attr-defined]
    found = program.init(jax.random.key(1))
    np.testing.assert_array_equal(found.params, wanted.params)
