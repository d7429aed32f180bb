"""Synthetic records of RL Unplugged and shards of them, for tests and fuzzing."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rbve.data._rlu.tfrecord import crc32c, masked

Made = dict[str, Any]
BYTES = 2  # wire type of protobuf
BYTES_LIST, FLOAT_LIST, INT64_LIST = 1, 2, 3  # fields of tf.train.Feature


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(pixels: np.ndarray) -> bytes:
    """(H, W) gray or (H, W, 3) as the file orders its channels, without a library's conventions."""
    height, width = pixels.shape[:2]
    color = 2 if pixels.ndim == 3 else 0
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*parts) for parts in chunks)


def noise(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def sarsa(seed: int = 0, **changes: Any) -> Made:
    frames = noise(seed, 2, 4, 84, 84)
    return {
        "o_t": [png(f) for f in frames[0]],
        "o_tp1": [png(f) for f in frames[1]],
        "a_t": ints(2),
        "a_tp1": ints(1),
        "r_t": floats(-1),
        "d_t": floats(1),
        "episode_id": ints(-5),
        "episode_return": floats(12),
    } | changes


def atari(seed: int = 0, **changes: Any) -> Made:
    return {
        "observations": [png(f) for f in noise(seed, 4, 84, 84)],
        "actions": ints(3, 0, 1, 2),
        "unclipped_rewards": floats(0, 1, 0, -1),
        "clipped_rewards": floats(0, 1, 0, -1),
        "discounts": floats(1, 1, 1, 0),
        "episode_return": floats(0),
        "clipped_episode_return": floats(0),
        "checkpoint_idx": ints(seed),
        "episode_idx": ints(40 + seed),
    } | changes


def bsuite(seed: int = 0, **changes: Any) -> Made:
    return {
        "observation": np.arange(12, dtype=np.float32) + seed,
        "action": ints(2, 1),
        "reward": floats(0.5, 7),
        "discount": floats(1, 1),
        "episodic_reward": floats(88, 88),
        "step_type": ints(0, 1),
    } | changes


def dmlab(seed: int = 0, **changes: Any) -> Made:
    one_hots = np.zeros((4, 15), np.float32)
    one_hots[1, 14] = one_hots[2, 3] = one_hots[3, 0] = 1
    return {
        "observations_pixels": [png(f) for f in noise(seed, 4, 72, 96, 3)],
        "observations_reward": floats(0, 10, 0, -1),
        "observations_action": one_hots.ravel(),
        "actions": ints(14, 3, 0, 0),
        "rewards": floats(10, 0, -1, 0),
        "discounts": floats(1, 1, 1, 0),
        "discounted_rewards": floats(0, 0, 0, 0),
        "episode_id": ints(-(2**62)),
        "start_idx": ints(0),
        "episode_return": floats(9),
    } | changes


def write_shard(file: Path, examples: Iterable[bytes]) -> None:
    with open(file, "wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as stream:
        for data in examples:
            stream.write(frame(data))


def frame(data: bytes) -> bytes:
    value = crc32c()
    length = struct.pack("<Q", len(data))
    return b"".join(
        [
            length,
            struct.pack("<I", masked(value(length))),
            data,
            struct.pack("<I", masked(value(data))),
        ]
    )


def example(features: Mapping[str, Sequence[bytes] | np.ndarray]) -> bytes:
    """A tf.train.Example of strings, floats and whole numbers."""
    entries = []
    for name, value in features.items():
        entries.append(field(1, field(1, name.encode()) + field(2, _feature_bytes(value))))
    return field(1, b"".join(entries))


def _feature_bytes(value: Sequence[bytes] | np.ndarray) -> bytes:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return field(FLOAT_LIST, field(1, value.astype("<f4").tobytes()))
    if isinstance(value, np.ndarray):
        packed = b"".join(varint_bytes(int(number)) for number in value.ravel())
        return field(INT64_LIST, field(1, packed))
    return field(BYTES_LIST, b"".join(field(1, string) for string in value))


def field(number: int, data: bytes) -> bytes:
    return varint_bytes(number << 3 | BYTES) + varint_bytes(len(data)) + data


def varint_bytes(number: int) -> bytes:
    number &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
