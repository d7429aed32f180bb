"""From one format to another, part by part."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rbve.data import formats, frames
from rbve.data.dataset import Dataset
from rbve.data.source import Source


def convert(
    src: Any,
    dst: str | Path,
    format: str | None = None,
    to: str | None = None,
    options: Any = None,
    overwrite: bool = False,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[str]:
    """As rbve.convert; returns what the user should know. `on_progress` gets (read, total)."""
    target = Path(dst).resolve()
    if not frames.is_frame(src):
        source_path = Path(src).resolve()
        if source_path == target:
            raise ValueError(f"{dst}: is the source itself; choose another path to write to")
        if target.is_relative_to(source_path):
            raise ValueError(f"{dst}: lies within the source; choose a path outside of it")
    # Before the input is read, which may take minutes; writers look closer.
    if not overwrite and target.exists() and (target.is_file() or any(target.iterdir())):
        raise ValueError(f"{dst}: already exists; pass --overwrite or choose another")
    to = to or formats.written_as(Path(dst))
    formats.module(to)  # a slip is told before anything is read
    if frames.is_frame(src):
        source = frames.read(src, options)
    else:
        source = formats.read(src, format, options)

    watched = _watched(source, on_progress)
    formats.write(watched, dst, to, overwrite)
    return source.notes


def _watched(source: Source, on_progress: Callable[[int, int], None]) -> Source:
    """The same, telling how far it was read, also if it is read in pieces."""
    pieces: list[Source] = []

    def parts(each: Source) -> Iterator[Dataset]:
        for part in each.parts:
            yield part
            read = sum(piece.position() for piece in pieces) if pieces else source.position()
            on_progress(read, source.total)

    def watched_pieces() -> list[Source]:
        pieces.extend(source.pieces())
        return [dataclasses.replace(piece, parts=parts(piece)) for piece in pieces]

    return dataclasses.replace(source, parts=parts(source), pieces=watched_pieces)
