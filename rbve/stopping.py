"""Stopping work that runs in other threads: they look between two steps, save, and end.

A thread that the interpreter's end finds inside a compiled program brings the process down, so
whoever started threads asks them to stop and waits for them.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_asked = threading.Event()


class Stopped(Exception):
    """Raised in the thread that stops."""


def check() -> None:
    """For work that takes long: called wherever it can be left."""
    if _asked.is_set():
        raise Stopped


def ask() -> None:
    """For signal handlers: what they raise can get lost, in a callback of an import for example."""
    _asked.set()


@contextmanager
def asked() -> Iterator[None]:
    """While others are to stop."""
    before = _asked.is_set()
    _asked.set()
    try:
        yield
    finally:
        if not before:
            _asked.clear()


def clear() -> None:
    _asked.clear()
