"""Text files of values with a sign between them: their rows, and the types of their columns.

Text has no types, so they are settled over the whole file before anything else: a column is a
number only if it is one in every row.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv as arrow_csv

from rbve.data.features import NULLS
from rbve.data.logs.dialect import delimiter_of
from rbve.data.logs.kinds import Seen, Settler, cast
from rbve.data.logs.log import DAMAGE, Own, Report
from rbve.data.logs.options import Options
from rbve.data.logs.roles import Roles

ASCII = bytes(code if code < 128 else ord("?") for code in range(256))
BLOCK = 1 << 22  # bytes parsed at a time
COMPRESSION = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
PIECE = 1 << 16  # bytes read at a time in search of the header
LINE_END = re.compile(rb"\n|\r(?!$)")
MAX_HEADER = 1 << 22  # bytes; a longer one is no header


class Counted(io.RawIOBase):
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


class Lines(Counted):
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
            whole = (
                len(data) if data.isascii() else codecs.utf_8_decode(data, "strict", not fresh)[1]
            )
        except UnicodeDecodeError as error:
            line = self.lines + self._blank + data.count(b"\n", 0, error.start)
            begin = max(data.rfind(b"\n", 0, error.start) + 1, error.start - 20)
            found = data[begin : error.start + 20].splitlines()[0]
            self.undecodable = self.undecodable or (line, found)
            data = data.translate(ASCII)
            whole = len(data)
        self._split = data[whole:]
        data = data[:whole]
        body = data.rstrip(b"\r\n")
        if body:
            self.lines += self._blank + body.count(b"\n")
            self._blank = 0
        self._blank += data.count(b"\n", len(body))
        return data


class Header(NamedTuple):
    names: list[str]
    skip: int  # records before the first row


class TextLog:
    """A CSV file as a Log."""

    format = "csv"
    typed = False
    own: Own | None = None
    shape: tuple[int, ...] | None = None

    def __init__(self, path: Path, options: Options, report: Report) -> None:
        self.path, self.options, self.report = path, options, report
        self.types: dict[str, pa.DataType] = {}
        self.total = path.stat().st_size
        self.compressed: Counted | None = None
        self.lines_are_rows = True
        self.ragged: list[Any] = []
        self.notes: list[str] = []
        if not self.total:
            report.fatal("empty file", "is empty; a log needs a header and one row per decision")
        header = self.header()
        self.names, self.skip = header.names, header.skip
        report.place = self.place

    def position(self) -> int:
        return self.compressed.bytes if self.compressed is not None else 0

    def place(self, row: int) -> str:
        return f"line {row + 2}" if self.lines_are_rows else f"row {row}"

    def open(self) -> Lines:
        self.compressed = Counted(open(self.path, "rb"))  # noqa: SIM115 - closed by its reader
        kind = COMPRESSION.get(self.path.suffix)
        if kind is None:
            return Lines(self.compressed)
        return Lines(pa.CompressedInputStream(pa.PythonFile(self.compressed, "r"), kind))

    def header(self) -> Header:
        try:
            with self.open() as stream:
                start = b""
                while not LINE_END.search(start) and len(start) < MAX_HEADER:
                    if not (more := stream.read(PIECE)):
                        break
                    start += more
        except DAMAGE as error:
            self.report.damage(error, -1)
            raise ValueError(f"{self.path}: not even its header can be read") from None
        if b"\0" in start[:200] and stream.undecodable is None:
            stream.undecodable = (0, start[:20])
        self.report_lines(stream)
        if len(start) >= MAX_HEADER and not LINE_END.search(start):
            self.report.fatal(
                "damaged file",
                f"its first line is longer than {MAX_HEADER:,} bytes, so no header of columns; the "
                "first line names the columns",
            )
        text = start.removeprefix(codecs.BOM_UTF8).decode()
        self.delimiter, self.notes = delimiter_of(text, self.options)
        records = csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter)
        try:
            skip, record = next(((n, each) for n, each in enumerate(records) if each), (0, []))
        except csv.Error as error:
            self.report.fatal("damaged file", f"its first line is no header of columns ({error})")
        if not record:
            self.report.fatal("empty file", "holds no header; the first line names the columns")
        names = [name.strip() for name in record]
        self.lines_are_rows = skip == 0
        return Header(names, skip + 1)

    def settle(self, roles: Roles, options: Options) -> list[str]:
        columns = roles.columns
        decimal = self.options.decimal or "."
        seen = {name: Seen(decimal, self.format_of(name, roles)) for name in columns}
        rows = 0
        for block in self.texts(columns):
            for name in columns:
                seen[name].add(block.column(name), rows)
            rows += len(block)
        if not rows:
            self.report.stop()
            self.report.fatal("empty file", "holds a header and no row; a log needs decisions")
        settler = Settler(roles, options, self.report)
        self.types = {name: settler.type(name, seen[name]) for name in columns}
        self.formats = {name: self.format_of(name, roles) for name in columns}
        if settler.unread:
            self.report.unreadable("mixed types", "; ".join(settler.unread))
        self.report.stop()
        return self.notes

    def format_of(self, name: str, roles: Roles) -> str | None:
        return self.options.time_format if name == roles.time else None

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for block in self.texts(columns):
            yield pa.record_batch(
                [self.cast(name, block.column(name)) for name in columns], list(columns)
            )

    def cast(self, name: str, texts: pa.Array) -> pa.Array:
        decimal = self.options.decimal or "."
        return cast(texts, self.types[name], decimal, self.formats[name])

    def texts(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Blocks of rows, every column as text."""
        rows = 0
        stream = self.open()
        try:
            for block in self.reader(stream, columns):
                self.report_lines(stream)
                if len(block):
                    yield block.rename_columns(list(columns))
                    rows += len(block)
            self.report_lines(stream)
            self.lines_are_rows &= stream.lines == rows + self.skip - 1
        except DAMAGE as error:
            self.report_lines(stream)
            self.report.damage(error, rows)
        finally:
            stream.close()

    def report_lines(self, stream: Lines) -> None:
        """What was found wrong with lines while they were cut into fields."""
        if stream.undecodable is not None:
            line, found = stream.undecodable
            self.report.unreadable(
                "undecodable text",
                f"line {line + 1}: not UTF-8 text ({found!r}); export the file again as UTF-8",
            )
        for row in self.ragged:
            commas = ", decimal commas too" if self.delimiter == "," else ""
            self.report.unreadable(
                "ragged row",
                f"line {row.number}: {row.actual_columns} fields, and the header names "
                f"{row.expected_columns}; quote fields that hold {self.delimiter!r}{commas}",
            )
        self.ragged.clear()

    def skip_ragged(self, row: Any) -> str:
        self.ragged.append(row)
        return "skip"

    def reader(self, stream: Lines, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        # Columns go by number within Arrow, which wants different names.
        keys = [str(index) for index in range(len(self.names))]
        wanted = [keys[self.names.index(name)] for name in columns]
        convert = arrow_csv.ConvertOptions(
            column_types={key: pa.string() for key in keys},
            include_columns=wanted,
            null_values=list(NULLS),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        read = arrow_csv.ReadOptions(
            use_threads=False,
            block_size=BLOCK,
            column_names=keys,
            skip_rows_after_names=self.skip,
        )
        parse = arrow_csv.ParseOptions(
            delimiter=self.delimiter,
            newlines_in_values=True,
            invalid_row_handler=self.skip_ragged,
        )
        return iter(arrow_csv.open_csv(stream, read, parse, convert))
