"""Mutated inputs of every format, most of them past the checksums of their files.

A maker takes a seed and a random.Random and returns the files that change (None: deleted) and
whether a reader gets past the checksums to what was mutated. Formats without any always do.
"""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fuzz_mutations import EDGES, FLOATS, WORDS, damage, damage_json, damage_table
from fuzz_seeds import Seed
from rlu_records import chunk, example, frame

RAW = 0.25  # share of inputs, of formats with checksums, that fail at them


class Input(NamedTuple):
    changes: dict[str, bytes | None]
    past: bool


def make(seed: Seed, rng: Random) -> Input:
    return MAKERS[seed.format](seed, rng)


def native(seed: Seed, rng: Random) -> Input:
    manifest_file = "d/manifest.json"
    manifest = json.loads(seed.files[manifest_file])
    name = rng.choice(sorted(manifest["columns"]))
    file = f"d/{name}.bin"
    choice = rng.random()
    if choice < RAW:
        return Input({file: None if choice < 0.01 else damage(rng, seed.files[file])}, False)
    if choice < 0.6:
        return Input({manifest_file: damage_json(rng, manifest)}, True)
    data = damage(rng, seed.files[file])
    data = data.ljust(len(seed.files[file]), b"\0")
    manifest["columns"][name]["crc32"] = zlib.crc32(data[: len(seed.files[file])])
    text = damage_json(rng, manifest) if choice > 0.9 else json.dumps(manifest).encode()
    return Input({file: data, manifest_file: text}, True)


def npz(seed: Seed, rng: Random) -> Input:
    data = seed.files["d.npz"]
    if rng.random() < RAW:
        return Input({"d.npz": damage(rng, data)}, False)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for name in rng.sample(sorted(members), rng.choice([1, 1, 2])):
        members[name] = damaged_array(rng, name, members[name])
        if rng.random() < 0.05:
            members[rng.choice([*members, "dones.npy", "legal.npy", "x.npy"])] = members.pop(name)
    stream = io.BytesIO()
    packing = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    with zipfile.ZipFile(stream, "w", packing) as archive:
        for name, member in members.items():
            archive.writestr(zipfile.ZipInfo(name), member, packing)
    return Input({"d.npz": stream.getvalue()}, True)


def damaged_array(rng: Random, name: str, member: bytes) -> bytes:
    header, body = member[:128], member[128:]
    # Another member may have taken this one's name.
    if name == "meta.npy" and body[:1] == b"{" and body[-1:] == b"}" and rng.random() < 0.8:
        body = damage_json(rng, json.loads(body))
        return header_of("'|u1'", f"({len(body)},)") + body
    choice = rng.random()
    if choice < 0.4:
        return header + damage(rng, body)[: len(body)].ljust(len(body), b"\0")
    if choice < 0.6:
        return damage(rng, member)
    if choice < 0.7:
        return damage(rng, header) + body
    kind = rng.choice(["'<f4'", "'>f8'", "'|b1'", "'<i8'", "'|O'", "'<U3'", "[('a', '<f4')]", "3"])
    sizes = [rng.choice([1, 2, 3, 6, 9, len(body), *EDGES]) for _ in range(rng.randrange(4))]
    return header_of(kind, rng.choice([repr(tuple(sizes)), repr(sizes), "(1L,)", "None"])) + body


def header_of(kind: str, shape: str) -> bytes:
    text = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def csv(seed: Seed, rng: Random) -> Input:
    data = seed.files[seed.path]
    if not seed.path.endswith(".gz"):
        return Input({seed.path: damage_table(rng, data)}, True)
    if rng.random() < RAW:
        return Input({seed.path: damage(rng, data)}, False)
    return Input({seed.path: gzip.compress(damage_table(rng, gzip.decompress(data)), 1)}, True)


def parquet(seed: Seed, rng: Random) -> Input:
    data = seed.files["d.parquet"]
    if rng.random() < 0.7:
        return Input({"d.parquet": damage(rng, data)}, True)
    table = pq.read_table(pa.BufferReader(data))
    kept = (table.schema.metadata or {}).get(b"rbve")
    if kept is not None and rng.random() < 0.5:
        table = table.replace_schema_metadata({b"rbve": damage_json(rng, json.loads(kept))})
    else:
        table = damaged_table(rng, table)
    stream = io.BytesIO()
    pq.write_table(table, stream, compression=rng.choice(["none", "zstd"]))
    return Input({"d.parquet": stream.getvalue()}, True)


