"""Rows that go to TensorBoard and Weights & Biases while runs train."""

from __future__ import annotations

import math
import struct
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.cli import run
from support.recordings import record_policy

import rbve
from rbve import loggers, rows
from rbve.loggers import tensorboard
from rbve.rows import FILE, Run

STEPS = ("--steps", 200, "--every", 100, "--eval-episodes", 2, "--algorithm", "bve")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("catch") / "data"
    record_policy("catch", out, None, episodes=20)
    return out


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of a protocol buffer, read by its specification."""
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(message):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(kind) or varint()
        yield key >> 3, message[place : place + size]
        place += size


def records(file: Path) -> Iterator[bytes]:
    data = file.read_bytes()
    place = 0
    while place < len(data):
        (length,) = struct.unpack("<Q", data[place : place + 8])
        yield data[place + 12 : place + 12 + length]
        place += length + 16


def events(out: Path, name: str) -> dict[tuple[int, str], float]:
    (file,) = (out / tensorboard.FOLDER / name).iterdir()
    first, *rest = records(file)
    assert dict(fields(first))[3] == b"brain.Event:2"
    found = {}
    for event in rest:
        known = dict(fields(event))
        assert isinstance(known[5], bytes)
        for _, value in fields(known[5]):
            assert isinstance(value, bytes)
            figure = dict(fields(value))
            tag, number = figure[1], figure[2]
            assert isinstance(tag, bytes)
            assert isinstance(number, bytes)
            found[int(known.get(2, 0)), tag.decode()] = struct.unpack("<f", number)[0]  # type: ignore[arg-type]
    return found


def told(run: Run) -> dict[tuple[int, str], Any]:
    return {(row.step, row.metric): pytest.approx(row.value, rel=1e-6) for row in run.rows}


def test_tensorboard_has_every_row_also_of_a_run_that_goes_on(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    done = run("train", store, *STEPS, "--out", out, "--log", "tensorboard")
    assert done.code == 0, done.err
    (first,) = rows.find([out])
    assert events(out, first.job) == told(first)
    done = run("train", store, *STEPS[2:], "--steps", 400, "--out", out, "--log", "tensorboard")
    assert done.code == 0, done.err
    longer = next(run for run in rows.find([out]) if run.job != first.job)
    assert events(out, longer.job) == told(longer)
    assert {step for step, _ in events(out, longer.job)} >= {100, 200, 300, 400}


def test_checksums_are_those_of_tfrecords() -> None:
    # RFC 3720, B.4: 32 bytes of zeros have the CRC-32C 8a9136aa.
    crc = 0x8A9136AA
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    assert tensorboard._checksum(bytes(32)) == struct.pack("<I", masked)


def test_a_logger_begun_again_does_not_say_rows_twice(tmp_path: Path) -> None:
    own = Run("job", {}, {}, [])
    for _ in range(2):
        sink = tensorboard.opened(tmp_path, own)
        sink.add(1, {"return": 0.5})
        sink.close()
    assert events(tmp_path, "job") == {(1, "return"): 0.5}


def test_figures_of_a_run_that_diverges_are_kept(tmp_path: Path) -> None:
    sink = tensorboard.opened(tmp_path, Run("job", {}, {}, []))
    sink.add(1, {"square": 1e60, "below": -1e60, "none": math.nan, "least": 1e-60})
    sink.close()
    kept = {name: value for (_, name), value in events(tmp_path, "job").items()}
    assert kept == {
        "square": math.inf,
        "below": -math.inf,
        "none": pytest.approx(math.nan, nan_ok=True),
        "least": 0.0,
    }


class Theirs(types.ModuleType):
    """As much of wandb as the logger calls."""

    def __init__(self) -> None:
        super().__init__("wandb")
        self.begun: list[dict[str, Any]] = []
        self.logged: list[tuple[int, dict[str, float]]] = []
        self.step = self.finished = 0

    def init(self, **asked: Any) -> Theirs:
        self.begun.append(asked)
        return self

    def log(self, figures: dict[str, float], step: int) -> None:
        assert step >= self.step
        self.logged.append((step, figures))
        self.step = step

    def finish(self) -> None:
        self.finished += 1


def test_weights_and_biases_gets_rows_from_where_it_was(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = Theirs()
    monkeypatch.setitem(sys.modules, "wandb", theirs)
    theirs.step = 200  # of an earlier process
    plan: Any = {"steps": 200, "every": 100, "eval_episodes": 2, "env": "catch"}
    rbve.train(store, "bve", out=tmp_path, log=("wandb",), **plan)
    (own,) = rows.find([tmp_path])
    assert theirs.begun[0]["id"] == own.job
    assert theirs.begun[0]["dir"] == str(tmp_path)
    assert theirs.begun[0]["config"]["spec"] == own.spec
    assert theirs.finished == 1
    assert {step for step, _ in theirs.logged} == {200}
    sent = {metric: value for _, figures in theirs.logged for metric, value in figures.items()}
    wanted = {row.metric: row.value for row in own.rows if row.step == 200}
    assert {name: pytest.approx(value) for name, value in wanted.items()} == sent


def test_offline_runs_of_wandb_lie_in_the_folder(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    done = run("train", store, *STEPS, "--out", tmp_path, "--log", "wandb")
    assert done.code == 0, done.err
    assert list((tmp_path / "wandb").glob("offline-run-*/*.wandb"))


def test_a_run_that_wandb_refuses_is_told_in_one_line(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs: Any = types.ModuleType("wandb")
    theirs.Error = type("Error", (Exception,), {})

    def init(**asked: Any) -> None:
        raise theirs.Error("No API key.\nLog in.")

    theirs.init = init
    monkeypatch.setitem(sys.modules, "wandb", theirs)
    done = run("train", store, *STEPS, "--out", tmp_path, "--log", "wandb")
    assert done.code == 2
    assert "Weights & Biases: No API key. Log in; or set WANDB_MODE=offline" in done.err
    assert "Traceback" not in done.err


def test_a_missing_package_is_told_before_training(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    done = run("train", store, *STEPS, "--out", tmp_path / "runs", "--log", "wandb")
    assert done.code == 2
    assert 'pip install "rbve[wandb]"' in done.err
    assert not list(tmp_path.rglob(FILE))
    done = run("train", store, *STEPS, "--out", tmp_path / "runs", "--log", "tensorbord")
    assert done.code == 2
    assert "Did you mean 'tensorboard'" in done.err
    with pytest.raises(ValueError, match="log= needs out="):
        rbve.train(store, "bve", log=("tensorboard",))


def test_every_logger_says_where_rows_go() -> None:
    assert loggers.LOGGERS.names() == ["tensorboard", "wandb"]
    assert all(loggers.LOGGERS.summary(name) for name in loggers.LOGGERS.names())
