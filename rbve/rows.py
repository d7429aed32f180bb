"""Result rows: one tidy JSON-lines file per run, the job in its first line; reports read no more.

{"job": "<id>", "spec": {...}, "facts": {...}, "code": {"version": ..., "commit": ...}}
{"step": 5000, "metric": "return", "value": 0.98, "n": 100}

A packed file holds many runs, one after the other, compressed.
"""

import functools
import gzip
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any, NamedTuple

from rbve import schema
from rbve.files import commit_of, write_atomically

FILE = "rows.jsonl"
EVALUATION = "evaluation.jsonl"  # of an evaluator beside training, in the same form
PACKED = "rows.jsonl.gz"
MOST_BYTES = 1 << 28  # of a file of rows, unpacked; a study of a thousand runs has 32 MB
LONGEST_LINE = 1 << 24

FINISHED = "finished"  # the metric of the last row of a run that came to its end, value 1
TOLERATED_OUTSIDE = 0.05  # so little of it is not worth a word

_DAMAGE = (ValueError, KeyError, TypeError, IndexError, RecursionError)
VALUE = (str, bool, int, float, None, list)
# What reports, evaluators and policies read of a job and of its data; theory has other fields.
JOB = {
    "algorithm?": str, "settings?": {"*": VALUE}, "steps?": int, "group?": str, "replicate?": str,
    "data?": {
        "path?": str, "fingerprint?": str, "side?": str, "action?": str, "keep?": float, "*": VALUE,
    },
    "network?": {"stack?": int, "memory?": int, "*": VALUE},
    "view?": {"gamma?": float, "n_step?": int, "clip_rewards?": bool, "*": VALUE},
    "optimiser?": ({"learning_rate?": float, "*": VALUE}, str),  # a name in rows of theory
    "sampling?": {"batch_size?": int, "*": VALUE},
    "evaluation?": {
        "env?": (str, None), "every?": int, "eval_episodes?": int, "final_evaluations?": int,
        "eval_epsilon?": float, "*": VALUE,
    },
    "*": (*VALUE, dict),
}  # fmt: skip
NUMBER = (float, None)
_RECORDING = {
    "env?": (str, None), "behaviour?": (str, None), "noise?": NUMBER, "epsilon?": NUMBER,
    "keep?": NUMBER,
}  # fmt: skip
FACTS = {
    "env?": (str, None), "behaviour_return?": NUMBER, "best_return?": NUMBER,
    "random_return?": NUMBER, "reference_return?": NUMBER, "late_return?": NUMBER,
    "source?": {"*": VALUE}, "recording?": (_RECORDING, None), "possible_returns?": [float],
    "reference_source?": str, "evaluated?": {"*": VALUE}, "held_out_episodes?": int,
}  # fmt: skip
_HEADER = {"job": str, "spec": dict, "facts": FACTS, "code?": {"*": str}}


class Row(NamedTuple):
    step: int  # updates done
    metric: str
    value: float  # NaN where undefined
    n: int  # how many episodes, updates or evaluations the value averages


class Run(NamedTuple):
    job: str  # id
    spec: dict[str, Any]  # of rbve.spec.Spec; of theory, its own
    facts: dict[str, Any]  # of the data: behaviour, random and reference returns, sizes
    rows: list[Row]
    code: Mapping[str, str] = MappingProxyType({})  # version and commit of what trained it

    def field(self, name: str, default: Any = None) -> Any:
        """A field of the job by its flat name, in whichever part it is."""
        job = self.spec
        parts = [part for key, part in job.items() if isinstance(part, dict) and key != "settings"]
        return next((part[name] for part in (job, *parts) if name in part), default)

    @property
    def replicate(self) -> str:
        """Which dataset the run learns from."""
        return str(self.field("replicate") or _replicate_of(self.spec))

    @property
    def group(self) -> str:
        """Which problem it is of; its datasets are replicates."""
        return str(self.field("group") or _group_of(self.spec, self.facts))

    def last(self, metric: str) -> float | None:
        values = [row.value for row in self.rows if row.metric == metric]
        return values[-1] if values else None


def is_finished(run: Run) -> bool:
    """Whether a run came to its end. Rows of earlier versions say so by their final return."""
    return run.last(FINISHED) is not None or run.last("final/return") is not None


