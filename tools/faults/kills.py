"""SIGKILL at random moments."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
from _case import ROLES, TRAIN, Case, contents, demand, demand_clean, demand_equal

from rbve.data import load

WEIGHTS = {
    "killed_trainer": 60, "killed_recorder": 20, "killed_converter": 90,
    "killed_converter_of_shards": 60, "killed_selector": 10, "killed_predictor": 60,
}  # fmt: skip
_SELECT = (
    *("--algorithm", "bc", "bve", "--steps", "200", "--fit-steps", "200"),
    *("--checkpoints", "1", "--hidden", "8"),
)
_VERDICTS = (0, 3, 4)  # exit codes of `rbve select`


def killed_trainer(case: Case) -> str:
    """Two runs end with the bytes of runs that nobody disturbed."""
    train = ("train", case.catch(), *TRAIN, "--out")
    whole, seconds = case.whole("runs", *train)
    out = case.folder / "runs"

    def equal() -> None:
        demand_equal(out, whole)
        shutil.rmtree(out)

    ends = case.kill_again_and_again((*train, out), seconds, lambda: None, equal)
    return f"{case.killed} kills, {2 * ends} runs of {2 * ends} equal byte for byte"


def killed_selector(case: Case) -> str:
    """Fits, policies and the card are those of a selection that nobody disturbed."""
    select = ("select", case.store(), *_SELECT, "--out")
    whole, seconds = case.whole("selection", *select, codes=_VERDICTS)
    out = case.folder / "selection"

    def equal() -> None:
        demand_equal(out, whole)
        shutil.rmtree(out)

    ends = case.kill_again_and_again((*select, out), seconds, lambda: None, equal, codes=_VERDICTS)
    return f"{case.killed} kills, {ends} selections of {ends} equal byte for byte"


def killed_recorder(case: Case) -> str:
    """What it had counted is there, and is the beginning of the whole recording."""
    record = ("record", "catch", "--episodes", "400", "--overwrite")
    whole, seconds = case.whole("online-recording", *record, "--out")
    known, out = load(whole), case.folder / "recording"
    found = {"nothing": 0, "a part": 0, "all": 0}

    def beginning() -> None:
        try:
            data = load(out)
        except ValueError as error:
            absent = "no such dataset" in str(error) or "the dataset is empty" in str(error)
            demand(absent, error)
            found["nothing"] += 1
            return
        count = data.num_episodes
        found["all" if count == known.num_episodes else "a part"] += 1
        rows = int(known.offsets[count])
        for name in ("obs", "action", "reward"):
            one, other = getattr(data, name), getattr(known, name)[:rows]
            demand(np.array_equal(one, other), f"{name} of {count} recorded episodes differs")

    case.kill_again_and_again(
        (*record, "--out", out), seconds, beginning, lambda: demand_equal(out, whole)
    )
    demand_clean(case.folder)
    told = ", ".join(f"{count} left {what}" for what, count in found.items())
    return f"{case.killed} kills, of which {told}"


def _converted(case: Case, source: Path, name: str) -> str:
    convert = ("convert", *ROLES, "--overwrite", source)
    whole, seconds = case.whole(name, *convert)
    old, out = case.shared / "old", case.folder / name
    if not old.exists():
        case.done("convert", *ROLES, case.offers(100), old)
    shutil.copytree(old, out)
    found = {"old": 0, "new": 0}

    def either() -> None:
        load(out)  # which puts back what a kill between two renames had moved
        now = contents(out)
        is_old = now == contents(old)
        demand(is_old or now == contents(whole), f"{out}: neither the old data nor the new")
        found["old" if is_old else "new"] += 1

    def again() -> None:
        demand_equal(out, whole)
        demand_clean(case.folder)
        shutil.rmtree(out)
        shutil.copytree(old, out)

    ends = case.kill_again_and_again((*convert, out), seconds, either, again)
    told = ", ".join(f"{count} left the {what} data" for what, count in found.items())
    return f"{case.killed} kills, of which {told}; {ends} stores of {ends} equal byte for byte"


def killed_converter(case: Case) -> str:
    """The store is the old one or the new one, whole."""
    return _converted(case, case.offers(100_000), "store")


def killed_converter_of_shards(case: Case) -> str:
    """The same of a log in many files, which all cores read."""
    folder = case.shared / "shards"
    if not folder.exists():
        header, *lines = case.offers(100_000).read_text().splitlines()
        folder.mkdir()
        for i in range(8):
            part = [header, *lines[i * len(lines) // 8 : (i + 1) * len(lines) // 8]]
            (folder / f"part{i}.csv").write_text("\n".join(part) + "\n")
    return _converted(case, folder, "store-of-shards")


def killed_predictor(case: Case) -> str:
    """The file of decisions is whole or not there."""
    predict = ("predict", case.shipped(), case.offers(100_000), "--out")
    whole, seconds = case.whole("decisions.parquet", *predict)
    out = case.folder / "decisions.parquet"
    found = {"nothing": 0, "all": 0}

    def either() -> None:
        found["all" if out.exists() else "nothing"] += 1
        if out.exists():
            demand_equal(out, whole)
            out.unlink()

    def again() -> None:
        demand_equal(out, whole)
        demand_clean(case.folder)
        with suppress(FileNotFoundError):
            out.unlink()

    ends = case.kill_again_and_again((*predict, out), seconds, either, again)
    told = ", ".join(f"{count} left {what}" for what, count in found.items())
    return f"{case.killed} kills, of which {told}; {ends} files of {ends} equal byte for byte"
