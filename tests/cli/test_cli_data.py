"""Bringing data in from the command line: a newcomer's log, named errors, a killed conversion."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from support.cli import run

import rbve
from rbve.data import Dataset, Episode, formats, load, write
from rbve.files import locked
from rbve.policy import Policy

VISITS = Path(__file__).parents[2] / "examples" / "visits.csv"
FLAGS = ("--episode", "visit", "--time", "day", "--action", "treatment", "--reward", "outcome")
SEEN = ("--observation", "age", "blood_pressure", "ward")


def test_a_newcomers_log_in_three_commands(tmp_path: Path) -> None:
    store, runs = tmp_path / "visits", tmp_path / "runs"
    done = run("convert", VISITS, store, *FLAGS, *SEEN)
    assert done.code == 0, done.err
    assert "400 episodes, 2,021 decisions, 3 actions (mild, none, strong)" in done.out
    assert "no end flags: all episodes count as terminated" in done.err
    data = load(store)
    assert data.actions == ("mild", "none", "strong")
    first = np.array([81, 163, 1])  # v000, day 0: age, pressure, ward B
    np.testing.assert_array_equal(data.obs[0], first)
    assert data.actions[data.action[0]] == "none"
    assert data.reward[0] == np.float32(0.01)
    done = run("inspect", store, "--html", tmp_path / "page.html")
    assert done.code == 0, done.out
    assert done.out.rstrip().endswith("fine")
    assert "<html" in (tmp_path / "page.html").read_text()
    done = run("train", store, "--steps", 60, "--every", 30, "--out", runs)
    assert done.code == 0, done.err
    (policy,) = runs.glob("*/policy.safetensors")
    assert f"policy: {policy}" in done.err
    row = {"age": 61, "blood_pressure": 158, "ward": "B"}
    assert Policy.load(policy).decide(row) in data.actions


def test_columns_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "visits.toml").write_text(
        'episode = "visit"\ntime = "day"\naction = "treatment"\nreward = "ward"\n'
        'observation = ["age", "blood_pressure"]\nends = "truncated"\n'
    )
    chosen = ("--columns", tmp_path / "visits.toml", "--reward", "outcome")  # flags go first
    done = run("convert", VISITS, tmp_path / "visits", *chosen)
    assert done.code == 0, done.err
    data = load(tmp_path / "visits")
    assert data.obs_shape == (2,)
    assert not data.terminated.any()
    assert data.reward[0] == np.float32(0.01)


@pytest.mark.parametrize("suffix", ["npz", "parquet", "csv"])
def test_out_and_in_again(suffix: str, tmp_path: Path) -> None:
    assert run("convert", VISITS, tmp_path / "a", *FLAGS, *SEEN).code == 0
    assert run("convert", tmp_path / "a", tmp_path / f"b.{suffix}").code == 0
    done = run("convert", tmp_path / f"b.{suffix}", tmp_path / "c")
    assert done.code == 0, done.err
    first, last = load(tmp_path / "a"), load(tmp_path / "c")
    for name in ("obs", "action", "reward", "offsets", "terminated", "episode_return"):
        np.testing.assert_allclose(getattr(first, name), getattr(last, name), err_msg=name)
    assert first.actions == last.actions
    assert first.features is not None
    assert last.features is not None
    assert first.features.names == last.features.names


def test_a_target_is_not_overwritten_by_chance(tmp_path: Path) -> None:
    first = ("convert", VISITS, tmp_path / "a", *FLAGS, *SEEN)
    assert run(*first).code == 0
    again = run(*first)
    assert again.code == 2
    assert "--overwrite" in again.err
    assert run(*first, "--overwrite").code == 0
    itself = run("convert", tmp_path / "a", tmp_path / "a")
    assert (itself.code, "is the source itself" in itself.err) == (2, True)


def test_two_at_once_do_not_replace_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a"
    command = ("convert", VISITS, target, *FLAGS, *SEEN)
    with locked(target):
        refused = run(*command, "--overwrite")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "a: is being written by another process" in refused.err
    assert not target.exists()
    read = formats.read

    def overtaken(*arguments: Any) -> Any:
        """Another conversion to the same target ends while this one reads."""
        source = read(*arguments)
        monkeypatch.setattr(formats, "read", read)
        assert run(*command).code == 0
        return source

    monkeypatch.setattr(formats, "read", overtaken)
    late = run(*command)
    assert (late.code, "--overwrite" in late.err) == (2, True)
    assert load(target).num_episodes > 0


HEADER = "visit,day,age,ward,treatment,outcome\n"
GOOD = "a,0,50,X,mild,1\na,1,51,X,none,0.5\nb,0,60,Y,mild,2\nb,1,61,Y,none,1\n"
COLUMNS = (*FLAGS, "--observation", "age", "ward")


class Bad(NamedTuple):
    text: str  # of the log
    words: tuple[str, ...]  # of the message: where, what
    flags: tuple[str, ...] = COLUMNS


BAD = {
    "missing column": Bad(
        HEADER + GOOD, ("'ages'", "'age'"), (*FLAGS, "--observation", "ages", "ward")
    ),
    "mixed types": Bad(
        HEADER + GOOD + "c,0,old,X,mild,1\n", ("age", "old", "6"), (*FLAGS, "--observation", "age")
    ),
    "NaN in reward": Bad(HEADER + GOOD.replace("none,0.5", "none,NaN"), ("3", "outcome")),
    "negative action": Bad(HEADER + GOOD.replace("mild", "-1").replace("none", "0"), ("2", "-1")),
    "fractional action": Bad(
        HEADER + GOOD.replace("mild", "0.5").replace("none", "1"), ("2", "0.5")
    ),
    "action outside the declared set": Bad(
        HEADER + GOOD, ("3", "none"), (*COLUMNS, "--actions", "mild", "strong")
    ),
    "unsorted time": Bad(HEADER + GOOD.replace("a,1", "a,-1"), ("3", "day")),
    "an episode split in two": Bad(
        HEADER + GOOD + "a,2,52,X,mild,1\n", ("6", "a", "--time"), (*COLUMNS, "--time", "")
    ),
    "empty file": Bad("", ("empty",)),
    "header only": Bad(HEADER, ("row",)),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_logs_are_one_line_with_the_place(name: str, tmp_path: Path) -> None:
    log, bad = tmp_path / "log.csv", BAD[name]
    log.write_text(bad.text)
    done = run("convert", log, tmp_path / "store", *bad.flags)
    assert done.code == 2, done
    assert done.err.startswith(f"rbve: {log}")
    assert done.err.count("\n") == 1
    for word in bad.words:
        assert word in done.err
    assert not (tmp_path / "store").exists()
    assert [file.name for file in tmp_path.iterdir()] == ["log.csv"]


def test_masks_and_propensities_in_parquet(tmp_path: Path) -> None:
    good = {
        "episode": [0, 0, 1],
        "x": [0.5, 1.0, 2.0],
        "action": [0, 1, 1],
        "reward": [1.0, 0.0, 2.0],
        "legal": [[1, 1], [0, 1], [0, 1]],
        "propensity": [0.5, 1.0, 1.0],
    }
    changes = {
        "wrong width": ("legal", [[1, 1], [0, 1], [0, 1, 1]], ("2", "legal")),
        "illegal action": ("legal", [[1, 1], [1, 0], [0, 1]], ("1", "legal")),
        "no chance": ("propensity", [0.5, 0.0, 1.0], ("1", "propensity")),
    }
    file = tmp_path / "log.parquet"
    for column, values, words in changes.values():
        pyarrow.parquet.write_table(pa.table({**good, column: values}), file)
        done = run("convert", file, tmp_path / "store")
        assert done.code == 2, done
        assert done.err.count("\n") == 1
        for word in words:
            assert word in done.err
    pyarrow.parquet.write_table(pa.table(good), file)
    assert run("convert", file, tmp_path / "store").code == 0
    data = load(tmp_path / "store")
    assert data.legal is not None
    assert data.legal[data.action >= 0].tolist() == [[True, True], [False, True], [False, True]]


def test_a_truncated_gzip(tmp_path: Path) -> None:
    log = tmp_path / "log.csv.gz"
    log.write_bytes(gzip.compress((HEADER + GOOD * 1).encode())[:-12])
    done = run("convert", log, tmp_path / "store", *COLUMNS)
    assert done.code == 2, done
    assert done.err.startswith(f"rbve: {log}")
    assert done.err.count("\n") == 1


def test_an_audit_lists_what_conversion_refuses(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    bad = GOOD.replace("none,0.5", "none,NaN").replace("b,1", "b,-1") + "c,2,52,X,,1\n"
    log.write_text(HEADER + bad)
    done = run("inspect", log, *COLUMNS, "--json")
    assert done.code == 4
    found = json.loads(done.out)
    assert found["verdict"] == "do not train"
    names = " ".join(finding["name"] for finding in found["findings"]).lower()
    for word in ("reward", "time", "no decision"):
        assert word in names


def test_flags_for_logs_do_not_fit_other_formats(tmp_path: Path, catch_path: Path) -> None:
    done = run("convert", catch_path, tmp_path / "c.npz", "--episode", "x")
    assert done.code == 2
    assert "'episode' is a choice for csv, parquet, shards data" in done.err


@pytest.mark.slow
@pytest.mark.skipif(
    "RBVE_RLU_SAMPLES" not in os.environ, reason="RBVE_RLU_SAMPLES names no folder of real records"
)
def test_real_records_from_shards_to_a_policy(tmp_path: Path) -> None:
    samples = Path(os.environ["RBVE_RLU_SAMPLES"])
    store = tmp_path / "asterix"
    done = run("convert", samples / "atari_episodes", store, "--actions", "18")
    assert done.code == 0, done.err
    data = load(store)
    assert (data.num_transitions, float(data.episode_return[0]), data.num_actions) == (310, 17, 18)
    assert data.obs_shape == (84, 84, 1)
    few = ("--steps", 4, "--every", 2, "--batch-size", 4, "--hidden", 8, "--stack", 4)
    done = run("train", store, *few, "--holdout", 0, "--out", tmp_path / "runs")
    assert done.code == 0, done.err
    (file,) = (tmp_path / "runs").glob("*/policy.safetensors")
    policy = Policy.load(file)
    assert policy.obs_shape == (84, 84, 4)
    frames = np.concatenate([data.obs[k] for k in range(4)], axis=-1)
    assert policy.q_values(frames).shape == (18,)
    done = run("convert", samples / "atari_episodes", tmp_path / "b", "--actions", "up", "down")
    assert (done.code, "how many there are" in done.err) == (2, True)


def test_flags_go_before_the_file_even_where_they_say_the_default(tmp_path: Path) -> None:
    (tmp_path / "ends.toml").write_text('ends = "truncated"\n')
    store = tmp_path / "visits"
    chosen = ("--columns", tmp_path / "ends.toml", "--ends", "terminated")
    done = run("convert", VISITS, store, *FLAGS, *SEEN, *chosen)
    assert done.code == 0, done.err
    assert load(store).terminated.all()
    # Said of a store, which knows itself, they would be said in vain.
    done = run("inspect", store, "--episode", "visit")
    assert (done.code, "'episode' is a choice for csv, parquet, shards data" in done.err) == (
        2,
        True,
    )


def test_data_of_an_environment_that_is_not_here_trains(tmp_path: Path) -> None:
    """Minari's metadata names a Gymnasium environment, which may not be installed."""
    folder, store = tmp_path / "visits", tmp_path / "store"
    assert run("convert", VISITS, folder, *FLAGS, *SEEN, "--to", "minari_arrow").code == 0
    metadata = folder / "data" / "metadata.json"
    said = json.loads(metadata.read_text())
    del said["rbve"]
    metadata.write_text(json.dumps({**said, "env_spec": '{"id": "Elsewhere-v1"}'}))
    assert run("convert", folder, store).code == 0
    assert load(store).provenance["env_id"] == "Elsewhere-v1"
    done = run("train", store, "--steps", 4, "--hidden", 8, "--out", tmp_path / "runs")
    assert done.code == 0, done.err


