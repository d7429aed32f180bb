"""Checkpoints: one safetensors file, written atomically, its JSON and checksum in the header."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from rbve.files import write_atomically


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray], info: Mapping[str, Any]) -> None:
    """Arrays and JSON in one file that is either whole or absent."""
    # Not ascontiguousarray: it gives scalars a dimension.
    arrays = {name: np.asarray(value, order="C") for name, value in tensors.items()}
    header = {"info": json.dumps(dict(info)), "crc32": str(checksum(arrays))}
    write_atomically(path, save(arrays, header))


def read_tensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    try:
        with safe_open(path, "numpy") as file:
            header = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        info = json.loads(header["info"])
        expected = int(header["crc32"])
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file") from None
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise ValueError(f"{path}: not a file of rbve, or damaged ({error})") from None
    if checksum(arrays) != expected:
        raise ValueError(f"{path}: checksum does not match; the file is damaged")
    return arrays, info


def checksum(arrays: Mapping[str, np.ndarray]) -> int:
    crc = 0
    for name in sorted(arrays):
        crc = zlib.crc32(name.encode(), crc)
        crc = zlib.crc32(np.ascontiguousarray(arrays[name]).tobytes(), crc)
    return crc
