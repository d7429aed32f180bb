"""A Source: a dataset read part by part, so that none has to fit into memory; its faults."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from rbve.data.check import check_values
from rbve.data.dataset import OPTIONAL_COLUMNS, Dataset, Episode
from rbve.data.features import Features

PART_BYTES = 1 << 26  # of a part, about
_T = TypeVar("_T")
_R = TypeVar("_R")
_EPISODE_BYTES = 2000  # what an Episode takes besides its columns, about


class Fault(NamedTuple):
    """Something wrong with the data that a reader met."""

    kind: str  # short, the same words each time: "unsorted time"
    text: str  # file, row or episode, what is wrong and what to do


OnFault = Callable[[Fault], None]
Text = str | Callable[[int], str]  # about a row


def refuse(fault: Fault) -> None:
    """What readers do by default. An audit collects faults instead and reads on."""
    raise ValueError(fault.text)


class Report:
    """Passes each fault on, once, as the file and a line about it."""

    def __init__(self, path: Path, on_fault: OnFault) -> None:
        self.path, self.on_fault = path, on_fault
        self.place: Callable[[int], str] = lambda row: f"row {row}"
        self._reported: set[str] = set()
        self._unread: list[str] = []  # what could not be read as it stands
        self.parts: list[Report] = []  # of files that are read as one

    def shifted(self, rows: int) -> "Report":
        """For a reader that begins with that row and counts from 0."""
        report = Report(self.path, self.on_fault)
        report.place = lambda row: self.place(rows + row)
        return report

    def fault(self, kind: str, text: str) -> None:
        text = _one_line(text)
        if text not in self._reported:
            self._reported.add(text)
            self.on_fault(Fault(kind, f"{self.path}: {text}"))

    def unreadable(self, kind: str, text: str) -> None:
        """For what is there and was not understood; `stop` before anything rests on it."""
        self._unread.append(_one_line(text))
        self.fault(kind, text)

    def stop(self) -> None:
        """Refuse what was unreadable, also where faults are collected."""
        for part in self.parts:
            part.stop()
        if self._unread:
            more = f" ({len(self._unread) - 1} more like it)" if len(self._unread) > 1 else ""
            raise ValueError(f"{self.path}: {self._unread[0]}{more}")

    def fatal(self, kind: str, text: str) -> NoReturn:
        """For what leaves nothing to read on with."""
        self.fault(kind, text)
        raise ValueError(f"{self.path}: {_one_line(text)}")

    def row(self, kind: str, row: int, text: str, like_it: int = 0) -> None:
        more = f" ({like_it} more rows like it)" if like_it else ""
        self.fault(kind, f"{self.place(row)}: {text}{more}")

    def rows(self, kind: str, wrong: np.ndarray, first: int, text: Text) -> None:
        """The first row that is wrong, counted from `first`; a function takes its index."""
        if wrong.any():
            index = int(np.argmax(wrong))
            line = text if isinstance(text, str) else text(index)
            self.row(kind, first + index, line, int(wrong.sum()) - 1)

    def damage(self, error: BaseException, row: int) -> None:
        """`row` is the first that could not be read."""
        words = str(error).split("\n")[0] or type(error).__name__
        self.fault(
            "damaged file",
            f"cannot be read from {self.place(row)} on ({words}); the file is cut off or damaged, "
            "copy or export it again",
        )


def _one_line(text: str) -> str:
    """Names and values of a file may hold anything."""
    return " ".join(text.splitlines())


@dataclass
class Source:
    parts: Iterator[Dataset]  # whole episodes, in order; equal columns, actions and features
    total: int = 0  # size of the input, in what `position` counts; 0 = unknown
    position: Callable[[], int] = lambda: 0  # how much of it was read
    notes: list[str] = field(default_factory=list)  # what the user should know, not wrong in itself
    # The same episodes in pieces that can be read at one time, in their order; none if they cannot.
    pieces: "Callable[[], list[Source]]" = list


def parts_of(dataset: Dataset, part_bytes: int = PART_BYTES) -> Source:
    """A Source of a dataset at hand; columns mapped from disk are read as parts are used."""
    row = sum(
        column.dtype.itemsize * max(1, column[:1].size)
        for column in (dataset.obs, dataset.legal)
        if column is not None
    )
    rows_at_once = max(1, part_bytes // row)
    read = 0

    def parts() -> Iterator[Dataset]:
        nonlocal read
        start = 0
        while start < dataset.num_episodes:
            limit = dataset.offsets[start] + rows_at_once
            stop = int(dataset.offsets.searchsorted(limit, side="right")) - 1
            stop = min(max(stop, start + 1), dataset.num_episodes)
            yield dataset.part(start, stop)
            read = int(dataset.offsets[stop])
            start = stop

    return Source(parts(), len(dataset.action), lambda: read)


def for_writing(source: Source, path: Path) -> Iterator[tuple[int, Dataset]]:
    """(number of its first episode, part) of every part, after a check of its values."""
    episodes = 0
    for part in source.parts:
        check_values(part, f"{path}: ", episodes)
        yield episodes, part
        episodes += part.num_episodes
    if not episodes:
        raise ValueError(f"{path}: not written, since there is no episode to write")


def gather(
    episodes: Iterable[Episode],
    path: Path,
    actions: tuple[str, ...],
    provenance: dict[str, Any],
    total: int,
    features: Features | None = None,
) -> Source:
    """A Source of `total` episodes of the file or folder at `path`, counted in episodes."""
    done = 0

    def parts() -> Iterator[Dataset]:
        nonlocal done
        for held in groups(_alike(episodes, path)):
            yield Dataset.from_episodes(held, actions, provenance, features, f"{path}: ", done)
            done += len(held)

    return Source(parts(), total, lambda: done)


def groups(episodes: Iterable[Episode], most: int = PART_BYTES) -> Iterator[list[Episode]]:
    """Lists of about `most` bytes."""
    held: list[Episode] = []
    size = 0
    for episode in episodes:
        held.append(episode)
        size += _EPISODE_BYTES + sum(getattr(column, "nbytes", 0) for column in episode)
        if size >= most:
            yield held
            held, size = [], 0
    if held:
        yield held


def _alike(episodes: Iterable[Episode], path: Path) -> Iterator[Episode]:
    """All with the columns and the type of observations of the first one."""
    first: Episode | None = None
    for index, episode in enumerate(episodes):
        first = first or episode
        where = f"{path}: episode {index}"
        for name in OPTIONAL_COLUMNS:
            if (getattr(episode, name) is None) != (getattr(first, name) is None):
                raise ValueError(f"{where}: '{name}' must be there in all episodes or in none")
        if episode.obs.shape[1:] != first.obs.shape[1:]:
            raise ValueError(
                f"{where}: observations have shape {episode.obs.shape[1:]}, those of the first "
                f"episode {first.obs.shape[1:]}"
            )
        if not np.can_cast(episode.obs.dtype, first.obs.dtype):
            raise ValueError(
                f"{where}: observations are {episode.obs.dtype}, those of the first episode "
                f"{first.obs.dtype}"
            )
        yield episode._replace(obs=episode.obs.astype(first.obs.dtype, copy=False))


def on_cores(work: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    """What `work` makes of the items, in their order; as many at a time as there are cores.

    The first item's error is raised, and what has not begun by then never does.
    """
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()
