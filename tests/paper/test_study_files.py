"""Files of a study with one field wrong: read, or refused in a line that names the file."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rbve.paper import audits, results

WRONG: tuple[Any, ...] = (None, True, -3, 1.5, "x", [], ["x"], [[]], {}, {"x": {}}, ...)
SPREAD = dict.fromkeys(("mean", "deviation", "low", "q25", "median", "q75", "high"), 1.0)
EXPERIMENT = {
    "jobs": ["bc-1", "bve-2"],
    "longer": ["bc-1-longer"],
    "left_out": {"catch": "the agent did not learn"},
}
AUDITS = {
    "data/catch-0/0": {
        "fingerprint": "ab",
        "verdict": "look",
        "findings": [{"level": "look", "name": "a", "seen": "b", "why": "c", "remedy": "d"}],
        "notes": ["a note"],
        "episodes": 60,
        "transitions": 540,
        "observation": "float32 (10, 5)",
        "actions": {"left": 0.5, "right": 0.5},
        "executed_differs": 0.0,
        "length": SPREAD,
        "returns": SPREAD,
        "ends": {"terminated": 60, "at_limit": 0},
    }
}


def variants(content: Any) -> Iterator[Any]:
    """The content with one part of it replaced or left out."""
    yield from (each for each in WRONG if each is not ...)
    if isinstance(content, dict | list):
        for key in list(content) if isinstance(content, dict) else range(len(content)):
            for inner in (*variants(content[key]), ...):
                found = copy.copy(content)
                if inner is ...:
                    del found[key]
                else:
                    found[key] = inner
                yield found


@pytest.mark.parametrize(
    ("name", "content", "read"),
    [
        ("experiments/bsuite.json", EXPERIMENT, lambda out: results.listed([out])),
        ("audits.json", AUDITS, audits.read_audits),
    ],
)
def test_one_field_wrong(
    name: str, content: Any, read: Callable[[Path], Any], tmp_path: Path
) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content))
    assert read(tmp_path)
    refused = 0
    for each in variants(content):
        file.write_text(json.dumps(each))
        words = f"{file}: "
        try:
            read(tmp_path)
        except ValueError as error:
            words = str(error)
            refused += 1
        assert words.startswith(f"{file}: ")
        assert "\n" not in words
    assert refused > 20
