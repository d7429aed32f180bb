"""A Log is a file of rows as Arrow batches. Here: text files of values with a sign between them."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from rbve.data.features import NULLS, Features
from rbve.data.logs.roles import LogOptions
from rbve.data.logs.types import TextColumn, cleaned
from rbve.data.source import Report

# What Arrow, and Python beneath it, raise on files that are not what they claim.
DAMAGE = (pa.ArrowException, OSError, UnicodeError, OverflowError, MemoryError, EOFError)
COMPRESSION = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
BLOCK = 1 << 22  # bytes parsed at a time
PIECE = 1 << 16  # bytes read at a time in search of the header
MAX_HEADER = 1 << 22  # bytes; a longer one is no header
_ASCII = bytes(code if code < 128 else ord("?") for code in range(256))
_LINE_END = re.compile(rb"\n|\r(?!$)")
_SIGNS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}  # looked for
_ROWS = 50  # that have to agree with the header on the sign


class Own(NamedTuple):
    """What a log written by this library says about itself."""

    actions: tuple[str, ...]
    observation: tuple[str, ...]  # columns, one per feature, or the one of arrays
    shape: tuple[int, ...]
    dtype: np.dtype
    features: Features | None
    provenance: dict[str, Any]


class Log(Protocol):
    """What a file format has to offer."""

    path: Path
    format: str
    names: list[str]  # of columns, in the file's order
    types: dict[str, pa.DataType]  # of those columns whose type is known
    typed: bool  # False: text, whose types the survey settles
    own: Own | None
    shape: tuple[int, ...] | None  # of arrays, where the file says so
    total: int  # what position() reaches

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Rows of the columns, of text as the types settled on."""

    def position(self) -> int: ...

    def place(self, row: int) -> str:
        """Where a person finds the row."""


def _delimiter(start: str, options: LogOptions) -> tuple[str, list[str]]:
    """(the sign between the fields of a file that starts like this, notes)."""
    if options.sign is not None:
        return options.sign, []
    sign = max(_SIGNS, key=lambda sign: _evidence(start, sign, options))  # the first of equals
    note = f"fields are separated by {_SIGNS[sign]}; pass --delimiter if that is wrong"
    return sign, [] if sign == "," else [note]


def _evidence(start: str, sign: str, options: LogOptions) -> tuple[bool, bool, int]:
    """(the header names action and reward; rows are as long as it is; fields). More is better."""
    lines = start.splitlines()[:-1] or [start]  # the last one may be cut off
    try:
        records = csv.reader(io.StringIO("\n".join(lines), newline=""), delimiter=sign)
        header, *rows = islice(filter(None, records), _ROWS + 1)
    except (csv.Error, ValueError):  # ValueError: not even a header
        return False, False, 0
    if len(header) == 1:
        return False, False, 1
    needed = {options.action or "action", options.reward or "reward"}
    agree = all(len(row) == len(header) for row in rows)
    return needed <= {name.strip() for name in header}, agree, len(header)


class _Counted(io.RawIOBase):
    """A stream that counts its bytes as they pass."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.bytes = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data: bytes = self.stream.read(size)
        self.bytes += len(data)
        return data

    def close(self) -> None:
        self.stream.close()
        super().close()


class _Lines(_Counted):
    """Counts lines, blank ones at the end apart, and keeps back bytes that are not UTF-8."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self.lines = self._blank = 0
        self.undecodable: tuple[int, bytes] | None = None  # the first: line from 0, bytes
        self._split = b""  # a sign of which only the first bytes were read yet

    def read(self, size: int = -1) -> bytes:
        data = self._split
        while True:  # until there is a whole sign to return
            fresh = super().read(size - len(data) if size > 0 else size)
            data += fresh
            if not fresh or len(data) > 3:
                break
        try:
            _, whole = codecs.utf_8_decode(data, "strict", not fresh)
        except UnicodeDecodeError as error:
            line = self.lines + self._blank + data.count(b"\n", 0, error.start)
            begin = max(data.rfind(b"\n", 0, error.start) + 1, error.start - 20)
            excerpt = data[begin : error.start + 20].splitlines()[0]
            self.undecodable = self.undecodable or (line, excerpt)
            data = data.translate(_ASCII)
            whole = len(data)
        self._split = data[whole:]
        data = data[:whole]
        body = data.rstrip(b"\r\n")
        if body:
            self.lines += self._blank + body.count(b"\n")
            self._blank = 0
        self._blank += data.count(b"\n", len(body))
        return data


