"""RL Unplugged: all four kinds of records value by value, and every way one can be wrong."""

from __future__ import annotations

import gzip
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rlu_records import (
    Made,
    atari,
    bsuite,
    chunk,
    dmlab,
    example,
    floats,
    frame,
    ints,
    noise,
    png,
    sarsa,
    write_shard,
)

from rbve.data import Dataset, load, write
from rbve.data._rlu import schemas
from rbve.data.formats import recognise, rlu
from rbve.data.source import Fault

pytest.importorskip("google_crc32c")
pytest.importorskip("cv2")

KINDS: dict[str, tuple[Callable[..., Made], str]] = {
    "atari sarsa": (sarsa, "run_1-00000-of-00100"),
    "atari episodes": (atari, "run_2-00001-of-00050"),
    "bsuite": (bsuite, "0_full_train-00000-of-00001"),
    "dmlab": (dmlab, "tfrecord-00000-of-00500"),
}


def shard(path: Path, *made: Made) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_shard(path, [example(features) for features in made])
    return path


def read(path: Path, *made: Made, **options: Any) -> Dataset:
    return load(shard(path / "run_1-00000-of-00001", *made), options=rlu.Options(**options))


def test_sarsa_tuples(tmp_path: Path) -> None:
    last = sarsa(1, a_t=ints(0), a_tp1=ints(17), d_t=floats(0), r_t=floats(1))
    data = read(tmp_path, sarsa(0), last)
    assert data.obs.shape == (4, 84, 84, 4)
    assert data.obs.dtype == np.uint8
    for episode in range(2):
        frames = noise(episode, 2, 4, 84, 84)
        for row in range(2):
            for back in range(4):
                found = data.obs[2 * episode + row, :, :, back]
                np.testing.assert_array_equal(found, frames[row, back])
    assert data.action.tolist() == [2, 1, 0, -1]
    assert data.reward.tolist() == [-1, 0, 1, 0]
    assert data.terminated.tolist() == [False, True]
    assert data.complete.tolist() == [False, False]
    assert data.episode_return.tolist() == [12, 12]
    assert data.num_actions == 3  # the action after the end is none


def test_atari_episodes(tmp_path: Path) -> None:
    cut = atari(1, discounts=floats(1, 1, 1, 1))
    data = read(tmp_path, atari(0), cut)
    assert data.obs.shape == (10, 84, 84, 1)
    for episode in range(2):
        frames = noise(episode, 4, 84, 84)
        rows = data.obs[5 * episode : 5 * episode + 5, :, :, 0]
        np.testing.assert_array_equal(rows, frames[[0, 1, 2, 3, 3]])
    assert data.action.tolist() == [3, 0, 1, 2, -1] * 2
    assert data.reward.tolist() == [0, 1, 0, -1, 0] * 2
    assert data.terminated.tolist() == [True, False]
    assert data.complete.all()
    assert data.finals_known.tolist() == [False, False]
    assert data.provenance["kind"] == "atari episodes"


def test_checkpoints_are_told_however_the_data_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = (4, 9, 2)
    made = [atari(k, checkpoint_idx=ints(number)) for k, number in enumerate(numbers)]
    assert read(tmp_path, *made).provenance["checkpoints"] == [2, 9]
    assert read(tmp_path, *made, actions=18).provenance["checkpoints"] == [2, 9]
    monkeypatch.setattr(rlu, "PART_BYTES", 1)  # a part an episode
    monkeypatch.setattr(rlu, "BATCH_RECORDS", 1)
    path = tmp_path / "run_1-00000-of-00001"
    write(rlu.read(path, rlu.Options(actions=18)), tmp_path / "store")
    assert load(tmp_path / "store").provenance["checkpoints"] == [2, 9]


def test_an_atari_episode_at_the_limit_is_truncated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert schemas.ATARI_LIMIT == 27_000
    for limit, terminated in ((5, True), (4, False)):
        monkeypatch.setattr(schemas, "ATARI_LIMIT", limit)
        assert read(tmp_path, atari()).terminated.tolist() == [terminated]


