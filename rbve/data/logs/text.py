"""Text files of comma-separated values: their rows, and the types of their columns.

Text has no types, so they are settled over the whole file before anything else: a column is a
number only if it is one in every row.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv as arrow_csv

from rbve.data.logs.kinds import NULLS, Seen, Settler, cast
from rbve.data.logs.log import DAMAGE, Own, Report
from rbve.data.logs.options import Options
from rbve.data.logs.roles import Roles

BLOCK = 1 << 22  # bytes parsed at a time
COMPRESSION = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
PIECE = 1 << 16  # bytes read at a time in search of the header
MAX_HEADER = 1 << 22  # bytes; a longer one is no header


class Counted(io.RawIOBase):
    """A stream that counts bytes and lines as they pass; blank lines at the end do not count."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.bytes = self.lines = self._blank = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self.stream.read(size)
        self.bytes += len(data)
        body = data.rstrip(b"\r\n")
        if body:
            self.lines += self._blank + body.count(b"\n")
            self._blank = 0
        self._blank += data.count(b"\n", len(body))
        return data

    def close(self) -> None:
        self.stream.close()
        super().close()


class Header(NamedTuple):
    names: list[str]
    skip: int  # records before the first row


class TextLog:
    """A CSV file as a Log."""

    format = "csv"
    typed = False
    own: Own | None = None
    shape: tuple[int, ...] | None = None

    def __init__(self, path: Path, report: Report) -> None:
        self.path, self.report = path, report
        self.types: dict[str, pa.DataType] = {}
        self.total = path.stat().st_size
        self.compressed: Counted | None = None
        self.lines_are_rows = True
        self.ragged: list[Any] = []
        if not self.total:
            report.fatal("empty file", "is empty; a log needs a header and one row per decision")
        header = self.header()
        self.names, self.skip = header.names, header.skip
        report.place = self.place

    def position(self) -> int:
        return self.compressed.bytes if self.compressed is not None else 0

    def place(self, row: int) -> str:
        return f"line {row + 2}" if self.lines_are_rows else f"row {row}"

    def open(self) -> Counted:
        self.compressed = Counted(open(self.path, "rb"))  # noqa: SIM115 - closed by its reader
        kind = COMPRESSION.get(self.path.suffix)
        if kind is None:
            return self.compressed
        return Counted(pa.CompressedInputStream(pa.PythonFile(self.compressed, "r"), kind))

    def header(self) -> Header:
        try:
            with self.open() as stream:
                start = b""
                while b"\n" not in start and len(start) < MAX_HEADER:
                    if not (more := stream.read(PIECE)):
                        break
                    start += more
        except DAMAGE as error:
            self.report.damage(error, -1)
            raise ValueError(f"{self.path}: not even its header can be read") from None
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in start[:200]:
            self.report.fatal("undecodable text", "is not UTF-8 text; export it again as UTF-8")
        text = start.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
        records = csv.reader(io.StringIO(text, newline=""))
        try:
            skip, record = next(((n, each) for n, each in enumerate(records) if each), (0, []))
        except csv.Error as error:
            self.report.fatal("damaged file", f"its first line is no header of columns ({error})")
        if not record:
            self.report.fatal("empty file", "holds no header; the first line names the columns")
        names = [name.strip() for name in record]
        if any("\udc80" <= sign <= "\udcff" for name in names for sign in name):
            self.report.fatal(
                "undecodable text",
                "the header is not UTF-8 text; export it again as UTF-8",
            )
        self.lines_are_rows = skip == 0
        return Header(names, skip + 1)

    def settle(self, roles: Roles, options: Options) -> list[str]:
        columns = roles.columns
        seen = {name: Seen() for name in columns}
        rows = 0
        for block in self.texts(columns):
            for name in columns:
                seen[name].add(block.column(name), rows)
            rows += len(block)
        if not rows:
            self.report.fatal("empty file", "holds a header and no row; a log needs decisions")
        settler = Settler(roles, options, self.report)
        self.types = {name: settler.type(name, seen[name]) for name in columns}
        return []

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for block in self.texts(columns):
            yield pa.record_batch(
                [cast(block.column(name), self.types[name]) for name in columns], list(columns)
            )

    def texts(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Blocks of rows, every column as text."""
        rows = 0
        stream = self.open()
        try:
            for block in self.reader(stream, columns):
                self.report_ragged()
                if len(block):
                    yield self.decoded(block, columns, rows)
                    rows += len(block)
            self.lines_are_rows &= stream.lines == rows + self.skip - 1
        except DAMAGE as error:
            self.report_ragged()
            self.report.damage(error, rows)
        finally:
            stream.close()

    def decoded(self, block: pa.RecordBatch, columns: Sequence[str], first: int) -> pa.RecordBatch:
        found = []
        for name, column in zip(columns, block.columns, strict=True):
            try:
                found.append(column.cast(pa.string()))
            except pa.ArrowInvalid:
                found.append(self.repaired(name, column, first))
        return pa.record_batch(found, list(columns))

    def repaired(self, name: str, column: pa.Array, first: int) -> pa.Array:
        """Report the text that is not UTF-8, and read on with signs in its place."""
        texts = []
        for row, value in enumerate(column.to_pylist()):
            text = None if value is None else value.decode("utf-8", "replace")
            if text is not None and text.encode() != value:
                self.report.row(
                    "undecodable text",
                    first + row,
                    f"column {name!r} is not UTF-8 text ({value[:20]!r}); export it again as UTF-8",
                )
            texts.append(text)
        return pa.array(texts, pa.string())

    def report_ragged(self) -> None:
        for row in self.ragged:
            self.report.fault(
                "ragged row",
                f"line {row.number}: {row.actual_columns} fields, and the header names "
                f"{row.expected_columns}; quote fields that hold commas",
            )
        self.ragged.clear()

    def skip_ragged(self, row: Any) -> str:
        self.ragged.append(row)
        return "skip"

    def reader(self, stream: Counted, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        # Columns go by number within Arrow, which wants different names.
        keys = [str(index) for index in range(len(self.names))]
        wanted = [keys[self.names.index(name)] for name in columns]
        convert = arrow_csv.ConvertOptions(
            column_types={key: pa.binary() for key in keys},
            include_columns=wanted,
            null_values=NULLS,
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
            newlines_in_values=True, invalid_row_handler=self.skip_ragged
        )
        return iter(arrow_csv.open_csv(stream, read, parse, convert))
