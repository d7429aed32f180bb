"""Parquet log: one row per decision, columns by name.

Columns and their roles: rbve.data.logs. Files written here say what they hold, so that they read
back exactly and without a flag.
"""

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rbve.data.dataset import Dataset
from rbve.data.formats._tables import observation_names, write_file
from rbve.data.logs import LogOptions, read_log
from rbve.data.logs.resolve import (
    DAMAGE,
    Log,
    Own,
    bare,
    is_array,
    is_category,
    is_mask,
    is_number,
)
from rbve.data.manifest import SCHEMA, facts_of, is_names, read_facts
from rbve.data.pages import absurdity
from rbve.data.source import OnFault, Report, Source, refuse

__all__ = ["SUFFIX", "Options", "read", "recognises", "write"]

Options = LogOptions
SUFFIX = ".parquet"
_SUFFIXES = (SUFFIX, ".pq")
_KEY = b"rbve"  # of the file's metadata
_MOST_NUMBERS = 1 << 31  # of one observation
MAX_ROWS = 1 << 16  # of a batch
BATCH_BYTES = 1 << 24  # of a batch, about
_TEXT = ("delimiter", "decimal", "time_format")  # options for files without types
_BUFFER = 1 << 20  # bytes read at a time from each column


def recognises(path: Path) -> bool:
    return path.name.lower().endswith(_SUFFIXES) and path.is_file()


def read(path: Path, options: LogOptions | None = None, on_fault: OnFault = refuse) -> Source:
    report = Report(path, on_fault)
    options = options or LogOptions()
    return read_log(_ParquetLog(path, options, report), options, report)


def open_log(path: Path, options: LogOptions, report: Report) -> Log:
    """Rows as they stand in the file."""
    return _ParquetLog(path, options, report)


