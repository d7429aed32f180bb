"""What a node looks for before it helps, the cores it takes, and copies of stores."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from rbve.data import load
from rbve.files import InUse
from rbve.sweep import copies, node
from rbve.sweep.plan import Stores

pytest.importorskip("ray", reason='Ray is not installed: pip install "rbve[ray]"')


@pytest.fixture
def needs(tmp_path: Path) -> node.Needs:
    (tmp_path / "token").touch()
    return node.Needs(node.versions(), str(tmp_path), "token", {}, 1)


def test_a_node_that_can_help(needs: node.Needs) -> None:
    found = node.look(needs)
    assert (found.wrong, found.note, found.missing) == ("", "", ())
    assert found.cores == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("name", ["python", "ray", "rbve", "jax", "numpy"])
def test_another_version_is_told_in_one_line(name: str, needs: node.Needs) -> None:
    other = needs._replace(versions={**needs.versions, name: "0.0.1"})
    own = needs.versions[name]
    assert node.look(other).wrong == (
        f"has {name} {own}, and the command runs {name} 0.0.1; install the same on all nodes"
    )


def test_a_folder_that_is_not_shared(needs: node.Needs, tmp_path: Path) -> None:
    (tmp_path / "token").unlink()  # a folder of the same name, but another one
    assert node.look(needs).wrong == (
        f"does not see {tmp_path}; give --out on a file system that all nodes share"
    )


def test_small_shared_memory_is_told_in_one_line(needs: node.Needs) -> None:
    words = node.look(needs._replace(shared_memory=1 << 60)).note
    assert "less than the" in words
    assert "--shm-size=" in words
    assert "\n" not in words


def test_tasks_of_one_node_take_different_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # a cluster may be at work here
    every = os.sched_getaffinity(0)
    with node.own_cores(1) as first:
        assert len(first) == 1
        with node.own_cores(len(every)) as too_many:
            assert too_many == set()  # one is taken; these go unpinned
        with node.own_cores(len(every) - 1) as rest:
            assert first | rest == every
            assert not first & rest
    with monkeypatch.context() as other:  # in a folder that another user made
        other.setattr(os, "getuid", lambda: os.stat(tmp_path).st_uid + 1)
        (tmp_path / f"rbve-cores-{os.getuid()}").mkdir()
        with node.own_cores(1) as none:
            assert none == set()
        assert not any((tmp_path / f"rbve-cores-{os.getuid()}").iterdir())
    with node.own_cores(len(every)) as again:
        assert again == every


def send(store: Path, mark: str) -> None:
    receiver = copies.Receiver(mark)
    for piece in copies.pieces(store):
        receiver.write(*piece)
    receiver.finish()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_copy_serves_where_the_path_does_not(cache: Path, catch_path: Path) -> None:
    mark, elsewhere = copies.mark_of(catch_path), "/nowhere/catch"
    assert copies.located(str(catch_path), mark) == str(catch_path)
    assert copies.located(elsewhere, mark) is None
    send(catch_path, mark)
    assert copies.located(elsewhere, mark) == str(copies.place_of(mark))
    assert copies.place_of(mark).is_relative_to(cache)
    one, other = load(catch_path), load(copies.place_of(mark))
    assert one.provenance == other.provenance
    assert (one.obs == other.obs).all()
    from rbve.parts import DataRef

    opened = Stores(marks={elsewhere: mark}).of(DataRef(elsewhere))
    assert (opened.action == one.action).all()


def test_another_store_at_the_path_is_not_taken_for_it(cache: Path, catch_path: Path) -> None:
    assert copies.located(str(catch_path), "0123456789abcdef") is None


def test_a_damaged_copy_does_not_appear(cache: Path, catch_path: Path) -> None:
    mark = copies.mark_of(catch_path)
    receiver = copies.Receiver(mark)
    with pytest.raises(InUse):
        copies.Receiver(mark)  # another driver sends it too
    for name, piece in copies.pieces(catch_path):
        receiver.write(name, piece if name != "reward.bin" else bytes(len(piece)))
    with pytest.raises(ValueError, match=r"reward.bin: checksum does not match"):
        receiver.finish()
    assert not copies.place_of(mark).exists()
    send(catch_path, mark)  # the lock is gone


def test_a_file_that_belongs_to_no_store_is_refused(cache: Path, catch_path: Path) -> None:
    receiver = copies.Receiver(copies.mark_of(catch_path))
    with pytest.raises(ValueError, match="not a file of a store"):
        receiver.write("../../evil.py", b"")
    receiver.close()
