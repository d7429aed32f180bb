"""From one format to another, part by part."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rbve.data import formats
from rbve.data.dataset import Dataset


def convert(
    src: str | Path,
    dst: str | Path,
    format: str | None = None,
    to: str | None = None,
    options: Any = None,
    overwrite: bool = False,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[str]:
    """Read `src` and write `dst`; returns what the user should know about the data.

    Formats are told by what is there and by the suffix of `dst`, unless named. `on_progress` is
    told how much of the input was read, of how much.
    """
    if Path(src).resolve() == Path(dst).resolve():
        raise ValueError(f"{dst}: is the source itself; choose another path to write to")
    to = to or formats.written_as(Path(dst))
    formats.module(to)  # a slip is told before anything is read
    source = formats.read(src, format, options)

    def watched() -> Iterator[Dataset]:
        for part in source.parts:
            yield part
            on_progress(source.position(), source.total)

    formats.write(dataclasses.replace(source, parts=watched()), dst, to, overwrite)
    return source.notes
