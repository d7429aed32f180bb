"""The manifest of a native store: what columns there are, and whether it can be believed."""

import contextlib
import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rbve import schema
from rbve.data.dataset import Dataset
from rbve.data.episode import OPTIONAL_COLUMNS
from rbve.data.features import Features
from rbve.files import read_json, restore

SCHEMA = 1
MANIFEST = "manifest.json"
ROW_COLUMNS = ("obs", "action", "reward", *OPTIONAL_COLUMNS)
EPISODE_COLUMNS = ("length", "terminated", "complete", "episode_return", "final_observed")
# How columns lie on disk; observations may be any of NUMBERS.
NUMBERS = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")
DTYPES = {
    **dict.fromkeys(("action", "executed"), "<i4"),
    **dict.fromkeys(("reward", "propensity"), "<f4"),
    **dict.fromkeys(("legal", "terminated", "complete", "final_observed"), "|b1"),
    **{"length": "<i8", "episode_return": "<f8"},
}
PACKED = 1100  # deflate, the usual filter, makes data at most about 1030 times smaller
_FIELDS = {"finished": bool, "actions": list, "columns": dict, "provenance": dict}
_FIELDS |= {"episodes": int, "rows": int}
_NUMBER, _TEXT = (schema.FINITE, None), (str, None)
# Entries of the provenance that are used; the rest is free.
_PROVENANCE = {
    **dict.fromkeys(("env?", "behaviour?", "format?", "rewards?"), _TEXT),
    **dict.fromkeys(("noise?", "epsilon?", "keep?", "late_return?"), _NUMBER),
    "recorded_episodes?": (int, None),
    "reference?": ({"online?": _NUMBER, "random?": _NUMBER, "source?": _TEXT}, None),
    "policy?": ({"job?": {"data?": dict}}, None),
    "agent?": (dict, None),
    "select?": (list, None),
}
_COLUMN_FIELDS = {"file": str, "dtype": str, "shape": list, "count": int, "crc32": int}


def row_bytes(column: dict[str, Any]) -> int:
    return math.prod(column["shape"]) * np.dtype(column["dtype"]).itemsize


IN_MEMORY = "memory-"  # opens the fingerprints of datasets that are not in a store


