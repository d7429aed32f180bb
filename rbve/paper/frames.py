"""A strip of frames of each kind of recorded images, small enough to keep beside a study's rows.

OUT/frames/<kind>.png    frames of the first episode, evenly spaced from its begin to its end

A kind is the folder of its recordings, whatever their seeds. Observations that are no images have
no strip.
"""

import struct
import zlib
from pathlib import Path

import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.formats import load
from rbve.data.manifest import is_recorded
from rbve.files import write_atomically

FOLDER = "frames"
_COUNT = 8
_GAP = 4  # pixels between frames
_WIDTH = 160  # of a frame, about
_SMALLEST = 8  # pixels a side; less is a table of numbers
_BOARD = 16  # pixels a side up to which channels are kinds of things (MinAtar), not colours
# Of a board's channels, one after another; an empty cell is dark.
_COLOURS = np.array(
    [[230, 159, 0], [86, 180, 233], [0, 158, 115], [240, 228, 66], [0, 114, 178],
     [213, 94, 0], [204, 121, 167], [200, 200, 200], [255, 255, 255], [140, 86, 75]],
    np.uint8,
)  # fmt: skip
_EMPTY = np.array([24, 24, 28], np.uint8)


def write_strips(out: Path) -> list[Path]:
    """Of the study's finished recordings, one strip for each kind that holds images."""
    written = []
    for kind in sorted(each for each in (out / "data").glob("*") if each.is_dir()):
        folder = next((each for each in sorted(kind.iterdir()) if is_recorded(each)), None)
        if folder is None:
            continue
        data = load(folder, verify=False)
        pixels = data.obs.dtype == np.uint8 and data.features is None
        shape = data.obs_shape
        if pixels and len(shape) in (2, 3) and min(shape[:2]) >= _SMALLEST:
            file = out / FOLDER / f"{kind.name}.png"
            write_atomically(file, png(_strip(data)))
            written.append(file)
    return written


def _strip(data: Dataset) -> np.ndarray:
    """(H, W, 3) uint8."""
    rows = np.linspace(0, data.offsets[1] - 1, _COUNT).round().astype(int)
    frames = [picture(np.asarray(data.obs[row])) for row in np.unique(rows)]
    times = max(1, round(_WIDTH / frames[0].shape[1]))
    pictures = [frame.repeat(times, axis=0).repeat(times, axis=1) for frame in frames]
    gap = np.full((len(pictures[0]), _GAP, 3), 255, np.uint8)
    parts = [part for each in pictures for part in (each, gap)]
    return np.concatenate(parts[:-1], axis=1)


def picture(frame: np.ndarray) -> np.ndarray:
    """(H, W, 3) of one observation; of joined frames the last."""
    frame = frame.reshape(*frame.shape[:2], -1)
    if max(frame.shape[:2]) <= _BOARD:
        things = frame > 0
        colours = _COLOURS[np.argmax(things, axis=-1) % len(_COLOURS)]
        return np.where(things.any(axis=-1, keepdims=True), colours, _EMPTY)
    return frame if frame.shape[-1] == 3 else np.repeat(frame[..., -1:], 3, axis=-1)


def png(image: np.ndarray) -> bytes:
    """Of (H, W, 3) bytes; plain enough to need no package."""
    height, width, _ = image.shape
    lines = np.pad(image.reshape(height, -1), ((0, 0), (1, 0)))  # each begins with its filter, none
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = (b"IHDR" + header, b"IDAT" + zlib.compress(lines.tobytes(), 9), b"IEND")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(each) - 4) + each + struct.pack(">I", zlib.crc32(each))
        for each in chunks
    )


def read_strips(out: Path) -> dict[str, bytes]:
    """kind -> PNG; empty where none were written."""
    return {file.stem: file.read_bytes() for file in sorted((out / FOLDER).glob("*.png"))}
