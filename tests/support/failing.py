"""Algorithms whose code fails."""

from __future__ import annotations

from pathlib import Path


def failing_algorithm(folder: Path) -> Path:
    """A file of one whose loss raises LookupError."""
    file = folder / "mine.py"
    file.write_text(
        "from typing import NamedTuple\n"
        "HEAD, BOOTSTRAP = 'q', 'pair'\n"
        "class Config(NamedTuple): pass\n"
        "def loss(views, batch, config, options, td, key): raise LookupError('no such thing')\n"
    )
    return file
