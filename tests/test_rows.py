"""Files of result rows: what is malformed, doubled or blown up is refused in one line."""

from __future__ import annotations

import copy
import gzip
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.cli import run

from rbve import rows

HEADER = {
    "job": "bve-0123456789ab",
    "spec": {
        "data": {"path": "data/catch", "keep": 0.5, "keep_seed": 0, "fingerprint": "ab"},
        "algorithm": "bve",
        "settings": {"lam": 0.5, "filter": "none"},
        "steps": 40,
        "seed": 0,
        "network": {"hidden": [8]},
        "view": {"gamma": 0.99},
        "optimiser": {"learning_rate": 3e-4, "target_period": 1},
        "evaluation": {"env": "catch", "every": 20},
    },
    "facts": {
        "env": "catch",
        "episodes": 60,
        "behaviour_return": -0.6,
        "random_return": None,
        "reference_return": 1.0,
        "source": {"behaviour": "uniform", "noise": 0.0},
        "recording": {
            "env": "catch",
            "behaviour": "policy",
            "noise": 0.5,
            "epsilon": 0.1,
            "keep": 0.5,
        },
        "possible_returns": [-1.0, 1.0],
    },
}
ROWS = [
    {"step": step, "metric": name, "value": step / 40, "n": 4}
    for step in (20, 40)
    for name in ("train/loss", "return", "overestimation")
] + [{"step": 40, "metric": "final/return", "value": 1.0, "n": 4}]
WRONG: tuple[Any, ...] = (None, True, -3, 10**400, 1.5, "x", [], ["x"], [[]], {}, {"x": {}})


def write(path: Path, header: Any = HEADER, lines: Any = ROWS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in (header, *lines)))
    return path


def places(content: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(content, dict):
        for key, value in content.items():
            yield (key,)
            yield from ((key, *more) for more in places(value))


def changed(content: Any, place: tuple[Any, ...], value: Any) -> Any:
    """With another value at a place; without the field where that is Ellipsis."""
    found = copy.deepcopy(content)
    inner = found
    for key in place[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return found


def test_the_file_is_read(tmp_path: Path) -> None:
    (found,) = rows.find([write(tmp_path / rows.FILE)])
    assert found.spec == HEADER["spec"]
    assert [row._asdict() for row in found.rows] == ROWS


def test_no_field_of_a_file_gives_a_traceback(tmp_path: Path) -> None:
    """A report of rows with one field wrong: it is made, or one line says what is wrong."""
    file, page = tmp_path / "runs" / rows.FILE, tmp_path / "page.html"
    refused = tried = 0
    broken = [changed(HEADER, place, value) for place in places(HEADER) for value in (*WRONG, ...)]
    cases = [(header, ROWS) for header in broken]
    for place in places(ROWS[0]):
        cases += [(HEADER, [*ROWS[1:], changed(ROWS[0], place, value)]) for value in (*WRONG, ...)]
    for header, lines in cases:
        write(file, header, lines)
        tried += 1
        try:
            found = rows.find([tmp_path / "runs"])
        except ValueError as error:
            words = str(error)
            refused += 1
            found = []
            if not words.startswith(f"{file}: ") or "\n" in words:
                pytest.fail(words)
        summarise(found)
    assert refused > tried / 2
    write(file, changed(HEADER, ("spec", "data"), 5))
    result = run("report", tmp_path / "runs", "--out", page)
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert "spec.data must be an object; got 5" in result.err


def summarise(found: list[rows.Run]) -> None:
    """What reports make of rows, short of drawing."""
    from rbve.report import table
    from rbve.report.summary import group

    problems = group(found)
    table.as_json(problems)
    [table.table(each) for each in problems]


@pytest.mark.parametrize(
    "line", ["5", "[]", "null", '"x"', "{}", "{", "[" * 5000, '{"job": 1}', '{"step": 1}', "\x00"]
)
def test_other_lines_are_refused(line: str, tmp_path: Path) -> None:
    file = write(tmp_path / rows.FILE)
    for content in (line + "\n", file.read_text() + line + "\n"):
        file.write_text(content)
        with pytest.raises(ValueError, match="not a file of result rows"):
            rows.read_all(file)


def test_doubled_rows_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path / rows.FILE, lines=[*ROWS, ROWS[2]])
    with pytest.raises(ValueError, match=r"a second 'overestimation' of step 20.*; delete"):
        rows.find([tmp_path])
    # The same rows in two runs of one file are two runs.
    shutil.copy(file, tmp_path / "a")
    write(tmp_path / rows.FILE)
    once = (tmp_path / rows.FILE).read_bytes()
    (tmp_path / rows.FILE).write_bytes(once + once)
    assert len(rows.read_all(tmp_path / rows.FILE)) == 2


@pytest.mark.parametrize("ending", ["", "\n"])
def test_a_packed_file_that_blows_up_is_refused(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(rows, "LONGEST_LINE", 1 << 16)
    file = tmp_path / rows.PACKED
    head = json.dumps(HEADER) + "\n"
    line = json.dumps(ROWS[0]).ljust(1000) + ending
    file.write_bytes(gzip.compress((head + line * 2000).encode()))
    assert file.stat().st_size < 20_000
    with pytest.raises(ValueError, match=r"unpacks to more than 1 MB|a second"):
        rows.find([tmp_path])
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(ValueError, match="not a file of result rows"):
        rows.find([tmp_path])
