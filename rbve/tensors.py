"""Checkpoints and policies: one safetensors file, written atomically.

The header's metadata has one entry, JSON with sorted keys: the content's own `info` and a checksum
over it and over the name, type, shape and bytes of every array. So equal content gives equal files.
"""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from rbve import schema
from rbve.files import write_atomically

_ENTRY = "rbve"  # of the metadata; several would be written in a random order
_CONTENT = {"crc32": int, "info": dict}


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray], info: Mapping[str, Any]) -> None:
    # Not ascontiguousarray: it gives scalars a dimension.
    arrays = {name: np.asarray(value, order="C") for name, value in tensors.items()}
    held = json.loads(json.dumps(info))  # as it will be read
    content = {"crc32": checksum(arrays, held), "info": held}
    write_atomically(path, save(arrays, {_ENTRY: json.dumps(content, sort_keys=True)}))


def read_tensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    if not path.exists():
        raise ValueError(f"{path}: no such file")
    if not path.is_file():
        raise ValueError(f"{path}: is a folder; name a file in it")
    try:
        with safe_open(path, "numpy") as file:
            header = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if "crc32" in header:
            raise ValueError("of an earlier version; train or record it again")
        content = json.loads(header[_ENTRY])
    except Exception as error:  # the reader of a damaged header raises anything
        raise ValueError(f"{path}: not a file of rbve, or damaged ({error})") from None
    schema.check(content, _CONTENT, f"{path}: not a file of rbve, or damaged")
    if checksum(arrays, content["info"]) != content["crc32"]:
        raise ValueError(f"{path}: checksum does not match; the file is damaged")
    return arrays, content["info"]


def checksum(arrays: Mapping[str, np.ndarray], info: Mapping[str, Any]) -> int:
    crc = zlib.crc32(json.dumps(info, sort_keys=True).encode())
    for name in sorted(arrays):
        value = arrays[name]
        # Encoded one by one, so that no name can pass for a shape.
        described = json.dumps([name, value.dtype.str, value.shape])
        crc = zlib.crc32(np.ascontiguousarray(value).tobytes(), zlib.crc32(described.encode(), crc))
    return crc