def test_bsuite(tmp_path: Path) -> None:
    ended = bsuite(100, step_type=ints(1, 2), action=ints(0, -9))
    zero = bsuite(200, discount=floats(0, 1))
    one = {name: value[: len(value) // 2] for name, value in bsuite(300).items()}
    nothing = one | {"step_type": ints(2), "action": ints(99)}
    data = read(tmp_path, bsuite(0), ended, zero, one, nothing)
    assert data.obs.shape == (8, 1, 6)
    expected = [np.arange(6) + start for start in (0, 6, 100, 106, 200, 206, 300, 300)]
    np.testing.assert_array_equal(data.obs[:, 0], expected)
    assert data.action.tolist() == [2, 1, 0, -1, 2, -1, 2, -1]
    assert data.reward.tolist() == [0.5, 0] * 4
    assert data.terminated.tolist() == [False, True, True, False]
    assert data.finals_known.tolist() == [True, True, True, False]
    assert not data.complete.any()
    assert data.episode_return.tolist() == [88] * 4
    assert data.num_actions == 3


def test_bsuite_shapes(tmp_path: Path) -> None:
    for size, shape in ((50, (10, 5)), (3, (1, 3)), (7, (7,))):
        data = read(tmp_path, bsuite(observation=np.arange(2 * size, dtype=np.float32)))
        assert data.obs_shape == shape
        assert data.obs[1].ravel().tolist() == list(range(size, 2 * size))


def test_dmlab(tmp_path: Path) -> None:
    later = dmlab(1, start_idx=ints(7), episode_return=floats(60))
    later["observations_action"][5] = later["observations_reward"][0] = 1
    data = read(tmp_path, dmlab(0), later)
    assert data.obs.shape == (8, 72, 96, 3)
    for episode in range(2):
        stored = noise(episode, 4, 72, 96, 3)
        np.testing.assert_array_equal(data.obs[4 * episode : 4 * episode + 4], stored[..., ::-1])
    assert data.action.tolist() == [14, 3, 0, -1] * 2
    assert data.reward.tolist() == [10, 0, -1, 0] * 2
    assert data.terminated.tolist() == [False, False]
    assert data.complete.tolist() == [True, False]  # the second began at a later step
    assert data.episode_return.tolist() == [9, 60]
    assert data.finals_known.all()
    assert data.num_actions == 15
    assert data.actions[3] == "strafe right"
    with pytest.raises(ValueError, match="records are of 15 actions, and 'actions' says 14"):
        read(tmp_path, dmlab(), actions=14)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_told_by_its_features(tmp_path: Path, kind: str) -> None:
    make, name = KINDS[kind]
    for path in (tmp_path / "deep" / "down" / name, tmp_path / "renamed"):
        shard(path, make())
        assert recognise(path) == "rlu"
        found = load(path).provenance
        assert found["kind"] == kind
        assert ("rewards" in found) == kind.startswith("atari")  # those are clipped
    assert recognise(tmp_path) == "rlu"
    write(rlu.read(tmp_path), tmp_path / "store")
    store = load(tmp_path / "store")
    np.testing.assert_array_equal(store.obs, load(tmp_path / "renamed").obs)


def test_shards_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for number in (3, 0, 2, 1):
        made = [bsuite(1000 * number + 10 * k) for k in range(300)]
        shard(tmp_path / "x" / f"0_full-0000{number}-of-00004", *made)
    (tmp_path / "x" / "README").write_text("not a shard")
    expected = [1000 * number + 10 * k for number in range(4) for k in range(300)]
    for path in (tmp_path, Path(f"{tmp_path}/*/0_full-*"), Path(f"{tmp_path}/?")):
        assert recognise(path) == "rlu"
        source = rlu.read(path)
        data = Dataset.join(source.parts)
        assert data.obs[::2, 0, 0].tolist() == expected
        assert source.position() == source.total
    sizes = sum(file.stat().st_size for file in tmp_path.glob("x/0_full*"))
    assert source.total == sizes


def test_parts_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is in flight: the second part asks for few records beyond the first."""
    monkeypatch.setattr(rlu, "PART_BYTES", 50_000)
    monkeypatch.setattr(rlu, "BATCH_RECORDS", 5)
    path = shard(tmp_path / "0_full-00000-of-00001", *[bsuite(k) for k in range(2000)])
    taken = 0
    records = rlu.records

    def counted(*args: Any) -> Any:
        nonlocal taken
        for record in records(*args):
            taken += 1
            yield record

    monkeypatch.setattr(rlu, "records", counted)
    source = rlu.read(path)
    first = next(source.parts)
    assert 20 <= first.num_episodes <= 25
    assert taken <= first.num_episodes + 5 * rlu.WAITING + 1
    assert sum(part.num_episodes for part in source.parts) == 2000 - first.num_episodes


def test_actions_are_counted_over_all_shards(tmp_path: Path) -> None:
    shard(tmp_path / "run_1-00000-of-00002", sarsa(a_t=ints(0)))
    shard(tmp_path / "run_1-00001-of-00002", sarsa(a_t=ints(5)))
    source = rlu.read(tmp_path)
    first = next(source.parts)
    assert first.num_actions == 6
    assert "Ids 2, 3, 4 never occur" in source.notes[-1]
    sizes = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert source.total == 2 * sizes
    declared = rlu.read(tmp_path, rlu.Options(actions=9))
    assert next(declared.parts).num_actions == 9
    assert declared.total == sizes
    with pytest.raises(
        ValueError, match=r"00001-of-00002: record 0 .* action 5 in row 0, .* 4 act"
    ):
        list(rlu.read(tmp_path, rlu.Options(actions=4)).parts)


@pytest.mark.parametrize("actions", [0, -1, 10**9])
def test_impossible_action_sets(actions: int) -> None:
    with pytest.raises(ValueError, match="actions must lie in"):
        rlu.Options(actions=actions)


def without(name: str) -> dict[str, Any]:
    return {name: None}


SMALL = png(np.zeros((10, 10), np.uint8))
GRAY = png(np.zeros((72, 96), np.uint8))
BAD = bytearray(png(noise(3, 84, 84)))
BAD[2000] ^= 1
EMPTY = png(np.zeros((84, 84), np.uint8))[:33] + chunk(b"IDAT", b"junk") + chunk(b"IEND", b"")

WRONG: list[tuple[Callable[..., Made], Made, str]] = [
    (sarsa, without("a_tp1"), "lacks the feature 'a_tp1' of atari sarsa records"),
    (sarsa, {"a_t": ints(1, 2)}, "'a_t' has 2 entries and needs 1"),
    (sarsa, {"a_t": floats(1)}, "'a_t' does not hold whole numbers"),
    (sarsa, {"a_t": ints(18)}, "'a_t' holds action 18 in row 0"),
    (sarsa, {"a_t": ints(-1)}, "'a_t' holds action -1 in row 0"),
    (sarsa, {"a_t": ints(2**40)}, "'a_t' holds action 1099511627776"),
    (sarsa, {"d_t": floats(0.5)}, "'d_t' holds a discount of 0.5"),
    (sarsa, {"r_t": floats(np.nan)}, "'r_t' is not finite in entry 0"),
    (sarsa, {"o_t": [SMALL] * 4}, "frame 0 has 10 × 10 pixels; it needs 84 × 84"),
    (sarsa, {"o_t": [b"no image"] * 4}, "frame 0 is not a whole PNG image"),
    (sarsa, {"o_t": [bytes(BAD)] * 4}, "frame 0: a checksum inside the PNG"),
    (sarsa, {"o_t": [EMPTY] * 4}, "frame 0 cannot be decoded"),
    (sarsa, {"o_t": [b""] * 3}, "'o_t' has 3 entries and needs 4"),
    (sarsa, {"o_t": ints(1)}, "'o_t' does not hold strings"),
    (atari, {"actions": ints()}, "'actions' is empty"),
    (atari, {"clipped_rewards": floats(0)}, "'clipped_rewards' has 1 entries and needs 4"),
    (atari, {"discounts": floats(1, 0, 1, 0)}, "contradicts itself: .*ends the episode at row 1"),
    (atari, {"clipped_episode_return": floats(3)}, "rewards sum to 0, and it logs a return of 3"),
    (bsuite, {"step_type": ints(0, 1, 1)}, "'step_type' has 3 steps"),
    (bsuite, {"observation": floats(*range(14))}, "'observation' has 14 entries and needs 12"),
    (bsuite, {"observation": floats(*[np.inf] * 12)}, "'observation' is not finite"),
    (bsuite, {"action": ints(3, 0)}, "action 3 in row 0, and there are 3 actions"),
    (dmlab, {"observations_pixels": [GRAY] * 4}, r"frame 0 holds uint8 of shape \(72, 96\)"),
    (dmlab, {"actions": ints(14, 3, 1, 0)}, "'observations_action', row 3: it must say action 1"),
    (dmlab, {"observations_action": np.eye(15)[[0, 14, 3, 0]].ravel()}, "row 0: .* no action yet"),
    (dmlab, {"observations_reward": floats(0, 0, 10, -1)}, "row 1: 0, and .* before was 10"),
    (
        dmlab,
        {"discounts": floats(1, 1, 1, 1)},
        "contradicts itself: its last row must be the dummy",
    ),
    (dmlab, {"rewards": floats(10, 0, -1, 5)}, "its last row must be the dummy"),
    (dmlab, {"episode_return": floats(8)}, "rewards sum to 9, and it logs a return of 8"),
    (dmlab, {"start_idx": None}, "lacks the feature 'start_idx' of dmlab records"),
]


@pytest.mark.parametrize(("make", "changes", "message"), WRONG)
def test_wrong_records_are_named(
    tmp_path: Path, make: Callable[..., Made], changes: Made, message: str
) -> None:
    wrong = {name: value for name, value in make(2, **changes).items() if value is not None}
    good = example(make(1))
    path = tmp_path / "tfrecord-00000-of-00001"
    write_shard(path, [good, example(wrong), good])
    place = f"{path}: record 1 .at byte {16 + len(good)} of the decompressed stream.*{message}"
    with pytest.raises(ValueError, match=place):
        load(path)
    faults: list[Fault] = []
    kept = Dataset.join(rlu.read(path, on_fault=faults.append).parts)
    assert kept.num_episodes == 2  # an audit reads on
    kind = "contradictory" if "contradicts" in faults[0].text else "damaged"
    assert [fault.kind for fault in faults] == [f"{kind} record"]


def test_kinds_do_not_mix(tmp_path: Path) -> None:
    shard(tmp_path / "run_1-00000-of-00002", atari())
    second = shard(tmp_path / "run_1-00001-of-00002", bsuite())
    with pytest.raises(ValueError, match=f"{second}: record 0 .* holds bsuite data, and the first"):
        load(tmp_path)


def test_a_damaged_shard(tmp_path: Path) -> None:
    made = [frame(example(bsuite(k))) for k in range(3)]
    damaged = bytearray(b"".join(made))
    damaged[len(made[0]) + 40] ^= 8
    path = tmp_path / "0_full-00000-of-00002"
    path.write_bytes(gzip.compress(bytes(damaged)))
    shard(tmp_path / "0_full-00001-of-00002", bsuite(900))
    place = rf"00000-of-00002: record 1 .at byte {len(made[0])} of .* checksum of its data does not"
    with pytest.raises(ValueError, match=place):
        load(tmp_path)
    faults: list[Fault] = []
    data = Dataset.join(rlu.read(tmp_path, on_fault=faults.append).parts)
    assert data.obs[::2, 0, 0].tolist() == [0, 900]
    assert [fault.kind for fault in faults] == ["damaged shard"]


def test_other_paths_are_not_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    monkeypatch.setitem(sys.modules, "cv2", None)
    (tmp_path / "log.csv").write_text("episode,action\n0,1\n")
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(b"episode,action\n0,1\n"))
    (tmp_path / "data-00000-of-00001.arrow").write_bytes(b"ARROW1")
    write_shard_without_crc(tmp_path / "other-00000-of-00001")
    for entry in [tmp_path, *tmp_path.iterdir(), tmp_path / "absent", Path(f"{tmp_path}/*")]:
        assert not rlu.recognises(entry)
    (tmp_path / "run_1-00000-of-00001").write_bytes(b"")
    assert rlu.recognises(tmp_path / "run_1-00000-of-00001")
    with pytest.raises(ImportError, match=r'pip install "rbve\[rlu\]"'):
        rlu.read(tmp_path / "run_1-00000-of-00001")


def write_shard_without_crc(path: Path) -> None:
    data = example({"image": [b"x"], "label": ints(3)})
    path.write_bytes(gzip.compress(struct.pack("<QI", len(data), 0) + data + bytes(4)))


def test_no_shard_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no shard of RL Unplugged there"):
        rlu.read(tmp_path)


def test_records_of_something_else(tmp_path: Path) -> None:
    path = shard(tmp_path / "tfrecord-00000-of-00001", {"image": [b"x"], "label": ints(3)})
    with pytest.raises(ValueError, match=r"record 0 .*no record of RL Unplugged: .* image, label"):
        load(path)
