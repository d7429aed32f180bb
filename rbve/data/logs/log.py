"""A Log: a file of rows as the readers see it, and the reporter of what is wrong in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np
import pyarrow as pa

from rbve.data.features import Features
from rbve.data.logs.options import Options
from rbve.data.source import Fault, OnFault

# What Arrow, and Python beneath it, raise on files that are not what they claim.
DAMAGE = (pa.ArrowException, OSError, UnicodeError, OverflowError, MemoryError, EOFError)


class Own(NamedTuple):
    """What a log written by this library says about itself."""

    actions: tuple[str, ...]
    observation: tuple[str, ...]  # columns, one per feature, or the one of arrays
    shape: tuple[int, ...]
    dtype: np.dtype
    features: Features | None
    provenance: dict[str, Any]


class Log(Protocol):
    path: Path
    format: str
    names: list[str]  # of columns, in the file's order
    types: dict[str, pa.DataType]  # of those columns whose type is known
    typed: bool  # False: text, whose numbers have no width of their own
    own: Own | None
    shape: tuple[int, ...] | None  # of arrays, where the file says so
    total: int  # what position() reaches

    def settle(self, roles: Any, options: Options) -> list[str]:
        """Find the types of the columns in use; returns notes."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]: ...

    def position(self) -> int: ...

    def place(self, row: int) -> str:
        """Where a person finds the row."""


class Report:
    """Passes each fault on, once, as the file and a line about it."""

    def __init__(self, path: Path, on_fault: OnFault) -> None:
        self.path, self.on_fault = path, on_fault
        self.place: Callable[[int], str] = lambda row: f"row {row}"
        self.said: set[str] = set()
        self.unread: list[str] = []  # what could not be read as it stands

    def fault(self, kind: str, text: str) -> None:
        text = one_line(text)
        if text not in self.said:
            self.said.add(text)
            self.on_fault(Fault(kind, f"{self.path}: {text}"))

    def unreadable(self, kind: str, text: str) -> None:
        """For what is there and was not understood; `stop` before anything rests on it."""
        self.unread.append(one_line(text))
        self.fault(kind, text)

    def stop(self) -> None:
        """Refuse what was unreadable, also where faults are collected."""
        if self.unread:
            more = f" ({len(self.unread) - 1} more like it)" if len(self.unread) > 1 else ""
            raise ValueError(f"{self.path}: {self.unread[0]}{more}")

    def fatal(self, kind: str, text: str) -> NoReturn:
        """For what leaves nothing to read on with."""
        self.fault(kind, text)
        raise ValueError(f"{self.path}: {one_line(text)}")

    def row(self, kind: str, row: int, text: str, like_it: int = 0) -> None:
        more = f" ({like_it} more rows like it)" if like_it else ""
        self.fault(kind, f"{self.place(row)}: {text}{more}")

    def rows(self, kind: str, wrong: np.ndarray, first: int, text: Callable[[int], str]) -> None:
        """The first row that is wrong, counted from `first`; `text` takes its index in `wrong`."""
        if wrong.any():
            index = int(np.argmax(wrong))
            self.row(kind, first + index, text(index), int(wrong.sum()) - 1)

    def damage(self, error: BaseException, row: int) -> None:
        """`row` is the first that could not be read."""
        words = str(error).split("\n")[0] or type(error).__name__
        self.fault(
            "damaged file",
            f"cannot be read from {self.place(row)} on ({words}); the file is cut off or damaged, "
            "copy or export it again",
        )


def one_line(text: str) -> str:
    """Names and values of a file may hold anything."""
    return " ".join(text.splitlines())
