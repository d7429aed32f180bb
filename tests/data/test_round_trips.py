"""From every format to every other and back: no value, type, shape or name is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from rbve.data import Dataset, Episode, formats, load, write
from rbve.data.convert import convert
from rbve.data.features import Feature, Features
from rbve.data.logs import LogOptions
from rbve.data.source import parts_of

EXACT = [name for name in formats.writable() if name != "csv"]
COLUMNS = ("obs", "action", "reward", "offsets", "terminated", "complete", "episode_return")
OPTIONAL = ("executed", "legal", "propensity")

NAMES = ("wait", 'give "5 mg", then\nwait', "gib's auf — ü", "2")
FEATURES = Features(
    (
        Feature("blood pressure, mmHg", mean=120.25, scale=1 / 3),
        Feature("ward", "category", categories=("A", 'B "new", north', "ü\nß")),
        Feature("action", mean=-1e-30, scale=1e30),  # a name that logs use for something else
    )
)
F32 = np.finfo(np.float32)


def every_feature() -> Dataset:
    """Each kind of end, alone and in one-step episodes, with every optional column."""
    # length, terminated, complete, next action, final observed, return of the whole episode
    kinds = [
        (3, True, True, -1, True, None),
        (4, False, True, -1, True, None),
        (1, True, True, -1, True, 1e-300),
        (1, False, True, -1, True, None),
        (1, False, False, 2, True, 12.5),
        (2, False, False, 3, True, -0.1),
        (2, False, False, -1, True, 7.0),
        (1, True, False, -1, True, None),
        (3, True, True, -1, False, None),
        (2, False, True, -1, False, 1e300),
        (1, False, False, 1, False, 3.0),
        (1, False, False, -1, False, None),
    ]
    rng = np.random.default_rng(3)
    episodes = []
    for length, terminated, complete, following, known, whole in kinds:
        rows = length + 1
        obs = rng.normal(size=(rows, 3)).astype(np.float32)
        obs[0, 0] = rng.choice([F32.max, F32.tiny / 8, -F32.smallest_subnormal, -0.0])
        obs[:, 1] = rng.integers(3, size=rows)
        action = np.append(rng.integers(4, size=length), following)
        executed = np.append(rng.integers(4, size=length), following)
        legal = rng.random((rows, 4)) < 0.4
        legal[np.arange(rows), np.maximum(action, 0)] = True
        if terminated:
            legal[-1] = False
        if not known:
            obs[-1] = obs[-2]
        propensity = rng.uniform(0.01, 1, rows).astype(np.float32)
        propensity[0] = F32.smallest_subnormal
        reward = np.append(rng.normal(size=length) * 1e30, 0).astype(np.float32)
        episodes.append(
            Episode(
                obs, action, reward, terminated, complete, whole, executed, legal, propensity, known
            )
        )
    provenance = {"source": "a test", "nested": {"numbers": [1, 2.5, None], "text": "ü"}}
    return Dataset.from_episodes(episodes, NAMES, provenance, FEATURES)


def images() -> Dataset:
    """Frames large enough for Minari's JPEG, which must not touch them."""
    rng = np.random.default_rng(4)
    episodes = []
    for length, terminated in ((2, True), (1, False), (3, False)):
        frames = rng.integers(0, 256, (length + 1, 36, 40, 3), dtype=np.uint8)
        actions, rewards = rng.integers(6, size=length), rng.normal(size=length)
        episodes.append(Episode.from_steps(frames, actions, rewards, terminated))
    unseen = episodes[1].obs[[0, 0]]
    episodes.append(episodes[1]._replace(obs=unseen, final_observed=False))
    return Dataset.from_episodes(episodes, 6)


def vectors() -> Dataset:
    rng = np.random.default_rng(5)
    edges = [np.pi, 1e-310, -5e-324, 3.3e38, 1e30, -1e30, 2**53 + 2, -0.0, 0.1 + 0.2, 1 / 3]
    episodes = []
    for length in (1, 5, 2):
        obs = rng.choice(edges, size=(length + 1, 2, 5))
        actions, rewards = rng.integers(3, size=length), rng.normal(size=length)
        episodes.append(Episode.from_steps(obs, actions, rewards, length != 5))
    return Dataset.from_episodes(episodes, ("2", "0", "1"))