@pytest.mark.parametrize("name", ["visits.csv.gz", "visits.h5", "visits.tsv"])
def test_a_store_is_not_named_like_a_file(tmp_path: Path, name: str) -> None:
    done = run("convert", VISITS, tmp_path / name, *FLAGS, *SEEN)
    assert (done.code, "suffixes .csv, .npz, .parquet" in done.err) == (2, True)
    assert not list(tmp_path.iterdir())


def test_slips_are_told_before_the_data_is_read(tmp_path: Path) -> None:
    done = run("convert", tmp_path / "none.csv", tmp_path / "out", "--to", "minary")
    assert (done.code, "Did you mean 'minari'" in done.err) == (2, True)
    with pytest.raises(ValueError, match=r"unknown option 'epsiode'\. Did you mean 'episode'"):
        rbve.inspect(VISITS, format="csv", epsiode="visit")


def test_a_log_is_not_trained_on_directly() -> None:
    done = run("train", VISITS)
    assert done.code == 2
    assert f"rbve convert {VISITS} STORE" in done.err


def test_a_killed_conversion_leaves_no_target(tmp_path: Path) -> None:
    log, store = tmp_path / "log.csv", tmp_path / "store"
    rows = "".join(f"{k // 10},{k % 10},{k},X,mild,1\n" for k in range(400_000))
    log.write_text(HEADER + rows)
    command = [sys.executable, "-m", "rbve.cli", "convert", str(log), str(store), *COLUMNS]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    # Killed once it writes.
    while not list(tmp_path.glob(".store*")) and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not store.exists()
    done = run("convert", log, store, *COLUMNS)
    assert done.code == 0, done.err
    assert load(store).num_transitions == 400_000
    left = sorted(file.name for file in tmp_path.iterdir())
    assert left == ["log.csv", "store"]