class RowFile:
    """Appends rows; `keep` drops what was written after the last checkpoint."""

    def __init__(self, folder: Path, job: str, spec: dict[str, Any], facts: dict[str, Any]) -> None:
        self.path = folder / FILE
        self.header = header(Run(job, spec, facts, [], code_version()))
        self.count = self.crc = 0  # of rows, and the checksum of the header and these rows

    def keep(self, count: int, crc: int = 0) -> None:
        """Start from the first `count` rows on disk; `crc` is that of the file up to them. Their
        header stays: it names the code that began the run, and the checkpoint counts it."""
        fresh = self.header.encode() + b"\n"
        content = first_rows(self.path, count, crc) if count else fresh
        self.count, self.crc = count, zlib.crc32(content)
        write_atomically(self.path, content)

    def take(self, path: Path, count: int) -> None:
        """Start from the first `count` rows of another file, under the header of this one's job
        but for the code, which is that which trained them."""
        first, *rows = path.read_bytes().splitlines(keepends=True)[: count + 1]
        own = {**json.loads(self.header), "code": json.loads(first).get("code", {})}
        content = b"".join([json.dumps(own).encode() + b"\n", *rows])
        self.count, self.crc = count, zlib.crc32(content)
        write_atomically(self.path, content)

    def append(self, rows: Sequence[Row]) -> None:
        fresh = "".join(json.dumps(row._asdict()) + "\n" for row in rows).encode()
        with open(self.path, "ab") as file:
            file.write(fresh)
            file.flush()
            os.fsync(file.fileno())
        self.count += len(rows)
        self.crc = zlib.crc32(fresh, self.crc)


def first_rows(path: Path, count: int, crc: int, last: bool = False) -> bytes:
    """The file up to them, if it has this checksum and, at the `last`, holds no more."""
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    held = b"".join(lines[: count + 1])
    if zlib.crc32(held) != crc or (last and len(lines) > count + 1):
        raise ValueError(f"{path}: damaged, not the {count} rows that the checkpoint counted")
    return held


def write(run: Run, file: Path) -> None:
    write_atomically(file, text(run).encode())


def header(run: Run) -> str:
    known = {"job": run.job, "spec": run.spec, "facts": run.facts}
    return json.dumps({**known, "code": dict(run.code)} if run.code else known)


@functools.cache
def code_version() -> dict[str, str]:
    """Version and commit of this code; "unknown" where nobody says."""
    place = Path(__file__).parents[1]
    commit = commit_of(place / ".git") or "unknown"
    if commit == "unknown" and (place / ".git").exists():
        command = ["git", "-C", str(place), "rev-parse", "HEAD"]
        with suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
            commit = done.stdout.strip()
    try:
        version = metadata.version("rbve")
    except metadata.PackageNotFoundError:
        version = "unknown"
    return {"version": version, "commit": commit}


def text(run: Run) -> str:
    return "\n".join([header(run), *(json.dumps(row._asdict()) for row in run.rows)]) + "\n"


def pack(runs: Iterable[Run], file: Path) -> None:
    """Equal runs give an equal file."""
    ordered = sorted(runs, key=lambda run: run.job)
    content = "".join(text(run) for run in ordered).encode()
    write_atomically(file, gzip.compress(content, mtime=0))


def read(path: Path) -> Run:
    runs = read_all(path)
    if len(runs) != 1:
        raise ValueError(f"{path}: not a file of result rows ({len(runs)} runs where one belongs)")
    return runs[0]


