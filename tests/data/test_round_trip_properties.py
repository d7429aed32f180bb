"""Random sets of episodes through every format that can be written."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rbve.data import Dataset, Episode, formats, load, write
from rbve.data.features import Feature, Features
from rbve.data.logs import LogOptions
from rbve.data.source import parts_of

EXACT = [name for name in formats.writable() if name != "csv"]
COLUMNS = ("obs", "action", "reward", "offsets", "terminated", "complete", "episode_return")
OPTIONAL = ("executed", "legal", "propensity")
DTYPES = [np.dtype(kind) for kind in "?bhilBHILefd"]
QUICK = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

# Any text that can be written as UTF-8, and text that has fooled readers before.
ODD = [
    '"',
    ",",
    "a,b",
    '"a"',
    "a\nb",
    "a\r\nb",
    "null",
    "NaN",
    "",
    " a ",
    "0",
    "1.0",
    "True",
    "ü—🎲",
]
texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8), st.sampled_from(ODD)
)


def numbers(dtype: np.dtype) -> Any:
    """Values a column of observations may hold, often at the edges of the type."""
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        edges = [limits.min, limits.max, 0, 1]
        return st.sampled_from(edges) | st.integers(limits.min, limits.max)
    limits = np.finfo(dtype)
    most = float(min(limits.max, np.finfo(np.float32).max))  # networks compute in 32 bits
    edges = [most, -most, limits.tiny, limits.smallest_subnormal, -0.0, 1 / 3]
    edges += [-limits.smallest_subnormal, *([] if dtype.itemsize == 2 else [1e30, -1e30])]
    floats = st.floats(-most, most, allow_nan=False, width=8 * dtype.itemsize)
    return st.sampled_from([float(edge) for edge in edges]) | floats


@st.composite
def feature_sets(draw: Any, names: Any) -> Features:
    columns = []
    for name in draw(st.lists(names, min_size=1, max_size=3, unique=True)):
        if draw(st.booleans()):
            categories = draw(st.lists(names, min_size=1, max_size=4, unique=True))
            columns.append(Feature(name, "category", categories=tuple(categories)))
        else:
            scale = draw(st.floats(5e-324, 1e308))
            columns.append(Feature(name, mean=draw(st.floats(-1e308, 1e308)), scale=scale))
    return Features(tuple(columns))


@st.composite
def datasets(draw: Any, names: Any = texts, least: int = -1) -> Dataset:
    """`names` draws those of actions and features; `least` −1 lets decisions be unknown."""
    features = draw(st.none() | feature_sets(names))
    shape = draw(st.lists(st.integers(1, 4), max_size=3).map(tuple))
    if features is not None:
        shape = (len(features.columns),)
    dtype = draw(st.sampled_from(DTYPES if features is None else DTYPES[1:]))
    actions = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    held = {name for name in OPTIONAL if draw(st.booleans())}
    made = episodes_of(shape, dtype, features, range(least, len(actions)), held)
    episodes = draw(st.lists(made, min_size=1, max_size=5))
    provenance = draw(st.dictionaries(texts, texts | st.integers() | st.none(), max_size=2))
    provenance.pop("finished", None)
    return Dataset.from_episodes(episodes, actions, provenance, features)


@st.composite
def episodes_of(
    draw: Any,
    shape: tuple[int, ...],
    dtype: np.dtype,
    features: Features | None,
    actions: range,
    held: set[str],
) -> Episode:
    rows = 1 + draw(st.integers(1, 4))
    terminated, complete, known = draw(st.tuples(st.booleans(), st.booleans(), st.booleans()))
    # Few drawn values repeated over the array keep hypothesis quick.
    values = np.array(draw(st.lists(numbers(dtype), min_size=1, max_size=6)), dtype)
    obs = np.resize(values, (rows, *shape))
    if features is not None:
        for index, column in enumerate(features.columns):
            if column.kind == "category":
                obs[:, index] = draw(st.integers(0, 2**31)) % (np.arange(rows) + 1) % column.size
    if not known:
        obs[-1] = obs[-2]
    ids = st.lists(st.sampled_from(actions), min_size=rows, max_size=rows)
    action, executed = np.array(draw(ids)), np.array(draw(ids))
    over = terminated or complete
    for column in (action, executed):
        if over or draw(st.booleans()):
            column[-1] = -1
    rewards = np.array(draw(st.lists(numbers(np.dtype("f")), min_size=1, max_size=3)), np.float32)
    reward = np.resize(rewards, rows)
    reward[-1] = 0
    legal = np.resize(draw(st.lists(st.booleans(), min_size=1, max_size=7)), (rows, actions.stop))
    legal[np.arange(rows), np.maximum(action, 0)] = True
    if terminated:
        legal[-1] = draw(st.booleans())
    chances = st.floats(0, 1, exclude_min=True, width=32)
    propensity = np.resize(draw(st.lists(chances, min_size=1, max_size=4)), rows)
    propensity = propensity.astype(np.float32)
    propensity[-1] = draw(st.sampled_from([0.0, 1.0, 0.5]))
    whole = draw(st.none() | st.floats(-1e300, 1e300))
    optional = {"executed": executed, "legal": legal, "propensity": propensity}
    optional = {name: column for name, column in optional.items() if name in held}
    return Episode(
        obs, action, reward, terminated, complete, whole, final_observed=known, **optional
    )


def round_trip(data: Dataset, name: str, options: LogOptions | None = None) -> Dataset:
    suffix = getattr(formats.module(name), "SUFFIX", "")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"data{suffix}"
        write(parts_of(data, part_bytes=1), path, name)  # one part per episode
        found = load(path, options=options)
        found = Dataset(**{**vars(found), "obs": np.array(found.obs)})  # before it is deleted
        return found.part(0, found.num_episodes)


def assert_values(found: Dataset, data: Dataset, columns: tuple[str, ...]) -> None:
    for name in columns:
        expected, column = getattr(data, name), getattr(found, name)
        if expected is None:
            assert column is None, name
            continue
        assert (column.dtype, column.shape) == (expected.dtype, expected.shape), name
        np.testing.assert_array_equal(column, expected, err_msg=name)
    np.testing.assert_array_equal(found.finals_known, data.finals_known)


@pytest.mark.parametrize("name", EXACT)
def test_exact_formats_keep_everything(name: str) -> None:
    @QUICK
    @given(datasets())
    def check(data: Dataset) -> None:
        found = round_trip(data, name)
        assert_values(found, data, (*COLUMNS, *OPTIONAL))
        assert found.obs.tobytes() == data.obs.tobytes()
        assert found.actions == data.actions
        assert found.features == data.features
        found.provenance.pop("finished", None)
        assert found.provenance == data.provenance

    check()


# Text cannot tell names from numbers, nor where blanks belong to a name.
words = texts.map(lambda text: f"x{text.strip()}").filter(lambda text: "\0" not in text)


@QUICK
@given(datasets(words, least=0))
def test_csv_keeps_values(data: Dataset) -> None:
    found = round_trip(data, "csv", LogOptions(actions=data.actions))
    assert_values(found, data, (*COLUMNS[1:], *OPTIONAL))
    assert found.features is not None
    flat = data.obs.reshape(len(data.obs), -1)
    for index, column in enumerate(found.features.columns):
        values = flat[:, index].tolist()
        if column.kind == "category" and data.features is not None:
            names = data.features.columns[index].categories
            values = [column.categories.index(names[int(code)]) for code in values]
        # Whole numbers beyond 2**53 come back as the nearest float.
        assert found.obs[:, index].tolist() == [found.obs.dtype.type(value) for value in values]
