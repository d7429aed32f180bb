"""CSV log: one line per decision, columns by name.

Fields between commas, semicolons, tabs or other signs; plain or compressed (.csv.gz, .csv.zst).
Columns and their types: rbve.data.logs. Text holds no more than values: arrays come back as
numbered columns, actions that were never taken not at all.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from rbve.data.dataset import Dataset
from rbve.data.features import NULLS
from rbve.data.formats._tables import write_file
from rbve.data.formats._text import TextColumn, cleaned, settled_types
from rbve.data.logs import LogOptions, read_log
from rbve.data.logs.resolve import DAMAGE, Log
from rbve.data.logs.roles import Roles
from rbve.data.source import OnFault, Report, Source, refuse

__all__ = ["SUFFIX", "Options", "read", "recognises", "write"]

Options = LogOptions
SUFFIX = ".csv"
_COMPRESSION = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_SUFFIXES = tuple(f"{each}{extra}" for each in (SUFFIX, ".tsv") for extra in ("", *_COMPRESSION))
BLOCK = 1 << 22  # bytes parsed at a time
PIECE = 1 << 16  # bytes read at a time in search of the header
MAX_HEADER = 1 << 22  # bytes; a longer one is no header
_ASCII = bytes(code if code < 128 else ord("?") for code in range(256))
_LINE_END = re.compile(rb"\n|\r(?!$)")
_SIGNS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}  # looked for
_ROWS = 50  # that have to agree with the header on the sign


def recognises(path: Path) -> bool:
    return path.name.lower().endswith(_SUFFIXES) and path.is_file()


def read(path: Path, options: LogOptions | None = None, on_fault: OnFault = refuse) -> Source:
    report = Report(path, on_fault)
    options = options or LogOptions()
    return read_log(TextLog(path, options, report), options, report)


def open_log(path: Path, options: LogOptions, report: Report) -> Log:
    """Rows as they stand in the file: texts, or None where nothing stands."""
    return TextLog(path, options, report)


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


class _Lines(io.RawIOBase):
    """Counts lines, blank ones at the end apart, and keeps back bytes that are not UTF-8."""

    def __init__(self, path: Path) -> None:
        self.file, kind = open(path, "rb"), _COMPRESSION.get(path.suffix)  # noqa: SIM115 - see close
        self.stream: Any = self.file
        if kind is not None:
            self.stream = pa.CompressedInputStream(pa.PythonFile(self.file, "r"), kind)
        self.position = 0  # bytes of the file that were read
        self.lines = self._blank = 0
        self.undecodable: tuple[int, bytes] | None = None  # the first: line from 0, bytes
        self._split = b""  # a sign of which only the first bytes were read yet

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.stream.close()
        self.file.close()
        super().close()

    def read(self, size: int = -1) -> bytes:
        data = self._split
        while True:  # until there is a whole sign to return
            fresh = self.stream.read(size - len(data) if size > 0 else size)
            data += fresh
            self.position = self.file.tell()
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


class TextLog(Log):
    """A CSV file as a Log, whose types are settled by the survey."""

    format, typed = "csv", False

    def __init__(self, path: Path, options: LogOptions, report: Report) -> None:
        self.path, self.options, self.report = path, options, report
        self.types: dict[str, pa.DataType] = {}
        self.total = path.stat().st_size
        self._ragged: list[Any] = []
        if not self.total:
            report.fatal("empty file", "is empty; a log needs a header and one row per decision")
        self.names = self._header()
        self.texts = {name: TextColumn(options.decimal or ".") for name in self.names}
        report.place = lambda row: f"line {row + 2}" if self.lines_are_rows else f"row {row}"

    def position(self) -> int:
        return self._stream.position

    def begin(self, roles: Roles) -> None:
        self.roles = roles
        for name in roles["time"]:
            self.texts[name].format = self.options.time_format

    def follow(self, first: Log) -> None:
        assert isinstance(first, TextLog)
        self.texts = first.texts

    def numbers(self, name: str, column: pa.Array, first: int) -> pa.Array | None:
        return self.texts[name].add(column, first)

    def settle(self, report: Report) -> None:
        self.types = settled_types(self.texts, self.roles, self.options, report)

    def cast(self, name: str, texts: pa.Array) -> pa.Array:
        return self.texts[name].cast(texts, self.types.get(name))

    def _open(self) -> _Lines:
        self._stream = _Lines(self.path)
        return self._stream

    def _header(self) -> list[str]:
        try:
            start, stream = b"", self._open()
            with stream:
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
        options = self.options
        # The first of equals, where none is named.
        sign = options.sign or max(_SIGNS, key=lambda sign: _evidence(text, sign, options))
        note = f"fields are separated by {_SIGNS.get(sign)}; pass --delimiter if that is wrong"
        self.delimiter, self.notes = sign, [] if options.sign or sign == "," else [note]
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
        rows, stream = 0, self._open()
        try:
            for block in self._reader(stream, columns):
                self._report_lines(stream)
                if len(block):
                    cells = zip(columns, map(cleaned, block.columns), strict=True)
                    yield pa.record_batch({name: self.cast(name, texts) for name, texts in cells})
                    rows += len(block)
            self._report_lines(stream)
            self.lines_are_rows &= stream.lines == rows + self._skip - 1
        except DAMAGE as error:
            self._report_lines(stream)
            self.report.damage(error, rows)
        finally:
            stream.close()

    def lines_of(self, rows: Sequence[int]) -> list[int]:
        """Where these rows, which rise, stand in the file; of several lines the first."""
        left, lines, row, before = iter(rows), list[int](), -1, 0
        records = csv.reader(self._texts(), delimiter=self.delimiter)
        sought = next(left, None)
        for number, record in enumerate(records):
            if record and number >= self._skip and len(record) == len(self.names):
                row += 1
                if row == sought:
                    lines.append(before + 1)
                    if (sought := next(left, None)) is None:
                        break
            before = records.line_num
        return lines

    def _texts(self) -> Iterator[str]:
        """The lines of the file."""
        rest = ""
        with self._open() as stream:
            while piece := stream.read(BLOCK):
                *lines, rest = (rest + piece.decode("utf-8", "replace")).split("\n")
                yield from (f"{line}\n" for line in lines)
        if rest:
            yield rest

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