class _ParquetLog(Log):
    format = "parquet"

    def __init__(self, path: Path, options: LogOptions, report: Report) -> None:
        self.path, self.report = path, report
        self.notes: list[str] = []
        for name in _TEXT:
            if getattr(options, name) is not None:
                flag = name.replace("_", "-")
                raise ValueError(f"{path}: --{flag} is a choice for CSV logs; Parquet has types")
        if not path.stat().st_size:
            report.fatal("empty file", "is empty; a log needs one row per decision")
        try:
            with self.open() as file:
                schema = file.schema_arrow
                self.total = file.metadata.num_rows
                self.row_bytes = sum(
                    file.metadata.row_group(group).total_byte_size
                    for group in range(file.num_row_groups)
                ) // max(1, self.total)
        except DAMAGE as error:
            words = str(error).split("\n")[0]
            report.fatal("damaged file", f"not a whole Parquet file ({words}); copy it again")
        if not self.total:
            report.fatal("empty file", "holds no row; a log needs one row per decision")
        self.names = list(schema.names)
        self.types = {each.name: getattr(each.type, "storage_type", each.type) for each in schema}
        self.read_rows = 0
        own = _own_facts(schema.metadata or {}, str(path))
        fits = own is not None and set(own.observation) <= set(self.names)
        self.shape = own.shape if own is not None and own.features is None else None
        self.own = own if fits and options == LogOptions() else None
        if self.own is not None:
            _refuse_other_types(self.own, self.types, report)

    def open(self, texts: Sequence[str] = ()) -> pq.ParquetFile:
        """`texts` are columns whose values are read once each and stand by number in rows."""
        return pq.ParquetFile(
            self.path, buffer_size=_BUFFER, pre_buffer=False, read_dictionary=list(texts)
        )

    def position(self) -> int:
        return self.read_rows

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        kinds = [self.types[name] for name in columns]
        # Of a row in memory, about; pages on disk may be far smaller where values repeat.
        row = sum(kind.list_size * 8 for kind in kinds if pa.types.is_fixed_size_list(kind))
        size = min(MAX_ROWS, max(1, BATCH_BYTES // max(1, row, self.row_bytes)))
        self.read_rows = 0
        texts = [name for name in columns if _is_text(self.types[name])]
        try:
            with self.open(texts) as file:
                if reason := absurdity(file.metadata, self.path.stat().st_size, columns):
                    self.report.fatal(
                        "damaged file",
                        f"{reason}; write it again with smaller row groups, or copy it again",
                    )
                for batch in file.iter_batches(size, columns=list(columns), use_threads=False):
                    batch.validate(full=True)
                    # In as many pieces as a long text needs that stands in every row of it.
                    longest = sum(
                        pc.max(pc.binary_length(column.dictionary)).as_py() or 0
                        for column in batch.columns
                        if pa.types.is_dictionary(column.type) and _is_text(column.type.value_type)
                    )
                    piece = max(1, BATCH_BYTES // max(1, longest))
                    for start in range(0, len(batch), piece):
                        self.read_rows += len(rows := batch.slice(start, piece))
                        yield written_out(rows, texts)
        except DAMAGE as error:
            self.report.damage(error, self.read_rows)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)


def written_out(batch: pa.RecordBatch, texts: Sequence[str]) -> pa.RecordBatch:
    """With the texts themselves instead of their numbers."""
    columns = {
        name: column.dictionary_decode()
        if name in texts and pa.types.is_dictionary(column.type)
        else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    return pa.record_batch(columns)


def _own_facts(metadata: dict[bytes, bytes], where: str) -> Own | None:
    """What a file written here says about itself; None for files from elsewhere."""
    if _KEY not in metadata:
        return None
    damaged = ValueError(f"{where}: its 'rbve' metadata is not what was written; damaged")
    try:
        facts = json.loads(metadata[_KEY])
    except (ValueError, RecursionError):
        raise damaged from None
    dataset = read_facts(facts, where, damaged)
    columns, shape, dtype = (facts.get(name) for name in ("columns", "shape", "dtype"))
    if facts.get("schema") != SCHEMA or dtype not in _DTYPES or not is_names(columns):
        raise damaged
    if not isinstance(shape, list) or not all(type(size) is int and size > 0 for size in shape):
        raise damaged
    features = dataset["features"]
    if features is not None and shape != [len(features.columns)]:
        raise damaged
    if len(columns) != (1 if features is None else shape[0]):
        raise damaged
    return Own(observation=tuple(columns), shape=tuple(shape), dtype=np.dtype(dtype), **dataset)


_DTYPES = tuple(np.dtype(kind).str for kind in "?bhilqBHILQefd")


def write(source: Source, path: Path, overwrite: bool = False) -> None:
    write_file(source, path, overwrite, _open_writer, flat=False)


def _open_writer(file: Any, first: pa.Table, part: Dataset) -> pq.ParquetWriter:
    facts = {
        **facts_of(part),
        "columns": observation_names(part, flat=False),
        "shape": part.obs_shape,
        "dtype": part.obs.dtype.newbyteorder("<").str,
    }
    schema = first.schema.with_metadata({_KEY: json.dumps(facts).encode()})
    # Statistics of arrays serve no query and take more time than the rest.
    plain = [field.name for field in schema if not pa.types.is_nested(field.type)]
    return pq.ParquetWriter(file, schema, compression="zstd", write_statistics=plain)


def _refuse_other_types(own: Own, types: dict[str, pa.DataType], report: Report) -> None:
    """Refuse a file of our own whose columns no longer hold what its metadata says."""
    kinds = [bare(types[name]) for name in own.observation]
    if own.features is not None:
        fits = all(
            is_category(kind) if feature.kind == "category" else is_number(kind)
            for kind, feature in zip(kinds, own.features.columns, strict=True)
        )
    elif is_array(kinds[0]):
        size = math.prod(own.shape)
        fixed = kinds[0].list_size if pa.types.is_fixed_size_list(kinds[0]) else size
        fits = is_mask(kinds[0]) and fixed == size <= _MOST_NUMBERS
    else:
        fits = not own.shape and (is_number(kinds[0]) or pa.types.is_boolean(kinds[0]))
    action = types.get("action")
    if action is not None and own.actions == tuple(map(str, range(len(own.actions)))):
        fits = fits and is_number(bare(action))
    if not fits:
        report.fatal(
            "damaged file",
            "its columns do not hold what its 'rbve' metadata says; export it again, or remove "
            "the metadata and name the columns",
        )
