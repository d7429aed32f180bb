"""What faults share: data, commands that are disturbed, and comparisons."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from _nursery import Ended, Nursery

RECORD = ("record", "catch", "--policy", "uniform")
TRAIN = (
    *("--algorithm", "bve", "dqn", "--steps", "1500", "--every", "150"),
    *("--eval-episodes", "4", "--batch-size", "16", "--hidden", "8"),
)
ROLES = (
    *("--episode", "person", "--action", "offer", "--reward", "bought"),
    *("--observation", "age", "region", "--propensity", "propensity", "--ends", "terminated"),
)
_HIDDEN = re.compile(r"^\..*\.(lock|tmp|partial|old)$")


class Failed(Exception):
    """Something was lost, or differs."""


def demand(holds: object, what: object) -> None:
    if not holds:
        raise Failed(str(what))


def contents(path: Path) -> dict[str, bytes]:
    """Every file below, by its name; of a file itself under ''."""
    if path.is_file():
        return {"": path.read_bytes()}
    return {
        str(f.relative_to(path)): f.read_bytes() for f in sorted(path.rglob("*")) if f.is_file()
    }


def demand_equal(found: Path, known: Path) -> None:
    """The same files with the same bytes, but for their own path where they name it."""
    one, other = contents(found), contents(known)
    demand(one.keys() == other.keys(), f"{found}: files {sorted(one.keys() ^ other.keys())}")
    paths = str(found).encode(), str(known).encode()
    differ = [name for name in one if one[name].replace(*paths) != other[name]]
    demand(not differ, f"{found}: differs from an undisturbed run in {', '.join(differ)}")


def demand_clean(folder: Path) -> None:
    """Nothing half-written lies about."""
    left = [str(f) for f in folder.rglob("*") if _HIDDEN.match(f.name)]
    demand(not left, f"left behind: {', '.join(left)}")


def demand_one_line(ended: Ended, words: str, code: int = 2) -> None:
    """It ended with a line of rbve's, which a user can act on."""
    lines = [line for line in ended.text.splitlines() if line.startswith("rbve: ")]
    told = "Traceback" not in ended.text and len(lines) == 1
    fits = told and re.search(words, lines[0]) and ended.code == code
    demand(fits, f"exit code {ended.code}, {ended.text[-600:]!r}; expected {code} and {words!r}")


class Case:
    """One fault at work in a folder of its own.

    Attributes:
        shared: Folder of data that faults have in common.
        folder: Its own.
        moments: Random numbers.
        kills: How many it is to make.
        killed: How many it made.
    """

    _seconds: ClassVar[dict[Path, float]] = {}  # of undisturbed commands

    def __init__(
        self, nursery: Nursery, shared: Path, folder: Path, moments: random.Random, kills: int
    ) -> None:
        self.nursery, self.shared, self.moments, self.kills = nursery, shared, moments, kills
        self.killed = 0
        shutil.rmtree(folder, ignore_errors=True)
        self.folder = folder
        for each in (shared, folder):
            each.mkdir(parents=True, exist_ok=True)

    def run(self, *argv: object, **more: Any) -> Ended:
        """A command, in this fault's folder.

        Args:
            argv: Its words after `rbve`.
            **more: after (seconds until `signal` is sent, by default SIGKILL), limits (of the
                module `resource`), clock (seconds by which it is set back at work), user (its id).
        """
        log = self.folder / "log.txt"
        self.nursery.begin(argv, self.folder, log, **more)
        ended = self.nursery.end(log)
        demand(not ended.left, f"{argv}: processes that it had started went on without it")
        return ended

    def done(self, *argv: object, codes: Sequence[int] = (0,), **more: Any) -> Ended:
        """A command that has to succeed, with one of these exit codes."""
        ended = self.run(*argv, **more)
        demand(ended.code in codes, f"{argv}: exit code {ended.code}: {ended.text[-800:]}")
        return ended

    def kill_again_and_again(
        self,
        argv: Sequence[object],
        seconds: float,
        after_kill: Callable[[], None],
        after_end: Callable[[], None],
        codes: Sequence[int] = (0,),
    ) -> int:
        """Kill a command at random moments, `seconds` being what it takes undisturbed; begin it
        again each time until it comes to its end. Returns how often it did."""
        ends, stop = 0, self.killed + self.kills
        while True:
            more: dict[str, Any] = {}
            if self.killed < stop:
                more["after"] = self.moments.uniform(0.01, 1.1 * seconds)
            ended = self.run(*argv, **more)
            if ended.code == -signal.SIGKILL:
                self.killed += 1
                after_kill()
                continue
            demand(ended.code in codes, f"{argv}: exit code {ended.code}: {ended.text[-800:]}")
            after_end()
            ends += 1
            if self.killed >= stop:
                return ends

    # Data

    def catch(self) -> Path:
        """A small recording."""
        path = self.shared / "catch"
        if not path.exists():
            self.done(*RECORD, "--episodes", "200", "--out", path)
        return path

    def offers(self, persons: int = 200) -> Path:
        """A log of lone decisions."""
        path = self.shared / f"offers{persons}.csv"
        if not path.exists():
            draw = random.Random(0)
            lines = ["person,age,region,offer,propensity,bought"]
            for person in range(persons):
                age, region = draw.uniform(20, 60), draw.choice(["north", "south"])
                offer = draw.choice(["young", "old"])
                bought = draw.random() < (0.9 if (offer == "old") == (age > 40) else 0.1)
                lines.append(f"{person},{age:.1f},{region},{offer},0.5,{int(bought)}")
            path.write_text("\n".join(lines) + "\n")
        return path

    def store(self) -> Path:
        """Of those offers."""
        path = self.shared / "offers"
        if not path.exists():
            self.done("convert", *ROLES, self.offers(), path)
        return path

    def shipped(self) -> Path:
        """A policy for them."""
        path = self.shared / "shipped"
        if not path.exists():
            steps = ("--steps", "200", "--every", "200", "--hidden", "8")
            runs = self.shared / "offers-runs"
            self.done("train", self.store(), "--algorithm", "bve", *steps, "--out", runs)
            self.done("export", next(runs.glob("bve-*")), path)
        return path

    def whole(self, name: str, *argv: object, codes: Sequence[int] = (0,)) -> tuple[Path, float]:
        """What an undisturbed command writes to `name` in the shared folder, and the seconds it
        takes once everything is compiled. The path is the last word of the command."""
        path = self.shared / name
        if path not in self._seconds:
            _remove(path)
            self.done(*argv, path, codes=codes)
            _remove(path)
            self._seconds[path] = self.done(*argv, path, codes=codes).seconds
        return path, self._seconds[path]


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def has_root() -> bool:
    return os.getuid() == 0