def damaged_table(rng: Random, table: pa.Table) -> pa.Table:
    index = rng.randrange(table.num_columns)
    name, column = table.column_names[index], table.column(index)
    choice = rng.randrange(6)
    if choice == 0:
        return table.drop_columns([name])
    if choice == 1:
        return table.slice(rng.randrange(table.num_rows), rng.randrange(table.num_rows))
    if choice == 2:
        return table.set_column(index, rng.choice(table.column_names), column)
    if choice == 3:
        rows = [rng.randrange(table.num_rows) for _ in range(table.num_rows)]
        return table.set_column(index, name, column.take(pa.array(rows)))
    if choice == 4:
        rows = [row if rng.random() < 0.7 else None for row in range(table.num_rows)]
        return table.set_column(index, name, column.take(pa.array(rows, pa.int64())))
    odd = rng.choice([EDGES[:12], FLOATS, WORDS, [b"\xff\0"], [[1, 2], []], [{"a": 1}], [None]])
    values = pa.array([odd[row % len(odd)] for row in range(table.num_rows)])
    return table.set_column(index, name, values)


def shards(seed: Seed, rng: Random) -> Input:
    """One of the files or stores is damaged as it would be alone, or gone, or of another kind."""
    files = sorted(seed.files)
    part = rng.choice(sorted({Path(file).parts[1] for file in files}))
    kind, own = Path(part).suffix.lstrip(".") or "native", f"d/{part}"
    if rng.random() < 0.1:
        other = rng.choice([None, b"", b"PAR1", b"a,b\n1,2\n"])
        return Input({file: other for file in files if file.startswith(own)}, True)
    alone = "d" if kind == "native" else f"d.{kind}"
    held = {
        alone + file.removeprefix(own): data for file, data in seed.files.items() if own in file
    }
    changed = MAKERS[kind](Seed(kind, seed.name, alone, held), rng)
    changes = {own + file.removeprefix(alone): data for file, data in changed.changes.items()}
    return Input(changes, changed.past)


def minari(seed: Seed, rng: Random) -> Input:
    if rng.random() < 0.4:
        file = "d/data/metadata.json"
        return Input({file: damage_json(rng, json.loads(seed.files[file]))}, True)
    return hdf5("d/data/main_data.hdf5", seed, rng)


def hdf5(file: str, seed: Seed, rng: Random) -> Input:
    if rng.random() < 0.8:
        return Input({file: damage(rng, seed.files[file])}, True)
    stream = io.BytesIO(seed.files[file])
    with h5py.File(stream, "r+") as opened:
        names: list[str] = []
        opened.visit(names.append)
        rebuild(rng, opened, rng.choice(names), rng.choice(names))
    return Input({file: stream.getvalue()}, True)


def rebuild(rng: Random, opened: Any, name: str, other: str) -> None:
    """Something else under a name."""
    attributes = list(opened[name].attrs)
    if attributes and rng.random() < 0.5:
        opened[name].attrs[rng.choice(attributes)] = rng.choice([*EDGES, *FLOATS, "a", [1, 2]])
        return
    held = opened[name][()] if isinstance(opened[name], h5py.Dataset) else None
    del opened[name]
    values = [
        h5py.SoftLink("/" + other),
        h5py.ExternalLink("/dev/zero", "/x"),
        np.zeros(rng.choice([(0,), (1,), (3, 1), (2, 2, 2), ()])),
        np.array([[1, 2], [3, 4]], rng.choice(["i1", "u8", ">f4", "c8", "S3"])),
        "text",
        np.array(["a", "b"], h5py.string_dtype()),
    ]
    if isinstance(held, np.ndarray) and held.ndim:
        values += [held[:-1], np.repeat(held, 2, 0), held[None], held.astype(str).astype("S")]
    if rng.random() < 0.8 and not name.startswith(other) and not other.startswith(name):
        opened[name] = rng.choice(values)


