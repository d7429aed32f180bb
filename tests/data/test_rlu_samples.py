"""Real records of RL Unplugged, where the variable RBVE_RLU_SAMPLES names a folder of them.

They are read a second time here, by a few lines of plain Python, and compared value by value.
"""

from __future__ import annotations

import gzip
import os
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbve.data import Dataset, View, load, transitions
from rbve.data.formats import recognise, rlu
from rbve.data.transitions import reward_to_go

FOLDER = os.environ.get("RBVE_RLU_SAMPLES", "")
pytestmark = pytest.mark.skipif(
    not FOLDER, reason="needs real records: set RBVE_RLU_SAMPLES to their folder"
)
cv2: Any = pytest.importorskip("cv2")
pytest.importorskip("google_crc32c")


def only(kind: str) -> Path:
    (file,) = (file for file in (Path(FOLDER) / kind).rglob("*") if file.is_file())
    return file


def payloads(file: Path) -> list[bytes]:
    stream, found = gzip.decompress(file.read_bytes()), []
    while stream:
        size = int.from_bytes(stream[:8], "little")
        found.append(stream[12 : 12 + size])
        stream = stream[16 + size :]
    return found


def floats(payload: bytes, name: str) -> np.ndarray:
    """A packed list of floats, found by the bytes around it."""
    at = re.search(rb"\x0a" + bytes([len(name)]) + name.encode() + rb"\x12", payload)
    assert at is not None
    body = payload[at.end() :]
    sizes = []
    for tag in (None, 0x12, 0x0A):  # Feature, FloatList, its values
        if tag is not None:
            assert body[0] == tag
            body = body[1:]
        size = shift = 0
        while True:
            size |= (body[0] & 127) << shift
            shift, more, body = shift + 7, body[0] & 128, body[1:]
            if not more:
                break
        sizes.append(size)
    return np.frombuffer(body[: sizes[-1]], "<f4")


def pngs(payload: bytes) -> list[bytes]:
    return re.findall(rb"\x89PNG\r\n\x1a\n.*?IEND\xaeB`\x82", payload, re.DOTALL)


@pytest.fixture(scope="module")
def lab() -> Dataset:
    return load(only("dmlab"))


@pytest.fixture(scope="module")
def asterix() -> Dataset:
    return load(only("atari_episodes"))


def test_reward_to_go_is_the_one_they_stored(lab: Dataset) -> None:
    found = reward_to_go(lab.reward, lab.offsets, 0.997)
    stored = [floats(payload, "discounted_rewards") for payload in payloads(only("dmlab"))]
    assert [len(values) for values in stored] == np.diff(lab.offsets).tolist() == [181, 181]
    np.testing.assert_allclose(found, np.concatenate(stored), rtol=0, atol=1e-3)
    assert np.ptp(found) > 50  # far more than the tolerance


def test_lab_episodes(lab: Dataset) -> None:
    assert lab.lengths.tolist() == [180, 180]
    assert lab.episode_return.tolist() == [-14, 56]
    assert lab.obs.shape == (362, 72, 96, 3)
    assert not lab.terminated.any()
    assert lab.complete.all()
    assert lab.finals_known.all()
    assert lab.num_actions == 15
    assert lab.action[[180, 361]].tolist() == [-1, -1]
    assert lab.reward[[180, 361]].tolist() == [0, 0]
    # BVE has no next action at a truncation: one decision of each episode is dropped.
    assert len(transitions(lab, View(0.997), "pair").row) == 358


def test_last_actions_are_those_of_the_row_before(lab: Dataset) -> None:
    for index, payload in enumerate(payloads(only("dmlab"))):
        one_hots = floats(payload, "observations_action").reshape(181, 15)
        rewards = floats(payload, "observations_reward")
        episode = lab.episode(index)
        assert one_hots[0].tolist() == [0] * 15
        assert one_hots[1:].sum(axis=1).tolist() == [1] * 180
        assert one_hots[1:].argmax(axis=1).tolist() == episode.action[:-1].tolist()
        assert rewards[1:].tolist() == episode.reward[:-1].tolist()


