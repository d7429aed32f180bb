"""Networks with memory through the whole pipeline: data, training, resuming, acting."""

from __future__ import annotations

import dataclasses
import functools
import math
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.recordings import record_policy

from rbve import api, envs
from rbve.algorithms import NoOptions
from rbve.data import Dataset, load
from rbve.data._rlu.tfrecord import parse_example, records
from rbve.data.episode import Episode
from rbve.evaluation.actors import PolicyActor
from rbve.evaluation.vector import VectorEnv, play
from rbve.networks import build
from rbve.networks.recurrent import Seen
from rbve.policy import Policy
from rbve.spec import Spec
from rbve.sweep.run import run_jobs
from rbve.tensors import read_tensors
from rbve.training.batches import sequences
from rbve.training.batches.steps import remembered
from rbve.training.batches.table import sequence_table
from rbve.training.run import CHECKPOINT, POLICY

SAMPLES = os.environ.get("RBVE_RLU_SAMPLES", "")
LEVEL = "memory_len:10"
EPISODES = 1000


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a uniform policy does: it repeats the bit half of the time."""
    out = tmp_path_factory.mktemp("memory") / "data"
    record_policy(LEVEL, out, None, episodes=400)
    return out


def trained(data: Dataset, memory: int) -> Policy:
    plan = {"memory": memory, "hidden": (16,), "batch_size": 32, "n_step": 5, "every": 600}
    own = {"env": None, "holdout": 0.0, "learning_rate": 3e-3, "target_period": 50}
    return api.train(data, "rbve", steps=600, spec={**plan, **own})


@pytest.fixture(scope="module")
def remembering(path: Path) -> Policy:
    return trained(load(path), memory=24)


def test_with_memory_the_bit_is_repeated(remembering: Policy) -> None:
    assert api.evaluate(remembering, LEVEL, EPISODES)["return"] > 0.9


def test_without_memory_nobody_can(path: Path) -> None:
    assert abs(api.evaluate(trained(load(path), memory=0), LEVEL, EPISODES)["return"]) <= 0.1


def test_a_memory_of_somebody_elses_past_helps_nobody(path: Path) -> None:
    """The bits are dealt out anew over the episodes: what is remembered tells nothing."""
    data = load(path)
    obs = np.array(data.obs)
    first = data.offsets[:-1]
    dealt = np.random.default_rng(0).permutation(len(first))
    for row in (0, 1):  # the bit is shown twice
        obs[first + row] = obs[first[dealt] + row]
    shuffled = dataclasses.replace(data, obs=obs)
    assert abs(api.evaluate(trained(shuffled, memory=24), LEVEL, EPISODES)["return"]) <= 0.1


def test_a_session_does_what_the_rollout_does(remembering: Policy, tmp_path: Path) -> None:
    remembering.save(tmp_path / "policy.safetensors")
    policy = Policy.load(tmp_path / "policy.safetensors")
    assert policy.memory == 24
    assert policy.rescaled
    with pytest.raises(ValueError, match=r"policy.start\(\)"):
        policy.act(np.zeros((1, 3)))
    env: Any = envs.load(LEVEL)
    for seed in range(6):
        session = policy.start()
        state, obs = env.reset(jax.random.key(seed))
        reward, total = 0.0, 0.0
        for _ in range(env.max_steps):
            action = session.act(np.asarray(obs), reward)
            state, outcome = env.step(state, action, jax.random.key(0))
            obs, reward = outcome.obs, float(outcome.reward)
            total += reward
        assert total == 1.0


def test_a_session_says_what_is_wrong_and_can_go_on(remembering: Policy) -> None:
    env: Any = envs.load(LEVEL)
    _, obs = env.reset(jax.random.key(0))
    one, other = remembering.start(), remembering.start()
    with pytest.raises(ValueError, match="legal allows no action"):
        one.act(np.asarray(obs), legal=[False, False])
    with pytest.raises(ValueError, match="last_reward must be a finite number; got nan"):
        one.act(np.asarray(obs), math.nan)
    with pytest.raises(ValueError, match="last_reward must be a finite number; got 'much'"):
        one.act(np.asarray(obs), "much")  # type: ignore[arg-type]
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError, match="must consist of finite numbers; got nan or inf"):
            one.act(np.full_like(obs, bad))
    # What failed left no trace; a reward before the first action is none.
    assert one.act(np.asarray(obs), 7.0) == other.act(np.asarray(obs))
    np.testing.assert_array_equal(one.scores, other.scores)
    with pytest.raises(ValueError, match="learned from rewards too: give last_reward"):
        one.act(np.asarray(obs))
    for wrong in (2, -1, "left", 1.5, None, np.array([0, 1])):
        with pytest.raises(ValueError, match=r"must be an id in \[0, 1\] or one of 0, 1; got"):
            one.last_action = wrong  # type: ignore[assignment]
    one.last_action = "1"
    assert one.last_action == 1


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("rbve", {"lam": 0.1}),
        pytest.param("bve", {"sequence": 8, "burn_in": 3}, marks=pytest.mark.slow),
        pytest.param("iqn", {"sequence": 8, "burn_in": 3}, marks=pytest.mark.slow),
        pytest.param("bcq", {}, marks=pytest.mark.slow),
    ],
)
def test_two_devices_that_share_sequences_learn_as_one(
    path: Path, tmp_path: Path, name: str, changes: dict[str, Any]
) -> None:
    own = job(path, algorithm=name, **changes)
    found = []
    for devices in (1, 2):
        (folder,) = run_jobs([own], tmp_path / str(devices), devices=devices)
        found.append(read_tensors(folder / CHECKPOINT)[0])
    assert found[0].keys() == found[1].keys()
    for key, value in found[0].items():
        np.testing.assert_allclose(found[1][key], value, rtol=1e-4, atol=1e-5, err_msg=key)


def test_each_device_unrolls_its_own_sequences() -> None:
    """A product over the steps of all sequences would mean that every device does all the work."""
    devices = tuple(jax.local_devices()[:2])
    steps, batch, units = 6, 8, 16
    network = build((3,), 2, "q", NoOptions(), (units,), jax.random.key(0), memory=units)
    seen = Seen(
        jnp.ones((steps, batch, 3)),
        jnp.zeros((steps, batch), jnp.int32),
        jnp.zeros((steps, batch)),
        jnp.zeros((steps, batch), bool),
    )
    split = jax.jit(functools.partial(remembered, burn_in=0, devices=devices))
    text = split.lower(network, seen).compile().as_text()
    assert f"f32[{4 * units},{steps * batch // 2}]" in text
    assert f"f32[{4 * units},{steps * batch}]" not in text


class Outside:
    """The level as an environment outside JAX, whose bit goes by the seed."""

    name, obs_shape, actions, legal, executed = LEVEL, (1, 3), ("0", "1"), None, -1

    def __init__(self) -> None:
        self.env: Any = envs.load(LEVEL)

    def reset(self, seed: int | None = None) -> np.ndarray:
        self.state, obs = self.env.reset(jax.random.key(seed or 0))
        return np.asarray(obs)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        self.executed = action
        self.state, outcome = self.env.step(self.state, action, jax.random.key(0))
        return np.asarray(outcome.obs), float(outcome.reward), bool(outcome.terminated), False

    def close(self) -> None:
        pass


def test_lanes_forget_where_an_episode_ends(remembering: Policy) -> None:
    lanes = VectorEnv([Outside(), Outside()])  # type: ignore[list-item]
    traces = list(play(lanes, PolicyActor(remembering), 12, 0.0, seed=0, keep_obs=True))
    assert [sum(trace.reward) for trace in traces] == [1.0] * 12
    # Values are in the units of rewards: the last action is worth 1, of which h makes .415.
    assert np.mean([trace.q[-1] for trace in traces]) == pytest.approx(1.0, abs=0.2)
    for trace in traces:  # begins as if there had been nothing before
        session = remembering.start()
        action = session.act(trace.obs[0])
        assert session.scores is not None
        assert trace.q[0] == pytest.approx(float(session.scores[action]), abs=1e-5)


def job(path: Path, **more: Any) -> Spec:
    plan = {
        "memory": 6, "hidden": (5,), "batch_size": 4, "n_step": 3, "steps": 60, "every": 20,
        "env": LEVEL, "eval_episodes": 4,
    }  # fmt: skip
    return Spec.of(path=path, target_period=7, **{**plan, **more}).resolved()


@pytest.mark.parametrize("more", [{}, {"sequence": 6, "burn_in": 4, "rows": "disk"}])
def test_a_run_that_was_stopped_equals_one_that_was_not(
    path: Path, tmp_path: Path, more: dict[str, Any]
) -> None:
    wanted = job(path, **more)
    (whole,) = run_jobs([wanted], tmp_path / "whole")

    class Stopped(Exception):
        pass

    def stop(progress: Any) -> None:
        if progress.step == 40:
            raise Stopped

    with pytest.raises(Stopped):
        run_jobs([wanted], tmp_path / "parts", stop)
    (parts,) = run_jobs([wanted], tmp_path / "parts")
    assert (whole / "rows.jsonl").read_bytes() == (parts / "rows.jsonl").read_bytes()
    for name in (CHECKPOINT, POLICY):
        (mine, told), (other, other_told) = (read_tensors(each / name) for each in (whole, parts))
        assert told == other_told
        assert mine.keys() == other.keys()
        for key in mine:
            np.testing.assert_array_equal(mine[key], other[key])


@pytest.mark.parametrize(
    "plan", [{}, pytest.param({"sequence": 6, "burn_in": 4}, marks=pytest.mark.slow)]
)
def test_rows_on_disk_train_as_rows_in_memory_do(
    path: Path, tmp_path: Path, plan: dict[str, Any]
) -> None:
    found = [
        Policy.load(run_jobs([job(path, rows=rows, **plan)], tmp_path / rows)[0] / POLICY)
        for rows in ("memory", "disk")
    ]
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6),
        *(policy.network for policy in found),
    )


def random_data(lengths: list[int], seed: int) -> Dataset:
    rng = np.random.default_rng(seed)
    episodes = [
        Episode.from_steps(
            rng.normal(size=(n + 1, 2)).astype(np.float32),
            rng.integers(0, 2, n).tolist(),
            rng.normal(size=n).tolist(),
            terminated=True,
        )
        for n in lengths
    ]
    return Dataset.from_episodes(episodes, 2)


@pytest.mark.slow
def test_a_member_is_the_same_beside_data_with_a_longer_episode(tmp_path: Path) -> None:
    short, long = random_data([5] * 20, 0), random_data([40, 5, 5], 1)
    table = sequence_table([short, long], Spec().resolved().view, "pair", 0, 0)
    assert table.count.tolist() == [20, 2]  # [40], [5, 5]
    assert table.items.plan.train == 41
    data = {"short": short, "long": long}
    plan = [("short", 3), ("long", 3), ("long", 4)]  # two devices: the first and last would meet
    ref = {"env": None, "holdout": 0.0}
    jobs = [dataclasses.replace(job(Path(name), **ref), seed=seed) for name, seed in plan]
    together = run_jobs(jobs, tmp_path / "together", datasets=data)
    (alone,) = run_jobs(jobs[:1], tmp_path / "alone", datasets=data)
    assert (alone / "rows.jsonl").read_bytes() == (together[0] / "rows.jsonl").read_bytes()
    mine, other = (read_tensors(each / POLICY)[0]["weights"] for each in (alone, together[0]))
    np.testing.assert_array_equal(mine, other)


@pytest.mark.slow
@pytest.mark.skipif(not SAMPLES, reason="needs real records: set RBVE_RLU_SAMPLES to their folder")
def test_real_lab_episodes_train(tmp_path: Path) -> None:
    for package in ("cv2", "google_crc32c"):
        pytest.importorskip(package)
    store = tmp_path / "lab"
    api.convert(Path(SAMPLES) / "dmlab", store)
    data = load(store)
    spec = Spec.of(memory=8, gamma=0.997, n_step=5)
    table = sequence_table([data], spec.view, "pair", 0, 0)
    # V̂ of the second record, as it comes out of the sequences, is what the record says.
    picked = table.columns[0].pick(np.array([1]))
    assert picked.frames.shape == (1, 181, 72, 96, 3)
    numbers = picked.numbers[0]
    trains = sequences.NUMBERS.column(numbers, "weight") > 0
    found = sequences.NUMBERS.column(numbers, "g")[trains]
    assert len(found) == 179  # the last decision before a truncation has no pair
    (file,) = (file for file in (Path(SAMPLES) / "dmlab").rglob("*") if file.is_file())
    payload = list(records(file))[1].data
    stored = parse_example(payload)["discounted_rewards"]
    np.testing.assert_allclose(found, stored[:179], rtol=0, atol=1e-3)
    losses: list[float] = []
    plan = {"memory": 16, "sequence": 20, "batch_size": 2, "every": 4, "n_step": 5, "gamma": 0.997}
    plan["holdout"] = 0.0  # two episodes
    api.train(
        store, "rbve", steps=24, env=None, learning_rate=1e-3, target_period=400, spec=plan,
        on_progress=lambda progress: losses.append(progress.metrics["train/loss"]),
    )  # fmt: skip
    assert np.isfinite(losses).all()
    assert np.mean(losses[-2:]) < np.mean(losses[:2])
    # At the paper's settings, whole episodes through an LSTM of 512.
    policy = api.train(
        store, "rbve", steps=1, env=None, preset="rlu-dmlab", spec={"batch_size": 1},
        on_progress=lambda progress: losses.append(progress.metrics["train/loss"]),
    )  # fmt: skip
    assert np.isfinite(losses[-1])
    trained = Spec.from_json(policy.info["job"])
    assert trained.network.memory == 512
    assert (trained.sampling.batch_size, trained.sampling.sequence) == (1, 0)
    policy.start().act(data.obs[0])