def read_all(path: Path) -> list[Run]:
    """Every run of a file, packed or not."""
    runs: list[Run] = []
    seen: set[tuple[int, str]] = set()  # of the run that is being read
    try:
        for number, line in enumerate(_lines_of(path), 1):
            fields = json.loads(line)
            if type(fields) is dict and "job" in fields:
                schema.check(fields, _HEADER, f"line {number}")
                job = upgraded(fields["spec"])
                if "experiment" not in job:  # else of theory, whose spec is its own
                    schema.check(job, JOB, f"line {number}", "spec")
                runs.append(Run(fields["job"], job, fields["facts"], [], fields.get("code", {})))
                seen = set()
            else:
                row = _row_of(fields, number)
                runs[-1].rows.append(row)
                seen.add((row.step, row.metric))
                if len(seen) < len(runs[-1].rows):
                    raise ValueError(
                        f"line {number}: a second {row.metric!r} of step {row.step}, as if two "
                        "processes had written it; delete the run's folder and train it again"
                    )
        return runs
    except (*_DAMAGE, EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{path}: not a file of result rows ({error})") from None


def _lines_of(path: Path) -> Iterator[bytes]:
    """Complete lines: one without its end was being written when the process was killed."""
    left = MOST_BYTES
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
        while line := file.readline(min(left, LONGEST_LINE) + 1):
            left -= len(line)
            if left < 0 or len(line) > LONGEST_LINE:
                raise ValueError(
                    f"unpacks to more than {MOST_BYTES >> 20} MB, or to a line of more than "
                    f"{LONGEST_LINE >> 20} MB; rows never take so much"
                )
            if line.endswith(b"\n"):
                yield line


def _row_of(fields: Any, number: int) -> Row:
    # By hand: a schema takes ten times as long, and a study has a million rows.
    row = Row(**fields)
    if (
        (type(row.step), type(row.metric), type(row.n)) == (int, str, int)
        and type(row.value) in (int, float)
        and 0 <= row.step <= schema.LARGEST
        and not sys.float_info.max < abs(row.value) < float("inf")
    ):
        return row
    raise ValueError(f"line {number}: not a row (step, metric, value, n)")


def find(paths: Iterable[Path]) -> list[Run]:
    """All runs below the given folders, in a stable order."""
    runs = []
    for path in paths:
        if not path.exists():
            raise ValueError(f"{path}: no such file or folder")
        files = [path] if path.is_file() else sorted([*path.rglob(FILE), *path.rglob(PACKED)])
        if not files:
            raise ValueError(
                f"{path}: no {FILE} below; train with `rbve train ... --out {path}` or "
                f"`rbve reproduce ... --out {path}`"
            )
        runs += [_with_evaluation(run, file) for file in files for run in read_all(file)]
    return runs


def _with_evaluation(run: Run, file: Path) -> Run:
    """A run whose figures come from an evaluator beside it, where there is one."""
    beside = file.parent / EVALUATION
    if file.name != FILE or not beside.exists():
        return run
    _, _, facts, figures, _ = read(beside)
    measured = {FINISHED, *(row.metric for row in figures)}
    kept = [row for row in run.rows if row.metric not in measured]
    return run._replace(facts=facts, rows=[*kept, *figures])


# Rows and policies of earlier versions: their job in the layout of today's Spec, and its names.
_PARTS = {
    "network": ("torso", "hidden", "stack", "memory", "rescale"),
    "view": ("gamma", "n_step", "clip_rewards"),
    "optimiser": ("learning_rate", "target_period"),
    "sampling": ("batch_size", "sequence", "burn_in", "rows"),
    "evaluation": ("env", "eval_episodes", "eval_epsilon", "every", "final_evaluations"),
}


def upgraded(job: Any) -> Any:
    """Of a flat layout ("spec", "config", learning rate and target period beside them)."""
    if not isinstance(job, dict) or not isinstance(job.get("spec"), dict):
        return job
    own = {name: value for name, value in job.items() if name not in ("spec", "config")}
    own |= {name: value for name, value in job["spec"].items() if name != "options"}
    numbers, choices = job.get("config", {}), job["spec"].get("options", {})
    if not isinstance(numbers, dict) or not isinstance(choices, dict):
        raise ValueError("the settings of the job are no objects")
    own["settings"] = {**numbers, **choices}
    for part, names in _PARTS.items():
        if held := {name: own.pop(name) for name in names if name in own}:
            own[part] = held
    return own


def _replicate_of(job: Mapping[str, Any]) -> str:
    """Of a job that names none: the data's content or place."""
    data = job.get("data", {})
    return str(data.get("fingerprint") or data.get("path", ""))


def _group_of(job: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """Of a job that names none: how its data was made but for the seed, and what was kept."""
    own = ("path", "keep_seed", "fingerprint", "holdout_seed")  # differ between replicates
    data = {k: v for k, v in job.get("data", {}).items() if k != "holdout"}  # a setting of methods
    kept = {name: value for name, value in data.items() if name not in own}
    made = recording_of(job, facts)
    origin = {"dataset": _replicate_of(job)} if made is None else {"recording": made}
    return json.dumps({**kept, **origin}, sort_keys=True)


def recording_of(job: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """How the data was recorded, but for the seed; None where nobody knows.

    Of a study's rows from before facts told recordings: by OUT/data/<env>-<noise>.../<seed>, and
    only where that is the name `rbve reproduce` gives to a recording with the run's facts and seed.
    """
    if isinstance(facts.get("recording"), dict):
        return facts["recording"]
    data, source = job.get("data", {}), facts.get("source") or {}
    env, noise, epsilon = facts.get("env"), source.get("noise"), source.get("epsilon")
    seed, player = data.get("keep_seed"), source.get("behaviour")
    if not isinstance(env, str) or not isinstance(noise, float) or not isinstance(seed, int):
        return None
    name = f"{env.replace(':', '-')}-{noise:g}"
    if player in ("policy", "script") and epsilon is not None:
        name += f"-{'expert' if player == 'policy' else 'script'}-{epsilon:g}"
    path = PurePath(str(data.get("path", "")))
    if path.parts[-3:] not in [("data", each, str(seed)) for each in (name, f"{name}-r2d2")]:
        return None
    return {**source, "env": env, "folder": str(path.parent)}