def plain() -> Dataset:
    """One decision, one number, one action."""
    return Dataset.from_episodes([Episode.from_steps(np.array([1, 2]), [0], [0.1], True)], 1)


DATASETS: dict[str, Callable[[], Dataset]] = {
    made.__name__: made for made in (every_feature, images, vectors, plain)
}


def assert_same(found: Dataset, given: Dataset) -> None:
    for name in (*COLUMNS, *OPTIONAL):
        expected, column = getattr(given, name), getattr(found, name)
        if expected is None:
            assert column is None, name
            continue
        assert column.dtype == expected.dtype, name
        assert column.shape == expected.shape, name
        np.testing.assert_array_equal(column, expected, err_msg=name)
    assert np.asarray(found.obs).tobytes() == given.obs.tobytes(), "the sign of a zero"
    np.testing.assert_array_equal(found.finals_known, given.finals_known)
    assert found.actions == given.actions
    assert found.features == given.features
    assert found.provenance == {**given.provenance, "finished": True}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A native store of each dataset, written one episode at a time."""
    folder = tmp_path_factory.mktemp("stores")
    for name, made in DATASETS.items():
        write(parts_of(made(), part_bytes=1), folder / name)
    return folder


@pytest.mark.parametrize("made", DATASETS)
@pytest.mark.parametrize(("first", "second"), list(product(EXACT, EXACT)))
def test_nothing_is_lost(stores: Path, tmp_path: Path, first: str, second: str, made: str) -> None:
    path = stores / made
    for number, name in enumerate([first, second, "native"]):
        suffix = getattr(formats.module(name), "SUFFIX", "")
        after = tmp_path / f"{number}{suffix}"
        convert(path, after, to=name)
        assert formats.recognise(after) == name
        path = after
    assert_same(load(path), DATASETS[made]())


def test_every_exact_format_is_there() -> None:
    assert EXACT == ["minari", "minari_arrow", "native", "npz", "parquet"]


def test_the_dataset_holds_every_kind_of_episode() -> None:
    """What the round trips prove depends on it."""
    data = every_feature()
    last = data.action[data.offsets[1:] - 1]
    for kind in product([True, False], repeat=2):
        for known in (True, False):
            chosen = (data.terminated == kind[0]) & (data.complete == kind[1])
            if kind != (True, False):
                assert (chosen & (data.finals_known == known)).any(), (kind, known)
    assert ((last >= 0) & data.finals_known).any()
    assert ((last >= 0) & ~data.finals_known).any()
    assert (data.lengths == 1).sum() == 6
    assert all(getattr(data, name) is not None for name in OPTIONAL)


# CSV keeps values, not shapes and types


@pytest.mark.parametrize("made", DATASETS)
def test_csv_keeps_values(tmp_path: Path, made: str) -> None:
    data = DATASETS[made]()
    if made == "images":  # thousands of columns take a while
        data = replace(data, obs=np.ascontiguousarray(data.obs[:, :2, :3]))
    write(data, tmp_path / "log.csv")
    convert(tmp_path / "log.csv", tmp_path / "back", options=declared(data))
    found = load(tmp_path / "back")
    for name in (*COLUMNS[1:], *OPTIONAL):
        expected = getattr(data, name)
        if expected is None:
            assert getattr(found, name) is None, name
        else:
            assert getattr(found, name).dtype == expected.dtype, name
            np.testing.assert_array_equal(getattr(found, name), expected, err_msg=name)
    np.testing.assert_array_equal(found.finals_known, data.finals_known)
    flat = data.obs.reshape(len(data.obs), -1)
    np.testing.assert_array_equal(found.obs, recoded(flat, data, found))
    assert found.actions == data.actions


def declared(data: Dataset) -> LogOptions:
    """Text does not say which actions there are, nor in which order."""
    return LogOptions(actions=data.actions)


def recoded(flat: np.ndarray, data: Dataset, found: Dataset) -> np.ndarray:
    """Categories by the codes of the log's reader, which sorts them."""
    result = flat.astype(np.float64)
    if data.features is not None:
        assert found.features is not None
        for index, (old, new) in enumerate(
            zip(data.features.columns, found.features.columns, strict=True)
        ):
            if old.kind == "category":
                names = np.array(old.categories)[flat[:, index].astype(int)]
                result[:, index] = [new.categories.index(name) for name in names]
    return result
