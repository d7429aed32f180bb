"""A clock that is set back while programs work."""

from __future__ import annotations

import os
import shutil
import time

from _case import RECORD, ROLES, TRAIN, Case, demand_clean, demand_equal

_DAY = 86_400.0


def clock_set_back(case: Case) -> str:
    """By a day, amid work and between two attempts, of which the first is killed."""
    commands: dict[str, tuple[object, ...]] = {
        "runs": ("train", case.catch(), *TRAIN, "--out"),
        "recording": (*RECORD, "--episodes", "40000", "--overwrite", "--out"),
        "store": ("convert", *ROLES, "--overwrite", case.offers(100_000)),
    }
    for name, command in commands.items():
        (whole, seconds), out = case.whole(name, *command), case.folder / name
        case.run(*command, out, after=0.5 * seconds, clock=_DAY)
        for file in case.folder.rglob("*"):  # what the future left
            os.utime(file, (time.time() + _DAY,) * 2)
        case.done(*command, out, clock=_DAY)
        demand_equal(out, whole)
        shutil.rmtree(out)
    demand_clean(case.folder)
    return f"equal byte for byte: {', '.join(commands)}"
