"""Native stores to read, write and damage."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rbve.data.dataset import NO_ACTION, OPTIONAL_COLUMNS, Dataset, Episode
from rbve.data.manifest import EPISODE_COLUMNS, MANIFEST

COLUMNS = ("obs", "action", "reward", *OPTIONAL_COLUMNS, *EPISODE_COLUMNS)
FSYNCS_PER_APPEND = len(COLUMNS) + 1  # every column, then the manifest


def numbered(index: int) -> Episode:
    """An episode whose every number tells where it comes from; every fifth has one step."""
    length = 1 + index % 5
    steps = np.arange(length + 1)
    last = steps == length
    return Episode(
        obs=((7 * index + 31 * steps)[:, None] + np.arange(6)).reshape(-1, 2, 3).astype(np.uint8),
        action=np.where(last, NO_ACTION, (index + steps) % 3).astype(np.int32),
        reward=np.where(last, 0, index + steps / 8).astype(np.float32),
        terminated=index % 2 == 0,
        complete=index % 7 != 6,
        episode_return=index + 0.1,
        final_observed=index % 4 != 3,
        executed=np.where(last, NO_ACTION, (index + steps + 1) % 3).astype(np.int32),
        legal=np.ones((length + 1, 3), np.bool_),
        propensity=(1 / (1 + index + steps)).astype(np.float32),
    )


def numbered_dataset(count: int) -> Dataset:
    return Dataset.from_episodes(map(numbered, range(count)), ["left", "stay", "right"])


def plain(index: int) -> Episode:
    return numbered(index)._replace(executed=None, legal=None, propensity=None)


def assert_same(found: Dataset, expected: Dataset) -> None:
    for name in ("offsets", *COLUMNS):
        if name == "length":
            continue
        name = "finals_known" if name == "final_observed" else name
        ours, theirs = getattr(found, name), getattr(expected, name)
        if theirs is None:
            assert ours is None, name
            continue
        assert ours.dtype == theirs.dtype, name
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
    assert found.actions == expected.actions


def edit(store: Path, change: Callable[[dict[str, Any]], None]) -> None:
    manifest = json.loads((store / MANIFEST).read_text())
    change(manifest)
    (store / MANIFEST).write_text(json.dumps(manifest))
