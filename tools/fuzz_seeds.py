"""Small valid datasets of every format, as the files they consist of."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import rlu_records
from rlu_records import example, write_shard

from rbve.data import Dataset, Episode, write
from rbve.data.features import Feature, Features

Files = dict[str, bytes]


@dataclass(frozen=True)
class Seed:
    format: str
    name: str
    path: str  # of the dataset, in the folder of its files
    files: Files
    records: tuple[dict[str, Any], ...] = ()  # what a shard of TFRecords was made of


def full() -> Dataset:
    """Features, names, masks, fragments, unseen ends: all that a dataset can hold."""
    features = Features(
        (
            Feature("age", mean=40.0, scale=10.0),
            Feature("ward", "category", categories=("A", "B, C", "ü")),
        )
    )
    kinds = [(3, True, True, True), (1, False, True, True), (1, False, False, True)]
    kinds += [(2, True, True, False)]
    rng = np.random.default_rng(0)
    episodes = []
    for length, terminated, complete, known in kinds:
        rows = length + 1
        obs = np.stack([rng.normal(size=rows), rng.integers(3, size=rows)], 1).astype(np.float32)
        if not known:
            obs[-1] = obs[-2]
        action = np.append(rng.integers(3, size=length), -1 if complete else 2)
        episodes.append(
            Episode(
                obs,
                action,
                np.append(rng.normal(size=length), 0).astype(np.float32),
                terminated,
                complete,
                None if complete else 4.5,
                executed=action,
                legal=np.ones((rows, 3), bool),
                propensity=np.full(rows, 0.5, np.float32),
                final_observed=known,
            )
        )
    return Dataset.from_episodes(episodes, ["go", "stay", "ü"], {"source": "seed"}, features)


def plain() -> Dataset:
    rng = np.random.default_rng(1)
    episodes = [
        Episode.from_steps(
            rng.integers(0, 256, (length + 1, 2, 3), dtype=np.uint8),
            rng.integers(2, size=length),
            rng.normal(size=length),
            length != 2,
        )
        for length in (3, 2, 1)
    ]
    return Dataset.from_episodes(episodes, 2)


def image_frames() -> Dataset:
    frames = np.zeros((3, 33, 34, 3), np.uint8)
    frames[1:, 4:9] = 200
    return Dataset.from_episodes([Episode.from_steps(frames, [0, 1], [1.0, 2.0], True)], 2)


def flat_arrays() -> dict[str, np.ndarray]:
    obs = np.arange(12, dtype=np.float32).reshape(6, 2)
    return {
        "observations": obs,
        "actions": np.array([2, 0, 2, 0, 1, 2]),
        "rewards": np.array([1, 2, 4, 8, 16, 32.5]),
        "terminals": np.array([0, 1, 0, 0, 0, 0], bool),
        "timeouts": np.array([0, 0, 1, 0, 0, 0], bool),
        "next_observations": obs + 2,
    }


def read_files(folder: Path) -> Files:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def build(scratch: Path) -> list[Seed]:
    """All seeds; `scratch` is an empty folder to make them in."""
    seeds = []

    def add(format: str, name: str, path: str, **more: Any) -> None:
        seeds.append(Seed(format, name, path, read_files(scratch / name), **more))

    def folder(name: str) -> Path:
        (scratch / name).mkdir()
        return scratch / name

    for made in (full, plain):
        for format in ("native", "npz", "csv", "parquet", "minari", "minari_arrow"):
            name = f"{format}-{made.__name__}"
            path = f"d.{format}" if format in ("npz", "csv", "parquet") else "d"
            write(made(), folder(name) / path, format)
            add(format, name, path)
    write(image_frames(), folder("minari-frames") / "d", "minari")
    add("minari", "minari-frames", "d")
    np.savez_compressed(folder("npz-flat") / "d.npz", **flat_arrays())
    add("npz", "npz-flat", "d.npz")
    packed = gzip.compress((scratch / "csv-full" / "d.csv").read_bytes(), mtime=0)
    (folder("csv-gzip") / "d.csv.gz").write_bytes(packed)
    add("csv", "csv-gzip", "d.csv.gz")
    table = pq.read_table(scratch / "parquet-full" / "d.parquet")
    bare = table.replace_schema_metadata(None)
    pq.write_table(bare, folder("parquet-foreign") / "d.parquet", compression="none")
    add("parquet", "parquet-foreign", "d.parquet")
    for format, suffix in (("parquet", ".parquet"), ("csv", ".csv"), ("native", "")):
        name = f"shards-{format}"
        (folder(name) / "d").mkdir()
        for number in range(1 if format == "csv" else 2):  # texts number episodes through
            write(full(), scratch / name / "d" / f"part-{number}{suffix}", format)
        add("shards", name, "d")
    write_d3rlpy(folder("d3rlpy") / "d.h5")
    add("d3rlpy", "d3rlpy", "d.h5")
    for kind, records in tfrecords().items():
        path = "run_1-00000-of-00001"
        write_shard(folder(f"rlu-{kind}") / path, map(example, records))
        add("rlu", f"rlu-{kind}", path, records=records)
    return seeds


def write_d3rlpy(path: Path) -> None:
    """A replay buffer as version 2 dumps it."""
    import h5py

    with h5py.File(path, "w") as file:
        file["columns"] = ["observations", "actions", "rewards", "terminated"]
        file["num_episodes"] = 2
        file["version"] = "2.1"
        for index, length in enumerate((3, 1)):
            file[f"observations_{index}"] = np.arange(2.0 * length, dtype="f4").reshape(length, 2)
            file[f"actions_{index}"] = np.arange(length)[:, None] % 2
            file[f"rewards_{index}"] = np.ones((length, 1), np.float32)
            file[f"terminated_{index}"] = index == 0


def tfrecords() -> dict[str, tuple[dict[str, Any], ...]]:
    """Frames of few values, since noise is slow to deflate."""

    def calm(record: dict[str, Any]) -> dict[str, Any]:
        gray, colour = np.full((84, 84), 7, np.uint8), np.full((72, 96, 3), 9, np.uint8)
        gray[10:20, 30:60] = 250
        for name, pixels in (
            ("o_t", gray),
            ("o_tp1", gray),
            ("observations", gray),
            ("observations_pixels", colour),
        ):
            if name in record:
                record[name] = [rlu_records.png(pixels)] * len(record[name])
        return record

    makers = {
        "sarsa": rlu_records.sarsa,
        "atari": rlu_records.atari,
        "bsuite": rlu_records.bsuite,
        "dmlab": rlu_records.dmlab,
    }
    return {kind: (calm(make(0)), calm(make(1))) for kind, make in makers.items()}
