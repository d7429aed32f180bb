"""Parquet files that hold far more than their bytes: bounded before they are inflated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbve.data import pages
from rbve.data.dataset import Dataset
from rbve.data.formats import parquet
from rbve.data.logs.roles import LogOptions

ROWS = 4000
OPTIONS = LogOptions(episode="episode", action="action", reward="reward", observation=("x",))


def put(path: Path, x: Any, **options: Any) -> Path:
    rows = np.arange(len(x))
    rng = np.random.default_rng(0)
    columns = {
        "episode": rows // 8,
        "action": rng.integers(0, 3, len(x)),
        "reward": rng.random(len(x)),
        "age": rng.random(len(x)),
        "x": x,
    }
    pq.write_table(pa.table(columns), path, compression="zstd", **options)
    return path


def read(path: Path, options: LogOptions = OPTIONS) -> Dataset:
    return Dataset.join(list(parquet.read(path, options).parts))


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("categorical", [True, False])
def test_long_texts_are_taken_a_few_rows_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dictionary: bool, categorical: bool
) -> None:
    words = pa.array(["a" * 5000, "b", "c" * 300])
    numbers = pa.array(np.arange(ROWS, dtype=np.int32) % 3)
    x = pa.DictionaryArray.from_arrays(numbers, words)
    path = put(
        tmp_path / "log.parquet",
        x if categorical else words.take(numbers),
        use_dictionary=dictionary,
    )
    monkeypatch.setattr(parquet, "BATCH_BYTES", 1 << 16)
    sizes = []
    written_out = parquet.written_out

    def watched(batch: pa.RecordBatch, texts: Any) -> pa.RecordBatch:
        whole = written_out(batch, texts)
        sizes.append(whole.nbytes)
        return whole

    monkeypatch.setattr(parquet, "written_out", watched)
    data = read(path)
    assert max(sizes) < 3 << 16
    assert data.features is not None
    assert data.features.columns[0].categories == tuple(words.to_pylist())
    known = data.action >= 0
    assert data.obs[known, 0].tolist() == numbers.to_pylist()


def test_pages_of_air_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(ROWS * 50)), 50)
    path = put(tmp_path / "log.parquet", x, use_dictionary=False)
    assert read(path).obs.shape[1:] == (50,)
    monkeypatch.setattr(pages, "MAX_CHUNK", 1 << 16)
    with pytest.raises(ValueError, match=r"parquet: column 'x.* claims [\d,]+ bytes in .*; write"):
        read(path)
    plain = LogOptions(episode="episode", action="action", observation=("age",), reward="reward")
    assert len(read(path, plain).action), "columns that are not read may hold anything"


def test_values_without_bytes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(ROWS * 50)), 50)
    path = put(tmp_path / "log.parquet", x)
    assert read(path).obs.shape[1:] == (50,)
    monkeypatch.setattr(pages, "MANY_VALUES", 1 << 10)
    monkeypatch.setattr(pages, "MAX_VALUES", 1)
    with pytest.raises(ValueError, match=r"log\.parquet: claims 2[\d,]+ values in [\d,]+ bytes"):
        read(path)
