"""Which jobs train together: those of one program in bundles, and none that is finished.

A bundle is a JSON file and its results are the folders of its jobs, so that whoever can start
`python -m rbve.sweep.worker BUNDLE.json OUT` somewhere can run it. Every job writes to its own
folder and resumes from it: how jobs are bundled, and where they run, changes nothing in the rows.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from rbve import schema
from rbve.data.dataset import Dataset
from rbve.data.formats import load
from rbve.files import read_json, write_json
from rbve.parts import DataRef
from rbve.spec import Spec
from rbve.sweep import copies
from rbve.training.batches.sequences import longest_episode
from rbve.training.batches.transitions import transition_items
from rbve.training.run import is_finished

# Bytes of a column whose checksum is checked before training; `rbve inspect` checks all.
_VERIFIED = 1 << 30
_FILE = {"jobs": [dict], "devices": int, "stores?": {"*": str}}
_NO_MARKS: Mapping[str, str] = MappingProxyType({})


class Bundle(NamedTuple):
    """Jobs of one program, or several, and over how many devices each of their batches is split."""

    jobs: tuple[Spec, ...]
    devices: int = 1
    stores: Mapping[str, str] = _NO_MARKS  # path -> mark, where copies serve (copies.py)

    @property
    def name(self) -> str:
        return hashlib.sha256(" ".join(job.id for job in self.jobs).encode()).hexdigest()[:12]

    def write(self, folder: Path, attempt: str = "") -> Path:
        file = folder / f"{self.name}{attempt}.json"
        jobs = [job.to_json() for job in self.jobs]
        stores = {"stores": dict(self.stores)} if self.stores else {}
        write_json(file, {"jobs": jobs, "devices": self.devices, **stores})
        return file

    @staticmethod
    def read(file: Path) -> "Bundle":
        content = read_json(file)
        schema.check(content, _FILE, f"{file}: not a bundle of jobs")
        try:
            jobs = tuple(map(Spec.from_json, content["jobs"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{file}: not a bundle of jobs of this version ({error})") from None
        if not jobs:
            raise ValueError(f"{file}: a bundle without jobs")
        return Bundle(jobs, content["devices"], content.get("stores", {}))


@dataclass(frozen=True)
class Stores:
    """Datasets by path, each opened once; with a mark a copy serves where its path does not."""

    opened: dict[str, Dataset] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)
    _views: dict[DataRef, Dataset] = field(default_factory=dict)
    _held_out: dict[DataRef, Dataset | None] = field(default_factory=dict)

    def of(self, ref: DataRef) -> Dataset:
        """The episodes that train."""
        if ref not in self._views:
            self._views[ref] = ref.of(self._opened(ref))
        return self._views[ref]

    def held_out(self, ref: DataRef) -> Dataset | None:
        """The episodes that judge, where there are any."""
        if ref not in self._held_out:
            self._held_out[ref] = ref.held_out(self._opened(ref)) if ref.holdout else None
        return self._held_out[ref]

    def _opened(self, ref: DataRef) -> Dataset:
        if ref.path not in self.opened:
            place = copies.located(ref.path, self.marks.get(ref.path, ""))
            self.opened[ref.path] = load(place or ref.path, verify=_VERIFIED)
        return self.opened[ref.path]


def bundles(
    jobs: Sequence[Spec], out: Path, stores: Stores, workers: int, devices: int = 1
) -> list[Bundle]:
    """Jobs without a finished run in `out`, each once, cut so that every worker has some. Jobs
    share a bundle if they have one program and one kind of data."""
    programs: dict[Any, list[Spec]] = {}
    for job in {job.id: job for job in jobs}.values():
        data = stores.of(job.data)  # opened for finished ones too: a store that is gone is told
        if is_finished(out / job.id):
            continue
        shapes: tuple[Any, ...] = (transition_items(data, 1), data.features)
        if job.network.memory and not job.sampling.sequence:
            # Sequences as long as the longest episode; to pad to a longer one changes low bits.
            shapes = (*shapes, longest_episode(job.load_algorithm().keep(data)))
        programs.setdefault((job.program, shapes), []).append(job)
    if len(programs) >= 2 * workers:
        parts = list(programs.values())
    else:
        parts = [members[k::workers] for members in programs.values() for k in range(workers)]
    return [Bundle(tuple(part), devices) for part in parts if part]
