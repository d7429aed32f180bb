"""Which cases of a test are in the fast tier."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first_and_slow(cases: Iterable[Any]) -> list[Any]:
    """The first case; the others are in the slow tier."""
    first, *others = cases
    return [first, *(pytest.param(case, marks=pytest.mark.slow) for case in others)]
