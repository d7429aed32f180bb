"""Disturb the programs in every way that machines do: is anything lost, is every result the same?

python tools/faults [--kills 300] [--only NAME ...] [--seed 0] [--out FOLDER]

A fault is a function in one of the files here: it disturbs commands, says what it did, and raises
`Failed` where something is lost or differs. Its name and docstring are its description; nothing
else has to be touched to add one. Kills are shared among the faults that have a WEIGHT in their
file. Exit code 1 if any failed.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from _case import Case, Failed
from _nursery import Nursery

HERE = Path(__file__).parent
Fault = Callable[[Case], str]


def all_faults() -> dict[str, Fault]:
    """By name, those of each file together."""
    faults: dict[str, Fault] = {}
    for file in sorted(HERE.glob("[!_]*.py")):
        module = importlib.import_module(file.stem)
        for name, function in vars(module).items():
            if inspect.isfunction(function) and function.__module__ == file.stem and name[0] != "_":
                faults[name] = function
    return faults


def shares(faults: dict[str, Fault], kills: int) -> dict[str, int]:
    """How many kills each fault makes, at least one where it kills at all."""
    weights = {
        name: getattr(sys.modules[each.__module__], "WEIGHTS", {}).get(name, 0)
        for name, each in faults.items()
    }
    total = sum(weights.values()) or 1
    return {name: max(1, -(-kills * w // total)) if w else 0 for name, w in weights.items()}


def main() -> None:
    faults = all_faults()
    parser = argparse.ArgumentParser(
        description=str(__doc__).splitlines()[0],
        epilog="faults: " + "; ".join(f"{n}: {inspect.getdoc(f)}" for n, f in faults.items()),
    )
    parser.add_argument("--kills", type=int, default=300, help="how many in all")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=list(faults), default=[])
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument(
        "--out", type=Path, help="folder that is kept; default: one that is removed"
    )
    arguments = parser.parse_args()
    chosen = {name: faults[name] for name in arguments.only or faults}
    share = shares(chosen, arguments.kills)
    failed, kills = [], 0
    with tempfile.TemporaryDirectory() as scratch, Nursery() as nursery:
        out = (arguments.out or Path(scratch)).absolute()
        for name, fault in chosen.items():
            moments = random.Random(f"{arguments.seed} {name}")
            case = Case(nursery, out / "shared", out / name, moments, share[name])
            begin = time.monotonic()
            try:
                told = fault(case)
            except Failed as error:
                told = f"FAILED: {error}"
                failed.append(name)
            except Exception:
                told = f"FAILED: {traceback.format_exc()}"
                failed.append(name)
            kills += case.killed
            print(f"{name}: {told} ({time.monotonic() - begin:.0f} s)", flush=True)
    print(f"kills: {kills}; faults: {len(chosen)}, of which failed: {', '.join(failed) or 'none'}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
