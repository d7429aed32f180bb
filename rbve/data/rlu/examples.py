"""Synthetic records of RL Unplugged, one maker per kind, for tests and fuzzing."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

Made = dict[str, Any]


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
