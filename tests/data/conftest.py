"""Logs as files of both kinds, and a native store."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.stores import numbered_dataset

from rbve.data.formats import write

Make = Callable[..., Path]


@pytest.fixture(params=["csv", "parquet"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Writes columns of equal length as a file; None is an empty cell."""

    def write_log(**columns: list[Any]) -> Path:
        path = tmp_path / f"log.{request.param}"
        if request.param == "parquet":
            pq.write_table(pa.table(columns), path)
            return path
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
        return path

    return write_log


@pytest.fixture
def store(tmp_path: Path) -> Path:
    write(numbered_dataset(12), tmp_path / "data")
    return tmp_path / "data"