def test_colours(lab: Dataset) -> None:
    """The sky over the room is blue and its sandy floor is not; in the files it is orange."""
    sky, floor = lab.obs[:, :8].mean(axis=(1, 2)), lab.obs[:, 60:68].mean(axis=(1, 2))
    level = np.flatnonzero(sky.sum(axis=1) > 450)  # frames that look out over the walls
    assert len(level) > 50
    red, _, blue = np.median(sky[level], axis=0)
    assert blue > red + 80
    red, _, blue = np.median(floor[level], axis=0)
    assert red > blue + 50
    # The same pixels as the files hold, whose first channel is blue.
    stored = [png for payload in payloads(only("dmlab")) for png in pngs(payload)]
    for row in (0, 100, 361):
        image = cv2.imdecode(np.frombuffer(stored[row], np.uint8), cv2.IMREAD_COLOR)
        as_stored = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
        np.testing.assert_array_equal(lab.obs[row], as_stored[..., ::-1])


def test_atari_episode(asterix: Dataset) -> None:
    assert asterix.lengths.tolist() == [310]
    assert asterix.episode_return.tolist() == [17]
    assert reward_to_go(asterix.reward, asterix.offsets, 1.0)[0] == 17
    assert asterix.obs.shape == (311, 84, 84, 1)
    assert asterix.terminated.tolist() == [True]
    assert asterix.num_actions == 9  # the game's minimal set
    assert asterix.provenance["checkpoints"] == [1, 1]
    (payload,) = payloads(only("atari_episodes"))
    np.testing.assert_array_equal(asterix.reward[:-1], floats(payload, "clipped_rewards"))
    for row, png in enumerate(pngs(payload)):
        image = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_GRAYSCALE)
        np.testing.assert_array_equal(asterix.obs[row, :, :, 0], image)


def test_the_last_atari_row_is_a_decision(asterix: Dataset) -> None:
    """Why there are 310 decisions and no final observation.

    After a death the game shows one frame for 11 steps, then another for 19, then goes on. The
    last death's 19 frames end with the record: the frame behind them, the final one, is missing.
    """
    frames = asterix.obs[:310, :, :, 0]
    changed = np.flatnonzero((frames[1:] != frames[:-1]).any(axis=(1, 2))) + 1
    starts = np.concatenate([[0], changed, [310]])
    still = [(int(s), int(n)) for s, n in zip(starts, np.diff(starts), strict=False) if n > 10]
    assert still[-4:] == [(218, 11), (230, 19), (279, 11), (291, 19)]
    assert asterix.finals_known.tolist() == [False]
    np.testing.assert_array_equal(asterix.obs[310], asterix.obs[309])


def test_rewards_follow_their_action(asterix: Dataset) -> None:
    """Score digits change two frames after the row that holds the reward, never before it."""
    digits = asterix.obs[:310, 74:, :, 0].astype(int)
    changed = np.flatnonzero((abs(np.diff(digits, axis=0)) > 20).any(axis=(1, 2))) + 1
    assert (changed[1:] - 2).tolist() == np.flatnonzero(asterix.reward).tolist()


@pytest.mark.parametrize("kind", ["dmlab", "atari_episodes"])
def test_samples_are_recognised(kind: str) -> None:
    assert recognise(Path(FOLDER) / kind) == "rlu"
    assert recognise(only(kind)) == "rlu"
    assert rlu.holds_records(only(kind))


@pytest.mark.parametrize("position", [0.0, 0.3, 0.55, 0.99])
def test_one_flipped_byte_is_refused(tmp_path: Path, position: float) -> None:
    """In the second record, inside a gzip stream that is whole."""
    stream = bytearray(gzip.decompress(only("dmlab").read_bytes()))
    second = 16 + struct.unpack_from("<Q", stream)[0]
    stream[second + int(position * (len(stream) - second))] ^= 4
    file = tmp_path / "tfrecord-00000-of-00001"
    file.write_bytes(gzip.compress(bytes(stream), compresslevel=1))
    with pytest.raises(ValueError, match=rf"{file}: record 1 \(at byte {second} of .*not match"):
        load(file)


@pytest.mark.parametrize("position", [0.2, 0.6, 0.9999])
def test_one_flipped_byte_of_the_file_is_refused(tmp_path: Path, position: float) -> None:
    content = bytearray(only("dmlab").read_bytes())
    content[int(position * len(content))] ^= 4
    file = tmp_path / "tfrecord-00000-of-00001"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=rf"{file}: record \d \(at byte \d+ of the decompressed"):
        load(file)
