"""Rows left on disk: the same batches and the same results as rows in memory, exact resume."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.tiers import first_and_slow

from rbve.data import Dataset, Episode, View, dataset, load, write
from rbve.data.features import Feature, Features
from rbve.data.inputs import first_rows, frames
from rbve.data.readahead import ReadAhead
from rbve.spec import Spec
from rbve.tensors import read_tensors
from rbve.training import stream
from rbve.training.batches import table
from rbve.training.batches.transitions import NUMBERS
from rbve.training.run import CHECKPOINT, POLICY, Progress, train_members
from rbve.training.stream import Ahead

ACTIONS = 3


class Stopped(Exception):
    pass


def walk(rng: np.random.Generator, steps: int, obs: np.ndarray, masked: bool) -> Episode:
    action = rng.integers(ACTIONS, size=steps)
    legal = rng.random((steps + 1, ACTIONS)) < 0.5
    legal[np.arange(steps), action] = True
    legal[-1, 0] = True
    made = Episode.from_steps(obs, action, rng.normal(size=steps), bool(steps % 2))
    return made._replace(legal=legal if masked else None)


def images(masked: bool = False) -> Dataset:
    """Episodes of 1 to 9 steps of 6×6 frames, whose every pixel differs."""
    rng = np.random.default_rng(0)
    episodes = []
    for index in range(40):
        steps = 1 + index % 9
        obs = rng.integers(0, 256, (steps + 1, 6, 6, 1), np.uint8)
        episodes.append(walk(rng, steps, obs, masked))
    return Dataset.from_episodes(episodes, ACTIONS)


def columns() -> Dataset:
    """A log with a number far from 0 and a category."""
    rng = np.random.default_rng(1)
    named = Features(
        (
            Feature("clock", mean=1.7e9, scale=1000.0),
            Feature("ward", "category", categories=("A", "B", "C")),
        )
    )
    episodes = []
    for index in range(30):
        steps = 1 + index % 7
        clock = 1.7e9 + rng.normal(0, 1000, steps + 1)
        obs = np.stack([clock, rng.integers(3, size=steps + 1)], axis=1)
        episodes.append(walk(rng, steps, obs, masked=True))
    return Dataset.from_episodes(episodes, ACTIONS, features=named)


KINDS: dict[str, tuple[Callable[[], Dataset], int]] = {
    "pixels": (images, 1),
    "stacked": (images, 4),
    "masked": (lambda: images(masked=True), 2),
    "features": (columns, 1),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", first_and_slow(["rbve", "dqn", "bcq"]))
def test_disk_equals_memory(
    name: str, kind: str, small_job: Callable[..., Spec], tmp_path: Path
) -> None:
    make, stack = KINDS[kind]
    write(make(), tmp_path / "data")
    data = load(tmp_path / "data")
    plan = {"steps": 150, "every": 40, "stack": stack, "env": None}
    found = {}
    for rows in ("memory", "disk"):
        job = small_job(name, {**plan, "rows": rows}, target_period=23, seed=2)
        train_members([job], [data], [tmp_path / rows])
        found[rows] = read_tensors(tmp_path / rows / POLICY)[0]["weights"]
    # Two programs may order sums differently; other batches would differ in the first digit.
    np.testing.assert_allclose(found["disk"], found["memory"], rtol=0, atol=2e-5)


@pytest.mark.parametrize("stop", [40, 80])
def test_resumed_equals_uninterrupted(
    stop: int,
    small_job: Callable[..., Spec],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Chunks of 7 updates: they end neither with the drawn blocks nor with the intervals.
    monkeypatch.setattr(stream, "CHUNK_BYTES", 7 * 16 * (2 * 4 * 36 + 36) + 1)
    job = small_job(
        "rbve",
        {"steps": 130, "every": 40, "stack": 4, "rows": "disk", "env": None, "batch_size": 16},
        target_period=23,
    )
    data = images()
    train_members([job], [data], [tmp_path / "whole"])

    def stop_there(progress: Progress) -> None:
        if progress.step == stop:
            raise Stopped

    with pytest.raises(Stopped):
        train_members([job], [data], [tmp_path / "cut"], stop_there)
    train_members([job], [data], [tmp_path / "cut"])
    whole, cut = (read_tensors(tmp_path / kind / CHECKPOINT) for kind in ("whole", "cut"))
    assert whole[1] == cut[1]
    for key, value in whole[0].items():
        np.testing.assert_array_equal(value, cut[0][key])
    assert (tmp_path / "whole/rows.jsonl").read_bytes() == (
        tmp_path / "cut/rows.jsonl"
    ).read_bytes()
    assert not [thread for thread in threading.enumerate() if thread.name == stream.THREAD]


def test_frames_stay_within_their_episode() -> None:
    def episode(first: int, steps: int) -> Episode:
        obs = first + np.arange(steps + 1, dtype=np.float32)[:, None]
        return Episode.from_steps(obs, [0] * steps, [0.0] * steps, True)

    data = Dataset.from_episodes([episode(10, 3), episode(20, 1)], 1)  # rows 0–3 and 4–5
    starts = first_rows(data)
    rows = np.array([0, 2, 3, 4, 5])
    found = frames(data, rows, starts[rows], 3)[:, :, 0]
    assert found.tolist() == [
        [0, 0, 10],
        [10, 11, 12],
        [11, 12, 13],
        [0, 0, 20],  # not the episode before
        [0, 20, 21],
    ]


def test_stacked_frames_are_joined_along_the_last_axis() -> None:
    data = images()
    packed = table.transition_table([data], View(), "state", stack=3, in_memory=False)
    picked = packed.columns[0].pick(np.array([2, 5]))
    obs = packed.items.join(jnp.asarray(picked.frames[:, 0]))
    batch = packed.items.batch(picked, np.float32(1))
    assert obs.shape == (2, 6, 6, 3)
    for item in range(2):
        for channel in range(3):
            np.testing.assert_array_equal(
                obs[item, :, :, channel], picked.frames[item, 0, channel, :, :, 0]
            )
    decisions = data.action[data.action >= 0]  # every one trains
    assert batch.action.tolist() == decisions[[2, 5]].tolist()


def test_large_data_stays_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    data = images()
    store = table.transition_table([data], View(), "state").store
    held = sum(column.nbytes for column in store if column is not None)
    assert store.frames.nbytes == data.obs.nbytes  # bytes, each frame once
    monkeypatch.setattr(table, "IN_MEMORY", held)
    assert table.transition_table([data], View(), "state").store is not None
    monkeypatch.setattr(table, "IN_MEMORY", held - 1)
    assert table.transition_table([data], View(), "state").store is None


def test_members_with_different_data_on_disk(
    small_job: Callable[..., Spec], tmp_path: Path
) -> None:
    """Each equals the same run done alone."""
    plan = {"steps": 60, "every": 30, "rows": "disk", "env": None}
    halves = images().split(0.5)
    jobs = [small_job("bve", plan, seed=seed) for seed in (0, 1)]
    train_members(jobs, halves, [tmp_path / "a", tmp_path / "b"])
    train_members(jobs[1:], halves[1:], [tmp_path / "alone"])
    together, alone = (read_tensors(tmp_path / name / POLICY)[0] for name in ("b", "alone"))
    np.testing.assert_array_equal(together["weights"], alone["weights"])


def test_an_error_while_picking_reaches_the_caller() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("the disk is gone")

    ahead = Ahead(items(), 2, jax.devices()[0])
    assert next(ahead) == 1
    with pytest.raises(ValueError, match="the disk is gone"):
        next(ahead)
    ahead.close()


def test_the_thread_stays_a_few_items_ahead_and_stops() -> None:
    made = []

    def items() -> Iterator[int]:
        for item in range(1000):
            made.append(item)
            yield item

    ahead = Ahead(items(), 2, jax.devices()[0])
    assert [next(ahead) for _ in range(3)] == [0, 1, 2]
    ahead.close()
    assert len(made) <= 6


@pytest.mark.parametrize("chosen", [False, True])
def test_hints_cover_the_rows_that_are_read(
    chosen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "LARGE", 0)
    write(images(), tmp_path / "data")
    data = load(tmp_path / "data")
    if chosen:  # a selection that stays on disk
        data = data.select(np.arange(data.num_episodes)[::-1], "turned")
        assert isinstance(data.obs, dataset.MappedRows)
    columns = table.transition_table([data], View(), "state", stack=3, in_memory=False).columns[0]
    ahead = ReadAhead(data.obs)
    hints: list[tuple[int, int]] = []

    class Spy:
        def madvise(self, option: int, start: int, length: int) -> None:
            assert option == mmap.MADV_WILLNEED
            assert start % mmap.PAGESIZE == 0
            hints.append((start, start + length))

    ahead._map = Spy()
    monkeypatch.setattr(mmap, "PAGESIZE", 1)  # a page of one byte: hints name rows exactly
    index = np.array([7, 100])
    columns.expect(ahead, index)
    size = 36
    wanted = []
    named = NUMBERS.unpack(columns.numbers[index])
    for row, last in zip(named["row"], named["next_row"], strict=True):
        first = max(row - 2, first_rows(data)[row])
        places = data.obs.rows if chosen else np.arange(len(data.action))
        wanted.append((int(places[first]) * size, (int(places[last]) + 1) * size))
    assert hints == sorted(wanted)
