"""Logs read whole, and what was said about them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from rbve.data import Dataset
from rbve.data.formats import read
from rbve.data.logs import LogOptions
from rbve.data.source import Fault


def joined(path: Path, options: LogOptions | None = None) -> Dataset:
    return Dataset.join(read(path, options=options).parts)


def kinds(path: Path, options: LogOptions | None = None) -> list[str]:
    found: list[Fault] = []
    try:
        list(read(path, options=options, on_fault=found.append).parts)
    except ValueError as error:
        assert not isinstance(error, pa.ArrowException)  # noqa: PT017
        assert str(error).startswith(f"{path}: ")  # noqa: PT017
    return [fault.kind for fault in found]


def joined_with_notes(path: Path, options: LogOptions | None = None) -> tuple[Dataset, list[str]]:
    """Everything a log holds, and the notes about it."""
    source = read(path, options=options)
    return Dataset.join(source.parts), source.notes


def said(notes: list[str], *words: str) -> bool:
    return any(all(word in note for word in words) for note in notes)
