"""Data frames as logs: pandas, polars and whatever else offers Arrow's stream interface."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from rbve.data.formats import option_kinds
from rbve.data.formats._options import choose
from rbve.data.logs import LogOptions, read_log
from rbve.data.logs.resolve import Log
from rbve.data.source import OnFault, Report, Source, refuse

_NAME = "data frame"  # as messages call it
_ROWS = 1 << 16  # of a batch


def is_frame(data: Any) -> bool:
    """Whether it offers Arrow's stream interface."""
    return hasattr(data, "__arrow_c_stream__")


def read(frame: Any, options: Any = None, on_fault: OnFault = refuse) -> Source:
    """The episodes of a frame with one row per decision; `options` as of a Parquet log.

    Raises:
        ValueError: Columns or rows are not what a log needs.
    """
    chosen = choose("parquet", option_kinds(), options) or LogOptions()
    report = Report(Path(_NAME), on_fault)
    return read_log(_FrameLog(frame, report), chosen, report)


class _FrameLog(Log):
    format = "data frame"

    def __init__(self, frame: Any, report: Report) -> None:
        self.path, self.notes = Path(_NAME), list[str]()
        try:
            table = pa.RecordBatchReader.from_stream(frame).read_all()
            self._table = table.cast(pa.schema([_plain(field) for field in table.schema]))
        except (pa.ArrowException, TypeError, ValueError) as error:
            words = (str(error) or type(error).__name__).splitlines()[0]
            report.fatal("damaged file", f"a column that Arrow cannot take ({words})")
        if not self._table.num_rows:
            report.fatal("empty file", "holds no row; a log needs one row per decision")
        self.total, self._read = self._table.num_rows, 0
        self.names = list(self._table.schema.names)
        self.types = {field.name: field.type for field in self._table.schema}

    def position(self) -> int:
        return self._read

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        self._read = 0
        for batch in self._table.select(list(columns)).to_batches(max_chunksize=_ROWS):
            self._read += len(batch)
            yield batch


def _plain(field: pa.Field) -> pa.Field:
    """Texts of one type, of the several that frames have."""
    kind = field.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if kind in (pa.string_view(), pa.large_string()):
        kind = pa.string()
    return pa.field(field.name, kind)