def content_fingerprint(data: Dataset) -> str:
    """Of a dataset in memory: its columns; of observations a sample, since they may be large."""
    content = hashlib.sha256()
    step = max(1, len(data.action) // 1000)
    ends = (data.offsets, data.terminated, data.final_observed)
    for column in (data.action, data.reward, *ends, data.obs[::step], data.legal):
        if column is not None:
            content.update(np.ascontiguousarray(column).tobytes())
    return f"{IN_MEMORY}{content.hexdigest()[:16]}"


def fingerprint(path: Path) -> str:
    """Changes with what training sees: values, types, actions, features, not provenance."""
    facts = read_manifest(path)
    del facts["provenance"], facts["finished"]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def is_recorded(path: Path) -> bool:
    """Whether a store is there and was written to its end."""
    restore(path)
    file = path / MANIFEST
    manifest = read_json(file) if file.is_file() else None
    return isinstance(manifest, dict) and manifest.get("finished") is True


def read_manifest(path: Path) -> dict[str, Any]:
    restore(path)
    file = path / MANIFEST
    if not path.exists():
        raise ValueError(
            f"{path}: no such dataset; make one with `rbve record ENV --out PATH` or "
            "`rbve convert SRC DST`"
        )
    if not file.is_file():
        raise ValueError(
            f"{path}: no {MANIFEST}, so not a native store; make one with "
            f"`rbve convert {path} STORE`"
        )
    manifest = read_json(file)
    if not isinstance(manifest, dict) or manifest.get("format") != "rbve":
        raise ValueError(f"{file}: not the manifest of an rbve dataset")
    if manifest.get("schema") != SCHEMA:
        raise ValueError(
            f"{file}: schema {manifest.get('schema')!r}, and this version reads schema {SCHEMA}"
        )
    _check_fields(manifest, _FIELDS, f"{file}")
    check_provenance(manifest["provenance"], f"{file}")
    if manifest["episodes"] <= 0 or manifest["rows"] <= 0:
        raise ValueError(f"{path}: the dataset is empty (no complete episode); record again")
    names = manifest["actions"]
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise ValueError(f"{file}: 'actions' must list different names; damaged")
    for name in ("obs", "action", "reward", *EPISODE_COLUMNS):
        # Stores written before logs could lack final observations have all of them.
        older = name == "final_observed" and not (path / f"{name}.bin").exists()
        if name not in manifest["columns"] and not older:
            raise ValueError(f"{file}: lists no column {name!r}; damaged")
    for name, column in manifest["columns"].items():
        where = f"{file}: column {name!r}"
        _check_fields(column, _COLUMN_FIELDS, where)
        if name not in (*ROW_COLUMNS, *EPISODE_COLUMNS):
            raise ValueError(f"{where}: this version knows no such column")
        if column["file"] != f"{name}.bin":
            raise ValueError(f"{where}: its file must be '{name}.bin', not {column['file']!r}")
        if column["dtype"] not in (NUMBERS if name == "obs" else (DTYPES[name],)):
            raise ValueError(f"{where}: cannot hold dtype {column['dtype']!r}; damaged")
        sizes = column["shape"]
        expected = {"obs": sizes, "legal": [len(names)]}.get(name, [])
        if sizes != expected or not all(type(size) is int and size > 0 for size in sizes):
            raise ValueError(f"{where}: cannot have the shape {sizes} a row; damaged")
    return manifest


def _check_fields(content: Any, fields: dict[str, type], where: str) -> None:
    for name, kind in fields.items():
        if not isinstance(content, dict) or type(content.get(name)) is not kind:
            raise ValueError(f"{where}: {name!r} is missing or no {kind.__name__}; damaged")


def is_names(value: Any) -> bool:
    """Whether it lists names, none of them twice."""
    names = value if isinstance(value, list) and all(type(name) is str for name in value) else []
    return 0 < len(names) == len(set(names))


def facts_of(part: Any) -> dict[str, Any]:
    """What a file written here says of a Dataset beside its columns; read_facts() reads it."""
    features = None if part.features is None else part.features.to_json()
    actions = list(part.actions)
    return {
        "schema": SCHEMA,
        "actions": actions,
        "features": features,
        "provenance": part.provenance,
    }


def read_facts(facts: Any, where: str, damaged: ValueError) -> dict[str, Any]:
    """Actions, features and provenance of a Dataset, from what a file written here says of it."""
    if not isinstance(facts, dict) or not is_names(facts.get("actions")):
        raise damaged
    if not isinstance(facts.get("provenance"), dict):
        raise damaged
    check_provenance(facts["provenance"], where)
    features = facts.get("features")
    return {
        "actions": tuple(facts["actions"]),
        "features": None if features is None else Features.from_json(features, where),
        "provenance": facts["provenance"],
    }


@contextlib.contextmanager
def named(where: str, advice: str = "the file is damaged") -> Iterator[None]:
    """Whatever a library raises over a damaged file, as one line that says where."""
    try:
        yield
    except Exception as error:  # h5py, zipfile and NumPy raise a dozen kinds
        reason = (str(error).splitlines() or [""])[0].rstrip(".") or type(error).__name__
        raise ValueError(f"{where}: cannot be read ({reason}); {advice}") from None


def read_provenance(path: Path) -> dict[str, Any]:
    """How the data of a store came to be."""
    file = path / MANIFEST
    manifest = read_json(file)
    _check_fields(manifest, {"provenance": dict}, f"{file}")
    check_provenance(manifest["provenance"], f"{file}")
    return manifest["provenance"]


def check_provenance(provenance: dict[str, Any], where: str) -> None:
    """What is read of it elsewhere has its type, or is null."""
    where = f"{where}: malformed provenance; correct this entry or remove it"
    schema.check(provenance, _PROVENANCE, where)
