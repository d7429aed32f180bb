"""Disks that are full and folders that nobody may write to."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from _case import (
    RECORD,
    ROLES,
    TRAIN,
    Case,
    demand,
    demand_clean,
    demand_equal,
    demand_one_line,
    has_root,
)

_NOBODY = 65534


def full_disk(case: Case) -> str:
    """One line; what was there before stays, and with room the same command ends as it should."""
    wholes = _commands(case)
    told = []
    for name, (command, whole) in wholes.items():
        out = case.folder / name
        size = max(f.stat().st_size for f in [whole, *whole.rglob("*")] if f.is_file())
        for share in (0.0, 0.3, 0.9):
            ended = case.run(*command, out, limits={"RLIMIT_FSIZE": int(share * size)})
            demand_one_line(ended, "File too large|No space left|too large")
        case.done(*command, out)
        demand_equal(out, whole)
        demand_clean(case.folder)
        told.append(name)
    return f"files cut off at three sizes: {', '.join(told)}; {_small_disk(case, wholes)}"


def _small_disk(case: Case, wholes: dict[str, tuple[tuple[object, ...], Path]]) -> str:
    """The same on a file system with less room than the result needs."""
    disk = case.folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        return "no small file system may be mounted here"
    try:
        for name, (command, whole) in wholes.items():
            ended = case.run(*command, disk / name)
            demand_one_line(ended, "No space left")
            subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
            case.done(*command, disk / name)
            demand_equal(disk / name, whole)
            shutil.rmtree(disk / name) if whole.is_dir() else (disk / name).unlink()
            demand_clean(disk)
            subprocess.run(["mount", "-o", "remount,size=32k", str(disk)], check=True)
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    return "and a file system of 32 kB"


def read_only_folder(case: Case) -> str:
    """One line that names it."""
    wholes = _commands(case)
    closed = case.folder / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    for above in (case.folder, case.folder.parent):  # so that another user may come here
        above.chmod(0o755)
    user = _NOBODY if has_root() else None
    for name, (command, _) in wholes.items():
        ended = case.run(*command, closed / name, user=user)
        demand_one_line(ended, "Permission denied|Read-only")
        demand(not any(closed.iterdir()), f"{name}: wrote into a closed folder")
    return f"refused in a line: {', '.join(wholes)}" + (" (as another user)" if user else "")


def _commands(case: Case) -> dict[str, tuple[tuple[object, ...], Path]]:
    """Commands without their last word, the path to write, and what that holds undisturbed."""
    commands: dict[str, tuple[object, ...]] = {
        "runs": ("train", case.catch(), *TRAIN, "--out"),
        "small-recording": (*RECORD, "--overwrite", "--episodes", "3000", "--out"),
        "small-store": ("convert", *ROLES, case.offers(5000)),
        "few-decisions.parquet": ("predict", case.shipped(), case.offers(5000), "--out"),
    }
    return {name: (each, case.whole(name, *each)[0]) for name, each in commands.items()}
