"""CSV log: one line per decision, columns by name.

Fields between commas, semicolons, tabs or other signs; plain or compressed (.csv.gz, .csv.zst).
Columns and their types: rbve.data.logs. Text holds no more than values: arrays come back as
numbered columns, actions that were never taken not at all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from rbve.data.dataset import Dataset
from rbve.data.logs import LogOptions, read_log
from rbve.data.logs.table import COMPRESSION, TextLog
from rbve.data.logs.write import write_file
from rbve.data.source import OnFault, Report, Source, refuse

__all__ = ["SUFFIX", "Options", "read", "recognises", "write"]

Options = LogOptions
SUFFIX = ".csv"
_SUFFIXES = tuple(f"{each}{extra}" for each in (SUFFIX, ".tsv") for extra in ("", *COMPRESSION))


def recognises(path: Path) -> bool:
    return path.name.lower().endswith(_SUFFIXES) and path.is_file()


def read(path: Path, options: LogOptions | None = None, on_fault: OnFault = refuse) -> Source:
    report = Report(path, on_fault)
    options = options or LogOptions()
    return read_log(TextLog(path, options, report), options, report)


def write(source: Source, path: Path, overwrite: bool = False) -> None:
    write_file(source, path, overwrite, _CsvWriter, flat=True)


class _CsvWriter(arrow_csv.CSVWriter):
    """Writes numbers so that reading them gives the same: single floats as the doubles they are."""

    def __init__(self, file: Any, first: pa.Table, part: Dataset) -> None:
        features = part.features.columns if part.features is not None else ()
        for name in (*part.actions, *(name for column in features for name in column.categories)):
            if name != name.strip() or not name:
                raise ValueError(
                    f"CSV cannot keep the name {name!r}, which is blank at an end; rename it, or "
                    "write another format"
                )
        kept = ("reward", "propensity")  # read as single floats again
        fields = [
            field.with_type(pa.float64())
            if pa.types.is_floating(field.type) and field.name not in kept
            else field
            for field in first.schema
        ]
        self.schema = pa.schema(fields)
        super().__init__(file, self.schema)