def test_a_bandits_log_without_episodes(tmp_path: Path) -> None:
    log = tmp_path / "bandit.csv"
    log.write_text("hour,age,arm,click,prob\n1,9,x,0,0.5\n2,8,y,1,0.5\n3,7,x,1,0.25\n")
    flags = ("--action", "arm", "--reward", "click", "--propensity", "prob")
    done = run("convert", log, tmp_path / "store", *flags)
    assert (done.code, "--ends each" in done.err) == (2, True)
    done = run("convert", log, tmp_path / "store", *flags, "--ends", "each")
    assert done.code == 0, done.err
    data = load(tmp_path / "store")
    assert data.lengths.tolist() == [1, 1, 1]
    assert data.terminated.all()
    assert data.complete.all()
    taken = data.action >= 0
    assert data.reward[taken].tolist() == [0, 1, 1]
    assert data.propensity is not None
    assert data.propensity[taken].tolist() == [0.5, 0.5, 0.25]
    done = run("convert", log, tmp_path / "c", *flags, "--ends", "each", "--episode", "hour")
    assert (done.code, "makes every row an episode" in done.err) == (2, True)


def test_targets_are_looked_at_before_the_input_is_read(tmp_path: Path, catch_path: Path) -> None:
    (tmp_path / "there.npz").write_bytes(b"mine")
    done = run("convert", VISITS, tmp_path / "there.npz", "--action", "no such column")
    assert (done.code, "already exists" in done.err) == (2, True)
    done = run("convert", catch_path, catch_path / "within")
    assert (done.code, "lies within the source" in done.err) == (2, True)


def test_a_glob_of_files_that_are_no_data(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    done = run("convert", tmp_path / "*.txt", tmp_path / "store")
    assert (done.code, "no dataset of a known format" in done.err) == (2, True)
    done = run("convert", tmp_path / "*.tfrecord", tmp_path / "store")
    assert (done.code, "no file matches" in done.err) == (2, True)


def test_one_of_each_is_said_so(tmp_path: Path) -> None:
    episode = Episode.from_steps(np.zeros((2, 1)), [0], [1.0], True)
    write(Dataset.from_episodes([episode], ("stay",)), tmp_path / "one")
    done = run("convert", tmp_path / "one", tmp_path / "again")
    assert done.out == f"{tmp_path / 'again'}: 1 episode, 1 decision, 1 action (stay)\n"
