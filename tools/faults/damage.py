"""Checkpoints and rows that a disk spoiled."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from _case import TRAIN, Case, Failed, demand, demand_equal, demand_one_line

_TIMES = 5
_CHECKPOINT, _PREVIOUS = "checkpoint.safetensors", "checkpoint.previous.safetensors"


def damaged_checkpoint(case: Case) -> str:
    """The one before it is used, which is said; results are the same."""
    return _spoiled(case, _CHECKPOINT, "going on from the checkpoint before it")


def damaged_rows(case: Case) -> str:
    """Rows that no longer are those the checkpoint counted: the same, or a line says what to do."""
    return _spoiled(case, "rows.jsonl", "going on from the checkpoint before it|damaged|delete")


def _spoiled(case: Case, name: str, words: str) -> str:
    train = ("train", case.catch(), *TRAIN, "--out")
    whole, seconds = case.whole("runs", *train)
    begun = case.folder / "begun"
    for _ in range(100):
        ended = case.run(*train, begun, after=case.moments.uniform(0.3, 0.8) * seconds)
        if files := _unfinished(begun):
            break
        # The first run may have compiled, or had the machine for itself.
        seconds *= 0.8 if ended.code == 0 else 1.1
        if ended.code == 0:
            shutil.rmtree(begun)
    demand(files, "no run was stopped between two checkpoints")
    equal = refused = 0
    changes: list[Callable[[bytearray], object]] = [
        lambda held: held.__setitem__(case.moments.randrange(len(held)), 255),
        lambda held: held.__delitem__(slice(len(held) // 2, None)),
        lambda held: held.clear(),
    ]
    for time in range(_TIMES):
        out = case.folder / f"spoiled{time}"
        shutil.copytree(begun, out)
        spoiled = out / case.moments.choice(files).parent.name / name
        held = bytearray(spoiled.read_bytes())
        before = bytes(held)
        changes[time % len(changes)](held)
        spoiled.write_bytes(bytes(held))
        ended = case.run(*train, out)
        if ended.code == 2:
            demand_one_line(ended, words)
            demand(name != _CHECKPOINT, f"refused, though there is a good one: {ended.last}")
            advice = re.search(r"delete (\S+)", ended.last)
            if advice is None:
                raise Failed(f"no advice: {ended.last}")
            shutil.rmtree(advice[1])
            case.done(*train, out)
            demand_equal(out, whole)
            refused += 1
            continue
        demand(ended.code == 0, ended.text[-600:])
        told = " ".join(ended.text.split())
        demand(before == held or any(each in told for each in words.split("|")), ended.text[-600:])
        demand_equal(out, whole)
        equal += 1
    return f"{equal} of {_TIMES} ended with equal bytes, {refused} after a line's advice"


def _unfinished(runs: Path) -> list[Path]:
    """Checkpoints of runs that have one before it and are not at their end."""
    found = []
    for file in runs.glob(f"*/{_PREVIOUS}"):
        lines = (file.parent / "rows.jsonl").read_bytes().splitlines()
        try:
            last = json.loads(lines[-1])
        except ValueError:  # torn by the kill
            last = {}
        if last.get("metric") != "finished" and (file.parent / _CHECKPOINT).exists():
            found.append(file)
    return found
