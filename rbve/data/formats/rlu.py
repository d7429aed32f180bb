"""RL Unplugged TFRecords, read without TensorFlow: Atari, bsuite and DeepMind Lab.

The path is a shard, a glob of shards or a folder of them, at any depth; shards are read in the
order of their names. What the records are is told by their features, not by the path. Frames are
decoded in threads while the next records are read and inflated; what is in flight is bounded.
"""

import glob
import math
import re
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rbve.data._rlu import schemas
from rbve.data._rlu.schemas import DMLAB_ACTIONS, SCHEMAS, RecordFeatures, kind_of
from rbve.data._rlu.tfrecord import GZIP_MAGIC, Record, parse_example, records
from rbve.data.dataset import Dataset
from rbve.data.episode import Episode
from rbve.data.images import opencv
from rbve.data.source import PART_BYTES, Fault, OnFault, Source, groups, refuse

# Shards as RL Unplugged names them, and what others call theirs.
_NAMED = re.compile(r"(run_\d+|\d+_full(_train|_valid)?|tfrecord)-\d{5}-of-\d{5}")
_SHARD = re.compile(r".*-\d{5}-of-\d{5}|.*\.tfrecords?(\.gz)?")

_THREADS = 2
WAITING = 4  # batches being decoded or decoded already
_WAITING_BYTES = 1 << 24  # of their records; frames grow 2 to 8 times when decoded
_BATCH_BYTES = 1 << 20  # of records decoded in one go
BATCH_RECORDS = 256
_MOST_ACTIONS = 1000  # ids beyond are damage, not decisions
_SURVEYED = frozenset(["a_t", "a_tp1", "d_t", "actions", "action", "step_type"])
_Decode = Callable[[Record | Fault], Episode | Fault | None]


@dataclass(frozen=True)
class Options:
    # Size of the action set. None: known by the kind of data, or for Atari counted in a first
    # pass over all shards.
    actions: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.actions, tuple):  # from the command line, where logs list names
            if len(self.actions) != 1 or not self.actions[0].isdecimal():
                raise ValueError(f"actions must be how many there are; got {self.actions}")
            object.__setattr__(self, "actions", int(self.actions[0]))
        if self.actions is not None and not 1 <= self.actions <= _MOST_ACTIONS:
            raise ValueError(f"actions must lie in 1 to {_MOST_ACTIONS}; got {self.actions}")


@dataclass
class _Progress:
    """How far reading is, and what it met."""

    done: int = 0  # bytes of files read to their end
    current: int = 0  # of the file being read
    checkpoints: set[int] = field(default_factory=set)  # of the agent that acted, in Atari episodes


def recognises(path: Path) -> bool:
    try:
        file = next(iter(_shards(path)), None)
    except OSError:
        return False
    return file is not None and (_NAMED.fullmatch(file.name) is not None or holds_records(file))


def holds_records(file: Path) -> bool:
    """Whether its first record is one of ours; checksums are left to read()."""
    try:
        with open(file, "rb") as raw:
            if raw.read(2) != GZIP_MAGIC:
                return False
        kind_of(parse_example(_first_record(file, checked=False).data))
    except (ValueError, OSError):
        return False
    return True


def _shards(path: Path) -> list[Path]:
    """Files of a path, in the order of their names."""
    if path.is_file():
        return [path]
    if path.is_dir():
        files = (file for file in path.rglob("[!.]*") if file.is_file())
        return sorted(file for file in files if _SHARD.fullmatch(file.name))
    if not glob.has_magic(str(path)):
        return []
    matches = glob.glob(str(path), recursive=True)
    return sorted({file for match in matches for file in _shards(Path(match))})


def _first_record(file: Path, checked: bool = True) -> Record:
    with closing(records(file, checked)) as stream:
        return next(stream)


def read(path: Path, options: Options | None = None, on_fault: OnFault = refuse) -> Source:
    options = options or Options()
    files = _shards(path)
    if not files:
        raise ValueError(
            f"{path}: no shard of RL Unplugged there; give a shard, a glob or a folder of files "
            "named like run_1-00000-of-00100"
        )
    opencv()  # missing packages are told before anything is read
    record = _first_record(files[0])
    try:
        features = parse_example(record.data)
        kind = kind_of(features)
        obs_shape = SCHEMAS[kind].obs_shape or schemas.bsuite_shape(features)
    except ValueError as error:
        raise ValueError(f"{record.place}: {error}") from None
    known = _known_actions(path, kind, obs_shape, options)
    sizes = sum(file.stat().st_size for file in files)
    progress = _Progress()
    notes = [_NOTES[kind]] if kind in _NOTES else []
    provenance: dict[str, Any] = {"source": str(path), "format": "rlu", "kind": kind}
    provenance["shards"] = len(files)
    if kind.startswith("atari"):
        provenance["rewards"] = "clipped"  # so returns do not compare with a game's scores

    def parts() -> Iterator[Dataset]:
        actions = _survey(files, kind, progress, notes) if known is None else known
        decode = partial(_decode, kind, obs_shape, len(actions), progress)
        first = 0
        with closing(_episodes(files, decode, progress, on_fault)) as stream:
            for held in groups(stream, PART_BYTES):
                part = Dataset.from_episodes(
                    held, actions, provenance, None, f"{path}: ", first, on_fault is refuse
                )
                first += len(held)
                held.clear()  # copied; freed before the next are decoded
                if met := progress.checkpoints:  # all of them by the last part
                    provenance["checkpoints"] = [min(met), max(met)]
                yield part
        if first == 0:
            raise ValueError(f"{path}: no episode could be read")

    passes = 1 if known else 2
    return Source(parts(), passes * sizes, lambda: progress.done + progress.current, notes)


