"""A study reduced to what reports read, small enough to keep.

OUT/rows.jsonl.gz                   every finished run of its experiments
OUT/experiments/<name>.json         which runs an experiment consists of, which train longer to see
                                    whether these suffice, and what a file asked
OUT/theory/<name>/theory.jsonl.gz   runs that need no data
OUT/audits.json                     what the data is like
OUT/frames/<kind>.png               what recorded images look like
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from rbve import rows, schema
from rbve.files import read_json, write_atomically, write_json
from rbve.paper.audits import FILE as AUDITS
from rbve.paper.audits import Summary, read_audits
from rbve.paper.experiments import Experiment, Outline
from rbve.paper.frames import FOLDER as FRAMES
from rbve.rows import Run, is_finished

EXPERIMENTS = "experiments"
THEORY = "theory"
_PACKED_THEORY = "theory.jsonl.gz"  # not the name by which trained runs are found
_OUTLINE = {**{each.name: str for each in fields(Outline)}, "measures": [str]}
_LISTED = {"jobs": [str], "longer?": [str], "left_out?": {"*": str}, "outline?": _OUTLINE}


class Kept(NamedTuple):
    """What a packed study spares: runs that need no training, and what they were trained on."""

    finished: frozenset[str] = frozenset()  # jobs
    fingerprints: Mapping[str, Sequence[str]] = MappingProxyType({})  # by recording, data/KIND/SEED


class Packed(NamedTuple):
    runs: int  # kept
    left_out: int  # not finished, or of no experiment
    theory: int  # runs that need no data


@dataclass
class Listed:
    """What a study remembers of an experiment."""

    jobs: set[str] = field(default_factory=set)
    longer: set[str] = field(default_factory=set)  # jobs that tell whether the others suffice
    left_out: dict[str, str] = field(default_factory=dict)  # environment -> why
    outline: Outline | None = None  # of a user's file, as it was then


def listed(paths: Iterable[Path]) -> dict[str, Listed]:
    """By experiment, of the studies among the paths."""
    known: dict[str, Listed] = {}
    for name, content in _experiments(paths):
        own = known.setdefault(name, Listed())
        own.jobs.update(content["jobs"])
        own.longer.update(content.get("longer", ()))
        own.left_out.update(content.get("left_out", {}))
        if outline := content.get("outline"):
            own.outline = Outline(**{**outline, "measures": tuple(outline["measures"])})
    return known


def write_listed(out: Path, name: str, known: Listed) -> None:
    content: dict[str, Any] = {"jobs": sorted(known.jobs), "left_out": known.left_out}
    if known.longer:
        content["longer"] = sorted(known.longer)
    if known.outline:
        content["outline"] = asdict(known.outline)
    write_json(out / EXPERIMENTS / f"{name}.json", content)


def changes(out: Path, name: str, experiment: Experiment) -> list[str]:
    """Notes on a user's file that is not as the study in `out` knows it.

    Raises:
        ValueError: The study holds another experiment of this name.
    """
    known = listed([out]).get(name, Listed()).outline
    if known is None or not experiment.file:
        return []
    moved = Path(known.file).absolute() != Path(experiment.file).absolute()
    edited = known.version != experiment.version
    file = out / EXPERIMENTS / f"{name}.json"
    if moved and edited:
        raise ValueError(
            f"{out}: its experiment {name!r} was made by {known.file}, and {experiment.file} is "
            f"another file with other content; rename the file, give another --out, or delete "
            f"{file} if it is to take its place"
        )
    if moved:
        return [f"{name} was {known.file} when {out} was begun; it has the same content"]
    if edited:
        return [
            f"{experiment.file} was edited since {out} was begun; runs that it still asks for are "
            f"kept, others stay in {out / 'runs'} and leave the page"
        ]
    return []


def _experiments(paths: Iterable[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in paths:
        for file in sorted((path / EXPERIMENTS).glob("*.json")):
            content = read_json(file)
            where = f"{file}: lists no jobs; run `rbve reproduce {file.stem}` again"
            schema.check(content, _LISTED, where)
            yield file.stem, content


def theory_runs(paths: Iterable[Path]) -> dict[str, list[Run]]:
    """experiment -> runs, of those that need no data."""
    found: dict[str, list[Run]] = {}
    for path in paths:
        for folder in sorted((path / THEORY).glob("*")):
            files = sorted([*folder.glob(_PACKED_THEORY), *(folder / "rows").rglob("*.jsonl")])
            runs = [run for file in files for run in rows.read_all(file)]
            if runs:
                found.setdefault(folder.name, []).extend(runs)
    return found


def kept(packed: Path) -> Kept:
    """Of a folder that `pack` wrote.

    Raises:
        ValueError: There are no packed rows.
    """
    file = packed / rows.PACKED
    if not file.is_file():
        raise ValueError(f"{packed}: no {rows.PACKED}; `rbve pack STUDY --out {packed}` writes it")
    runs = [run for run in rows.read_all(file) if is_finished(run)]
    marks: dict[str, list[str]] = {}
    for run in runs:
        data = run.spec.get("data") or {}
        own = marks.setdefault("/".join(Path(data.get("path", "")).parts[-3:]), [])
        if (mark := data.get("fingerprint", "")) not in own:
            own.append(mark)
    return Kept(frozenset(run.job for run in runs), marks)


def _without_place(run: Run) -> Run:
    """Its data as STUDY/data/KIND/SEED: where the study lay concerns nobody else."""
    place = Path(run.spec["data"]["path"])
    if not place.is_absolute():
        return run
    data = {**run.spec["data"], "path": Path(*place.parts[-4:]).as_posix()}
    return run._replace(spec={**run.spec, "data": data})


def _audits_of(studies: Sequence[Path], used: Set[str]) -> dict[str, Summary]:
    """Of all studies. Where two recorded the same kind of data, both audits stay if runs used both,
    the later one under the name of its study."""
    found: dict[str, Summary] = {}
    for study in studies:
        for name, each in read_audits(study).items():
            mark = found.get(name, each).get("fingerprint")
            other = mark != each.get("fingerprint") and mark in used
            found[f"{study.absolute().name}/{name}" if other else name] = each
    return found


def pack(studies: Sequence[Path], out: Path) -> Packed:
    """Of studies, packed ones too, into one folder; the last one that has an experiment counts, or
    of its ordinary and of its longer runs the last one that finished any.

    Rows last: a folder with rows is complete. `out` may be among the studies.
    """
    runs: list[Run] = []
    done: dict[str, Run] = {}
    lists: dict[str, dict[str, Any]] = {}
    for study in (each for each in studies if listed([each])):
        own = rows.find([study])
        finished = {run.job: run for run in own if is_finished(run)}
        for name, content in _experiments([study]):
            for part in ("jobs", "longer") if name in lists else ():
                if finished.keys().isdisjoint(content.get(part, ())):
                    content[part] = lists[name].get(part, [])
            lists[name] = content
        runs += own
        done |= finished
    wanted = {job for each in lists.values() for job in (*each["jobs"], *each.get("longer", ()))}
    theory = {name: runs for study in studies for name, runs in theory_runs([study]).items()}
    if not wanted and not theory:
        words = ", ".join(map(str, studies))
        raise ValueError(f"{words}: no study; make one with `rbve reproduce ... --out STUDY`")
    kept = [_without_place(run) for job, run in done.items() if job in wanted]
    audits = _audits_of(studies, {run.spec["data"].get("fingerprint") for run in kept})
    for name, mine in theory.items():
        rows.pack(mine, out / THEORY / name / _PACKED_THEORY)
    for file in [file for study in studies for file in sorted((study / FRAMES).glob("*.png"))]:
        write_atomically(out / file.parent.name / file.name, file.read_bytes())
    for name, content in lists.items():
        if "outline" in content:  # of a user's file the name alone
            content["outline"]["file"] = Path(content["outline"]["file"]).name
        write_json(out / EXPERIMENTS / f"{name}.json", content)
    if audits:
        write_json(out / AUDITS, audits)
    if kept:
        rows.pack(kept, out / rows.PACKED)
    left = sum(run.job not in wanted or not is_finished(run) for run in runs)
    return Packed(len(kept), left, sum(map(len, theory.values())))