class TextLog:
    """A CSV file as a Log. Its types are settled by the survey, which reads `texts`."""

    format = "csv"
    typed = False
    own: Own | None = None
    shape: tuple[int, ...] | None = None

    def __init__(self, path: Path, options: LogOptions, report: Report) -> None:
        self.path, self.options, self.report = path, options, report
        self.types: dict[str, pa.DataType] = {}
        self.columns: dict[str, TextColumn] = {}  # how their texts are read
        self.total = path.stat().st_size
        self.lines_are_rows = True
        self.notes: list[str] = []
        self._compressed: _Counted | None = None
        self._ragged: list[Any] = []
        if not self.total:
            report.fatal("empty file", "is empty; a log needs a header and one row per decision")
        self.names = self._header()
        report.place = self.place

    def position(self) -> int:
        return self._compressed.bytes if self._compressed is not None else 0

    def place(self, row: int) -> str:
        return f"line {row + 2}" if self.lines_are_rows else f"row {row}"

    def _open(self) -> _Lines:
        self._compressed = _Counted(open(self.path, "rb"))  # noqa: SIM115 - closed by its reader
        kind = COMPRESSION.get(self.path.suffix)
        if kind is None:
            return _Lines(self._compressed)
        return _Lines(pa.CompressedInputStream(pa.PythonFile(self._compressed, "r"), kind))

    def _header(self) -> list[str]:
        try:
            with self._open() as stream:
                start = b""
                while not _LINE_END.search(start) and len(start) < MAX_HEADER:
                    if not (more := stream.read(PIECE)):
                        break
                    start += more
        except DAMAGE as error:
            self.report.damage(error, -1)
            raise ValueError(f"{self.path}: not even its header can be read") from None
        if b"\0" in start[:200] and stream.undecodable is None:
            stream.undecodable = (0, start[:20])
        self._report_lines(stream)
        if len(start) >= MAX_HEADER and not _LINE_END.search(start):
            self.report.fatal(
                "damaged file",
                f"its first line is longer than {MAX_HEADER:,} bytes, so no header of columns; the "
                "first line names the columns",
            )
        text = start.removeprefix(codecs.BOM_UTF8).decode()
        self.delimiter, self.notes = _delimiter(text, self.options)
        records = csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter)
        try:
            blank, record = next(((n, each) for n, each in enumerate(records) if each), (0, []))
        except csv.Error as error:
            self.report.fatal("damaged file", f"its first line is no header of columns ({error})")
        if not record:
            self.report.fatal("empty file", "holds no header; the first line names the columns")
        self.lines_are_rows = blank == 0
        self._skip = blank + 1  # records before the first row
        return [name.strip() for name in record]

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for block in self.texts(columns):
            texts = {name: cleaned(block.column(name)) for name in columns}
            yield pa.record_batch(
                {name: self.columns[name].cast(texts[name], self.types[name]) for name in columns}
            )

    def texts(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Blocks of rows, every column as text."""
        rows = 0
        stream = self._open()
        try:
            for block in self._reader(stream, columns):
                self._report_lines(stream)
                if len(block):
                    yield block.rename_columns(list(columns))
                    rows += len(block)
            self._report_lines(stream)
            self.lines_are_rows &= stream.lines == rows + self._skip - 1
        except DAMAGE as error:
            self._report_lines(stream)
            self.report.damage(error, rows)
        finally:
            stream.close()

    def _report_lines(self, stream: _Lines) -> None:
        """What is wrong with lines that were cut into fields."""
        if stream.undecodable is not None:
            line, excerpt = stream.undecodable
            self.report.unreadable(
                "undecodable text",
                f"line {line + 1}: not UTF-8 text ({excerpt!r}); export the file again as UTF-8",
            )
        for row in self._ragged:
            commas = ", decimal commas too" if self.delimiter == "," else ""
            self.report.unreadable(
                "ragged row",
                f"line {row.number}: {row.actual_columns} fields, and the header names "
                f"{row.expected_columns}; quote fields that hold {self.delimiter!r}{commas}",
            )
        self._ragged.clear()

    def _reader(self, stream: _Lines, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        # Columns go by number within Arrow, which wants different names.
        keys = [str(index) for index in range(len(self.names))]
        convert = arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(keys, pa.string()),
            include_columns=[keys[self.names.index(name)] for name in columns],
            null_values=list(NULLS),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        read = arrow_csv.ReadOptions(
            use_threads=False, block_size=BLOCK, column_names=keys, skip_rows_after_names=self._skip
        )

        def skip(row: Any) -> str:
            self._ragged.append(row)
            return "skip"

        parse = arrow_csv.ParseOptions(
            delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=skip
        )
        return iter(arrow_csv.open_csv(stream, read, parse, convert))