_NOTES = {
    "atari episodes": (
        "rewards of RL Unplugged's Atari episodes are clipped to [-1, 1]; episodes of "
        f"{schemas.ATARI_LIMIT} steps were cut by the recording and count as truncated"
    ),
    "atari sarsa": (
        "SARSA tuples tell no reward-to-go: their episode's return, of clipped rewards, stands in"
    ),
    "bsuite": "records of two steps tell no reward-to-go: their episode's return stands in",
}


def _known_actions(
    path: Path, kind: str, obs_shape: tuple[int, ...], options: Options
) -> tuple[str, ...] | None:
    """None: the data has to be asked."""
    if kind == "dmlab":
        if options.actions not in (None, len(DMLAB_ACTIONS)):
            raise ValueError(
                f"{path}: DeepMind Lab records are of {len(DMLAB_ACTIONS)} actions, and 'actions' "
                f"says {options.actions}; leave it out"
            )
        return DMLAB_ACTIONS
    count = options.actions
    if count is None and kind == "bsuite" and obs_shape in schemas.BSUITE_SHAPES.values():
        count = schemas.BSUITE_ACTIONS
    return None if count is None else tuple(map(str, range(count)))


def _survey(files: list[Path], kind: str, progress: _Progress, notes: list[str]) -> tuple[str, ...]:
    """Actions that occur, by a first pass over all records; no frame is decoded for it."""
    seen: set[int] = set()
    pool = ThreadPoolExecutor(_THREADS)
    try:
        actions_of = pool.map(_seen_in, files, [kind] * len(files))
        for file, actions in zip(files, actions_of, strict=True):
            seen.update(actions)
            progress.done += file.stat().st_size
    finally:
        pool.shutdown(cancel_futures=True)
    count = max(seen, default=0) + 1
    text = f"{count} actions, as ids 0 to {count - 1} occur; declare 'actions' if there are more"
    if holes := sorted(set(range(count)) - seen):
        text += f". Ids {', '.join(map(str, holes))} never occur"
    notes.append(text)
    return tuple(map(str, range(count)))


def _seen_in(file: Path, kind: str) -> set[int]:
    most = schemas.ATARI_ACTIONS if kind.startswith("atari") else _MOST_ACTIONS
    seen: set[int] = set()
    try:
        for record in records(file):
            row = RecordFeatures(parse_example(record.data, _SURVEYED))
            ids = np.unique(schemas.actions_of(kind, row))
            seen.update(ids[(ids >= 0) & (ids < most)].tolist())
    except ValueError:
        pass  # the pass that decodes names what is wrong, in order
    return seen


def _episodes(
    files: list[Path], decode: _Decode, progress: _Progress, on_fault: OnFault
) -> Generator[Episode, None, None]:
    """All episodes, in order; a few batches are decoded ahead."""
    waiting: deque[tuple[float, Future[list[Episode | Fault | None]]]] = deque()
    pool = ThreadPoolExecutor(_THREADS)
    try:
        for size, batch in _batches(files, progress):
            waiting.append((size, pool.submit(list, map(decode, batch))))
            while len(waiting) >= WAITING or sum(size for size, _ in waiting) > _WAITING_BYTES:
                for item in waiting.popleft()[1].result():
                    if isinstance(item, Fault):
                        on_fault(item)
                    elif item is not None:
                        yield item
    finally:
        pool.shutdown(cancel_futures=True)


def _batches(
    files: list[Path], progress: _Progress
) -> Iterator[tuple[float, list[Record | Fault]]]:
    """Records to decode in one go, and their bytes: of the last infinitely many, to wait for all.

    Where a shard is damaged, a Fault stands for the rest of it.
    """
    batch: list[Record | Fault] = []
    size = 0
    for file in files:
        try:
            for record in records(file):
                progress.current = record.read
                batch.append(record)
                size += len(record.data)
                if size >= _BATCH_BYTES or len(batch) >= BATCH_RECORDS:
                    yield size, batch
                    batch, size = [], 0
        except ValueError as error:
            batch.append(Fault("damaged shard", str(error)))
        progress.current = 0
        progress.done += file.stat().st_size
    yield math.inf, batch


def _decode(
    kind: str, shape: tuple[int, ...], actions: int, progress: _Progress, record: Record | Fault
) -> Episode | Fault | None:
    """None for a record that holds no decision."""
    if isinstance(record, Fault):
        return record
    try:
        row = RecordFeatures(parse_example(record.data))
        schema = SCHEMAS[kind]
        if not schema.features <= row.keys():
            raise ValueError(
                f"holds {kind_of(row)} data, and the first record {kind} data; read them apart"
            )
        episode = schema.episode(row, shape, actions)
        if "checkpoint_idx" in row:
            progress.checkpoints.add(int(row.ints("checkpoint_idx", 1)[0]))
        return episode
    except schemas.Contradiction as error:
        text = f"{record.place} contradicts itself: {error}; leave this shard out"
        return Fault("contradictory record", text)
    except ValueError as error:
        return Fault("damaged record", f"{record.place}: {error}")
