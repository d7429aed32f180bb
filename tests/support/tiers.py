"""Which cases of a test are in the fast tier."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def first_and_slow(cases: Iterable[Any]) -> list[Any]:
    """The first case; the others are in the slow tier."""
    first, *others = cases
    return [first, *map(slow, others)]


def fast_and_slow(cases: Iterable[Any], fast: Container[Any]) -> list[Any]:
    """The cases in `fast`; the others are in the slow tier."""
    return [case if case in fast else slow(case) for case in cases]


def slow(case: Any) -> Any:
    return pytest.param(case, marks=pytest.mark.slow)
