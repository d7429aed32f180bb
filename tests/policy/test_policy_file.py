"""Policies whose JSON has one field wrong, with a right checksum: loaded, or refused in a line."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rbve import Policy, api, load_policy
from rbve.data import Dataset
from rbve.spec import Spec
from rbve.tensors import read_tensors, write_tensors
from rbve.training.run import CHECKPOINT, POLICY, train_members

WRONG: tuple[Any, ...] = (None, True, -3, 0, 10**30, 1.5, "x", [], ["x"], {}, {"x": {}}, ...)


def variants(content: Any) -> Iterator[tuple[str, Any]]:
    """The content with one field replaced or left out, and which."""
    for key, value in content.items():
        for inner in WRONG:
            found = copy.copy(content)
            if inner is ...:
                del found[key]
            else:
                found[key] = inner
            yield key, found
        if isinstance(value, dict):
            for name, inner in variants(value):
                yield f"{key}.{name}", {**content, key: inner}


@pytest.fixture(scope="module")
def folder(
    catch: Dataset, small_job: Callable[..., Spec], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    made = tmp_path_factory.mktemp("policies") / "run"
    train_members([small_job("rbve", {"steps": 20, "every": 20})], [catch], [made])
    return made


@pytest.mark.filterwarnings("ignore:.*(diverged|its decisions may differ)")
def test_policies(folder: Path, tmp_path: Path) -> None:
    tensors, info = read_tensors(folder / POLICY)
    program = info.pop("program")
    assert refusals(Policy.load, tmp_path / POLICY, tensors, variants(info)) > 300
    each = (
        (name, {**info, "program": held})
        for name, held in variants({"program": program})
        for held in held.values()
    )
    assert refusals(load_policy, tmp_path / POLICY, tensors, each) > 40


def refusals(
    load: Callable[[Path], Any], file: Path, tensors: Any, contents: Iterator[tuple[str, Any]]
) -> int:
    """How many were refused, each in one line that names the file."""
    count = 0
    for name, content in contents:
        write_tensors(file, tensors, content)
        words = f"{file}: "
        try:
            load(file)
        except ValueError as error:
            words = str(error)
            count += 1
        assert words.startswith(f"{file}: "), (name, words)
        assert "\n" not in words
    return count


@pytest.mark.parametrize("field", ["gamma", "clip_rewards"])
def test_what_evaluation_reads_of_a_policy(field: str, folder: Path, tmp_path: Path) -> None:
    tensors, info = read_tensors(folder / POLICY)
    info["info"]["job"]["view"][field] = "x"
    write_tensors(tmp_path / POLICY, tensors, info)
    with pytest.raises(ValueError, match=f"info.job.view.{field} must be"):
        api.evaluate(tmp_path / POLICY, "catch", episodes=1)


def test_checkpoints(
    folder: Path, catch: Dataset, small_job: Callable[..., Spec], tmp_path: Path
) -> None:
    job = small_job("rbve", {"steps": 20, "every": 20})
    tensors, info = read_tensors(folder / CHECKPOINT)
    for name, each in variants({**info, "job": {}}):
        write_tensors(tmp_path / CHECKPOINT, tensors, {**each, "job": info["job"]})
        if name in ("evaluations", "step", "rows", "rows_crc32", "finished"):
            (tmp_path / "rows.jsonl").write_bytes((folder / "rows.jsonl").read_bytes())
            words = ""
            try:
                train_members([job], [catch], [tmp_path])
            except ValueError as error:
                words = str(error)
            assert not words or words.startswith(str(tmp_path)), (name, words)
            assert not words or "delete" in words
            for left in tmp_path.iterdir():
                left.unlink()
