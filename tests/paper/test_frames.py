"""Strips of frames: which data has one, what it shows, and that packing and pages keep it."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pytest
from support.images import pixels
from support.studies import scored, write_store, write_study

from rbve.data import Dataset, Episode
from rbve.data.formats import native
from rbve.data.source import parts_of
from rbve.paper import frames, results
from rbve.paper.report import write_report


def store(folder: Path, obs: np.ndarray) -> None:
    """Two episodes of the same observations; those of the second are all white."""
    action, reward = [0] * (len(obs) - 1), [0.0] * (len(obs) - 1)
    episodes = [
        Episode.from_steps(each, action, reward, True) for each in (obs, np.full_like(obs, 255))
    ]
    native.write(parts_of(Dataset.from_episodes(episodes, 2)), folder)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    out = tmp_path / "study"
    gray = np.repeat(np.arange(15, dtype=np.uint8)[:, None, None, None], 20, axis=1)
    store(out / "data" / "pong-0" / "1", np.repeat(gray, 40, axis=2) * 10)
    store(out / "data" / "pong-0" / "2", np.zeros((15, 20, 40, 1), np.uint8))
    board = np.zeros((3, 10, 10, 4), np.uint8)
    board[:, 2, 3, 1] = 255
    store(out / "data" / "board-0" / "0", board)
    write_store(out / "data" / "table-0" / "0", 2, 0)  # columns of numbers
    (out / "data" / "half-0" / "0").mkdir(parents=True)  # nothing finished
    return out


def test_images_get_a_strip_of_their_first_episode(study: Path) -> None:
    written = frames.write_strips(study)
    assert [file.name for file in written] == ["board-0.png", "pong-0.png"]
    image = pixels(frames.read_strips(study)["pong-0"])
    # Eight frames of 20 × 40, four times as large, 4 pixels apart.
    assert image.shape == (80, 8 * 160 + 7 * 4, 3)
    shown = image[40, 80 :: 160 + 4, 0].tolist()
    assert shown == [0, 20, 40, 60, 80, 100, 120, 140]  # rows 0, 2, ..., 14
    assert (image[:, 160:164] == 255).all()


def test_boards_show_what_lies_where(study: Path) -> None:
    frames.write_strips(study)
    image = pixels(frames.read_strips(study)["board-0"])
    assert image.shape == (160, 3 * 160 + 2 * 4, 3)  # an episode of three observations
    assert image[2 * 16 + 8, 3 * 16 + 8].tolist() == [86, 180, 233]  # the second channel
    assert image[8, 8].tolist() == [24, 24, 28]


def test_of_joined_frames_the_last_is_shown() -> None:
    stacked = np.zeros((20, 30, 4), np.uint8)
    stacked[..., 3] = 77
    assert (frames.picture(stacked) == 77).all()
    colours = np.zeros((20, 30, 3), np.uint8)
    colours[..., 0] = 9
    np.testing.assert_array_equal(frames.picture(colours), colours)


def test_strips_are_packed_and_shown(study: Path, tmp_path: Path) -> None:
    frames.write_strips(study)
    write_study(study, {"bsuite": scored("bve", [1, 2])})
    packed = tmp_path / "packed"
    results.pack([study], packed)
    png = (study / "frames" / "pong-0.png").read_bytes()
    assert (packed / "frames" / "pong-0.png").read_bytes() == png
    page = write_report([packed], tmp_path / "page.html")
    assert base64.b64encode(png).decode() in page.read_text()
    assert (tmp_path / "page-figures" / "frames-pong-0.png").read_bytes() == png
    assert page.read_text().count('<figure class="picture frames">') == 2