def minari_arrow(seed: Seed, rng: Random) -> Input:
    file = rng.choice(sorted(seed.files))
    data = seed.files[file]
    if rng.random() < 0.04:
        return Input({rng.choice([file, str(Path(file).with_name("x"))]): None}, True)
    if file.endswith(".json"):
        return Input({file: damage_json(rng, json.loads(data))}, True)
    if rng.random() < 0.8:
        return Input({file: damage(rng, data)}, True)
    table = damaged_table(rng, pa.ipc.open_file(data).read_all()).combine_chunks()
    stream = io.BytesIO()
    with pa.ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)
    return Input({file: stream.getvalue()}, True)


def d3rlpy(seed: Seed, rng: Random) -> Input:
    return hdf5("d.h5", seed, rng)


def rlu(seed: Seed, rng: Random) -> Input:
    examples = [example(record) for record in seed.records]
    choice = rng.random()
    if choice < RAW / 2:
        return Input({seed.path: damage(rng, seed.files[seed.path])}, False)
    if choice < RAW:
        return packed(seed, damage(rng, b"".join(map(frame, examples))), False)
    index = rng.randrange(len(examples))
    if choice < 0.5:
        examples[index] = damage(rng, examples[index])
    else:
        examples[index] = example(damaged_record(rng, seed.records[index]))
    return packed(seed, b"".join(map(frame, examples)), True)


def packed(seed: Seed, stream: bytes, past: bool) -> Input:
    return Input({seed.path: gzip.compress(stream, 1)}, past)


def damaged_record(rng: Random, record: dict[str, Any]) -> dict[str, Any]:
    record = dict(record)
    for name in rng.sample(sorted(record), rng.choice([1, 1, 2])):
        value = record.pop(name)
        if rng.random() < 0.9:
            record[name] = damaged_feature(rng, value)
    return record


def damaged_feature(rng: Random, value: Any) -> Any:
    if isinstance(value, list) and value and rng.random() < 0.7:
        index = rng.randrange(len(value))
        return [*value[:index], damaged_png(rng, value[index]), *value[index + 1 :]]
    if isinstance(value, np.ndarray) and value.size and rng.random() < 0.6:
        value = value.copy()
        odd = rng.choice([-1, 1, 0.5, *EDGES[:15], *(FLOATS if value.dtype.kind == "f" else [2])])
        with np.errstate(over="ignore"):
            value[rng.randrange(len(value))] = odd
        return value
    count = len(value)
    others = [value[:-1], value[:1], [*value, *value], [b""] * count, [], [b"\xff" * 9]]
    others += [np.zeros(count), np.zeros(count, int), np.full(count, -1), np.arange(2 * count)]
    chosen = rng.choice(others)
    numbers = isinstance(chosen, list) and chosen and not isinstance(chosen[0], bytes)
    return np.asarray(chosen) if numbers else chosen


def damaged_png(rng: Random, png: bytes) -> bytes:
    """Damage behind the image's own checksums; pixels are also damaged before they are deflated."""
    if rng.random() < 0.15:
        return damage(rng, png)
    chunks = []
    at = 8
    while at < len(png):
        (size,) = struct.unpack_from(">I", png, at)
        chunks.append((png[at + 4 : at + 8], png[at + 8 : at + 8 + size]))
        at += 12 + size
    index = rng.randrange(len(chunks))
    kind, data = chunks[index]
    if kind == b"IDAT" and rng.random() < 0.7:
        data = zlib.compress(damage(rng, zlib.decompress(data)), 1)
    else:
        data = damage(rng, data)
    chunks[index] = (kind, data)
    if rng.random() < 0.2:
        odd = rng.choice([b"tRNS", b"PLTE", b"gAMA", b"acTL", b"zTXt", b"IDAT", b"eXIf"])
        chunks.insert(rng.randrange(len(chunks)), (odd, rng.randbytes(rng.choice([0, 1, 6, 40]))))
    return png[:8] + b"".join(chunk(*each) for each in chunks)


MAKERS: dict[str, Callable[[Seed, Random], Input]] = {
    "native": native,
    "npz": npz,
    "csv": csv,
    "parquet": parquet,
    "minari": minari,
    "minari_arrow": minari_arrow,
    "d3rlpy": d3rlpy,
    "rlu": rlu,
    "shards": shards,
}
