"""A study reduced to what reports read, small enough to keep.

OUT/rows.jsonl.gz                   every finished run of its experiments
OUT/experiments/<name>.json         which runs an experiment consists of
OUT/theory/<name>/theory.jsonl.gz   runs that need no data
OUT/audits.json                     what the data is like
OUT/frames/<kind>.png               what recorded images look like
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from rbve import rows
from rbve.files import read_json, write_atomically
from rbve.rows import Run
from rbve.sweep.audits import FILE as AUDITS
from rbve.sweep.frames import FOLDER as FRAMES

EXPERIMENTS = "experiments"
THEORY = "theory"
PACKED_THEORY = "theory.jsonl.gz"  # not the name by which trained runs are found


class Packed(NamedTuple):
    runs: int  # kept
    left_out: int  # not finished, or of no experiment
    theory: int  # runs that need no data


def jobs_of(paths: Iterable[Path]) -> dict[str, set[str]]:
    """experiment -> its jobs, of the studies among the paths."""
    found: dict[str, set[str]] = {}
    for path in paths:
        for file in sorted((path / EXPERIMENTS).glob("*.json")):
            content = read_json(file)
            jobs = content.get("jobs") if isinstance(content, dict) else None
            if not isinstance(jobs, list) or not all(type(job) is str for job in jobs):
                raise ValueError(f"{file}: lists no jobs; run `rbve reproduce {file.stem}` again")
            found.setdefault(file.stem, set()).update(jobs)
    return found


def left_out_of(paths: Iterable[Path]) -> dict[str, dict[str, str]]:
    """experiment -> environment -> why its data does not count."""
    found: dict[str, dict[str, str]] = {}
    for path in paths:
        for file in sorted((path / EXPERIMENTS).glob("*.json")):
            found.setdefault(file.stem, {}).update(read_json(file).get("left_out", {}))
    return found


def theory_runs(paths: Iterable[Path]) -> dict[str, list[Run]]:
    """experiment -> runs, of those that need no data."""
    found: dict[str, list[Run]] = {}
    for path in paths:
        for folder in sorted((path / THEORY).glob("*")):
            files = sorted([*folder.glob(PACKED_THEORY), *(folder / "rows").rglob("*.jsonl")])
            runs = [run for file in files for run in rows.read_all(file)]
            if runs:
                found.setdefault(folder.name, []).extend(runs)
    return found


def pack(study: Path, out: Path) -> Packed:
    """Rows last: a folder with rows is complete."""
    wanted = set().union(*jobs_of([study]).values())
    theory = theory_runs([study])
    if not wanted and not theory:
        raise ValueError(f"{study}: not a study; make one with `rbve reproduce ... --out {study}`")
    runs = rows.find([study]) if wanted else []
    kept = [run for run in runs if run.job in wanted and run.last("final/return") is not None]
    for name, mine in theory.items():
        rows.pack(mine, out / THEORY / name / PACKED_THEORY)
    lists, strips = ((study / EXPERIMENTS).glob("*.json"), (study / FRAMES).glob("*.png"))
    for file in [*sorted(lists), *sorted(strips), study / AUDITS]:
        if file.is_file():
            write_atomically(out / file.relative_to(study), file.read_bytes())
    if kept:
        rows.pack(kept, out / rows.PACKED)
    return Packed(len(kept), len(runs) - len(kept), sum(map(len, theory.values())))
