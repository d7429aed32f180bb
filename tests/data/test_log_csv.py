"""CSV files as people have them: types settled over the whole file, and lines named."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.logs import joined, kinds

from rbve.data import Dataset, load, write
from rbve.data.formats import csv, read, recognise
from rbve.data.logs import LogOptions

Put = Callable[..., Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    def write_text(content: str | bytes, name: str = "log.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_text


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a few lines in many blocks."""
    monkeypatch.setattr(csv, "BLOCK", 64)


PLAIN = "episode,x,action,reward\n1,0.5,0,1\n1,1.5,1,2\n2,2.5,0,3\n"
VALUES = [0.5, 1.5, 1.5, 2.5, 2.5]


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        "\ufeff" + PLAIN,
        PLAIN.rstrip("\n"),
        PLAIN + "\n\n\n",
        "\n" + PLAIN,
        PLAIN.replace("\n2", "\n\n\n2"),
        PLAIN.replace(",", " , "),
        'episode,"x","action",reward\n"1","0.5","0","1"\n1,1.5,1,2\n2,"2.5",0,3\n',
        'episode,"x",action,reward\n1, 0.5,0,1\n1,1.5 ,1,2\n2,+2.5,0,3e0\n',
    ],
)
def test_dialects(put: Put, content: str) -> None:
    data = joined(put(content))
    np.testing.assert_array_equal(data.obs[:, 0], VALUES)
    np.testing.assert_array_equal(data.action, [0, 1, -1, 0, -1])
    np.testing.assert_array_equal(data.reward, [1, 2, 0, 3, 0])


def test_compressed_files(put: Put) -> None:
    packed = {
        "log.csv.gz": gzip.compress(PLAIN[:30].encode()) + gzip.compress(PLAIN[30:].encode()),
        "log.csv.zst": pa.compress(PLAIN.encode(), codec="zstd", asbytes=True),
        "log.csv.bz2": __import__("bz2").compress(PLAIN.encode()),
    }
    for name, content in packed.items():
        path = put(content, name)
        assert recognise(path) == "csv"
        np.testing.assert_array_equal(joined(path).obs[:, 0], VALUES)


def test_progress_reaches_the_file_size(put: Put) -> None:
    path = put(gzip.compress(PLAIN.encode()), "log.csv.gz")
    source = read(path)
    list(source.parts)
    assert source.position() == source.total == path.stat().st_size


def test_row_numbers_of_data_frames_are_no_observation(put: Put) -> None:
    source = read(put(",episode,x,action,reward\n0,1,0.5,0,1\n1,1,1.5,1,2\n"))
    data = Dataset.join(source.parts)
    assert data.features is not None
    assert data.features.names == ["x"]
    assert any("without a name" in note for note in source.notes)


def test_names_beyond_ascii(put: Put) -> None:
    data = joined(
        put("визит,возраст,действие,награда\n1,61,α β,1\n1,62,ä,2\n"),
        LogOptions(episode="визит", action="действие", reward="награда"),
    )
    assert data.actions == ("ä", "α β")
    assert data.features is not None
    assert data.features.names == ["возраст"]


# Types come from the whole file


def many(values: list[str], column: str = "x") -> str:
    """One value a line, in one episode; reward and action are fixed."""
    lines = [f"1,{value},0,1" for value in values]
    return "\n".join([f"episode,{column},action,reward", *lines]) + "\n"


@pytest.mark.usefixtures("small_blocks")
def test_whole_numbers_may_turn_into_fractions_later(put: Put) -> None:
    data = joined(put(many([str(index) for index in range(50)] + ["0.25"])))
    np.testing.assert_array_equal(data.obs[:51, 0], [*range(50), 0.25])
    assert data.obs.dtype == np.float32


@pytest.mark.usefixtures("small_blocks")
def test_a_word_among_numbers_is_named(put: Put) -> None:
    path = put(many([str(index) for index in range(50)] + ["high", "51"]))
    with pytest.raises(
        ValueError, match=r"line 52: column 'x' holds 'high'.*\(0\) in line 2;.*--cat"
    ):
        read(path)
    assert kinds(path)[0] == "mixed types"
    data = joined(path, LogOptions(categorical=("x",)))
    assert data.features is not None
    assert data.features.columns[0].categories[-2:] == ("9", "high")


@pytest.mark.usefixtures("small_blocks")
def test_a_number_among_words_is_named_too(put: Put) -> None:
    path = put(many(["low"] * 30 + ["7"] + ["low"] * 9))
    with pytest.raises(ValueError, match=r"line 2: column 'x' holds 'low'.*\(7\) in line 32"):
        read(path)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("column", ["reward", "time", "propensity", "episode_return"])
def test_a_word_where_a_number_must_be(put: Put, column: str) -> None:
    lines = [f"1,{index},{index},0,{index}" for index in range(20)]
    lines[13] = "1,13,13,0,oops"
    header = f"episode,x,{'y' if column == 'reward' else 'reward'},action,{column}"
    path = put("\n".join([header, *lines]))
    options = LogOptions(observation=("x",))
    with pytest.raises(ValueError, match=f"line 15: column '{column}' holds 'oops'"):
        read(path, options=options)
    assert "mixed types" in kinds(path, options)


def test_missing_values_in_many_spellings(put: Put) -> None:
    for word in ("", "NA", "NaN", "nan", "N/A", "null", '""'):
        path = put(many(["1", word, "3"]))
        with pytest.raises(ValueError, match="line 3: column 'x' is empty or not a finite"):
            joined(path)
        # In the last row, such an action marks the final observation.
        final = put(f"episode,x,action,reward\n1,1.5,stop,1\n1,2.5,{word},{word}\n")
        data = joined(final)
        assert data.actions == ("stop",)
        assert data.finals_known.all()


def test_quoted_words_are_words(put: Put) -> None:
    data = joined(put('episode,x,action,reward\n1,"NA","NULL",1\n1,"B",None,1\n'))
    assert data.actions == ("NULL", "None")
    assert data.features is not None
    assert data.features.columns[0].categories == ("B", "NA")


def test_flags_in_many_spellings(put: Put) -> None:
    rows = ["True", "true", "TRUE", "1", "yes", "1.0", "t", "Y"]
    lines = [f"{index},0,0,0,{flag}" for index, flag in enumerate(rows)]
    lines += [f"{100 + i},0,0,0,{flag}" for i, flag in enumerate(["False", "no", "0", "", "NA"])]
    data = joined(put("\n".join(["episode,x,action,reward,terminated", *lines])))
    np.testing.assert_array_equal(data.terminated, [True] * 8 + [False] * 5)


def test_booleans_are_categories_a_policy_takes(put: Put) -> None:
    data = joined(put(many(["true", "FALSE", "True"], "smoker")))
    assert data.features is not None
    assert data.features.columns[0].categories == ("False", "True")
    np.testing.assert_array_equal(data.obs[:3, 0], [1, 0, 1])
    rows = data.features.rows([{"smoker": True}, {"smoker": "false"}, {"smoker": np.True_}])
    np.testing.assert_array_equal(rows[:, 0], [1, 0, 1])


def test_huge_ids_stay_apart(put: Put) -> None:
    data = joined(
        put(
            "episode,x,action,reward\n"
            "99999999999999999999901,1,0,1\n99999999999999999999901,2,0,1\n"
            "99999999999999999999902,3,0,1\n"
        )
    )
    np.testing.assert_array_equal(data.lengths, [2, 1])


def test_dates_order_time(put: Put) -> None:
    content = "episode,time,x,action,reward\n1,2024-01-31,1,0,1\n1,{},2,0,1\n"
    assert joined(put(content.format("2024-02-01 09:30"))).num_transitions == 2
    with pytest.raises(ValueError, match=r"column 'time' is 2024-01-30 .* after 2024-01-31 "):
        joined(put(content.format("2024-01-30")))
    with pytest.raises(ValueError, match=r"line 2: column 'time' holds '31/1/2024'.*a date as in"):
        joined(put(content.format("30/1/2024").replace("2024-01-31", "31/1/2024")))


def test_times_of_day_may_name_their_zone(put: Put) -> None:
    """08:30 in UTC is after 10:00 two hours to the east of it."""
    content = "episode,time,x,action,reward\n1,2024-05-01T10:00:00+02:00,1,0,1\n1,{},2,0,1\n"
    assert joined(put(content.format("2024-05-01T08:30:00.5Z"))).num_transitions == 2
    with pytest.raises(ValueError, match=r"line 3: column 'time' is 2024-05-01 07:59:00.*Z after"):
        joined(put(content.format("2024-05-01T07:59Z")))
    with pytest.raises(ValueError, match="line 2: column 'time' holds '2024-05-01T10"):
        joined(put(content.format("2024-05-01T11:00:00")))  # with and without a zone


# Damage


def test_files_that_hold_nothing(put: Put) -> None:
    for content in ("", "\n\n", "episode,x,action,reward\n", gzip.compress(b"")):
        path = put(content, "log.csv.gz" if isinstance(content, bytes) else "log.csv")
        with pytest.raises(ValueError, match=r"holds|is empty"):
            read(path)
        assert kinds(path) == ["empty file"]


def test_a_truncated_gzip(put: Put) -> None:
    rng = np.random.default_rng(0)
    lines = [f"{index // 10},{x},0,1" for index, x in enumerate(rng.normal(size=20000))]
    whole = gzip.compress("\n".join(["episode,x,action,reward", *lines]).encode())
    path = put(whole[: len(whole) // 2], "log.csv.gz")
    with pytest.raises(ValueError, match=r"log.csv.gz: cannot be read from line \d+ on .*cut"):
        joined(path)
    assert kinds(path)[0] == "damaged file"
    assert kinds(put(whole[:40], "log.csv.gz")) == ["damaged file"]
    assert kinds(put(b"\x1f\x8b" + b"garbage" * 9, "log.csv.gz")) == ["damaged file"]


def test_text_that_is_not_utf_8(put: Put) -> None:
    content = "episode,word,action,reward\n1,caf\u00e9,0,1\n1,th\u00e9,0,1\n".encode("latin-1")
    path = put(content)
    with pytest.raises(ValueError, match=r"line 2: not UTF-8 text \(b'1,caf\\xe9,0,1'\)"):
        read(path)
    assert kinds(path) == ["undecodable text"]
    assert kinds(put(PLAIN.encode("utf-16")))[0] == "undecodable text"
    assert kinds(put(PLAIN.encode("utf-16-le")))[0] == "undecodable text"
    assert kinds(put(b"episode,caf\xe9,action,reward\n1,1,0,1\n")) == ["undecodable text"]


@pytest.mark.usefixtures("small_blocks")
def test_signs_of_several_bytes_wherever_blocks_end(put: Put) -> None:
    names = [f"{'xyz'[: index % 4]}žлуť😀{index % 50}" for index in range(400)]
    data = joined(put(many(names)))
    assert data.features is not None
    categories = data.features.columns[0].categories
    assert [categories[int(code)] for code in data.obs[:400, 0]] == names


def test_lines_of_another_length(put: Put) -> None:
    path = put(PLAIN.replace("1,1.5,1,2", "1,1,5,1,2"))
    with pytest.raises(ValueError, match="line 3: 5 fields, and the header names 4"):
        read(path)
    assert kinds(path) == ["ragged row"]


def test_a_first_line_that_is_too_long_for_a_header(
    put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off after some megabytes, its last name would be wrong and the rest taken for a row."""
    monkeypatch.setattr(csv, "PIECE", 1_000)
    monkeypatch.setattr(csv, "MAX_HEADER", 2_000)
    names = ",".join(f"x{index}" for index in range(1_000))
    path = put(f"episode,action,reward,{names}\n" + "1,0,1" + ",2" * 1_000 + "\n")
    with pytest.raises(ValueError, match=r"its first line is longer than 2,000 bytes"):
        read(path)
    assert kinds(path) == ["damaged file"]
    monkeypatch.undo()
    assert joined(path).obs_shape == (1_000,)


def test_two_columns_of_one_name(put: Put) -> None:
    with pytest.raises(ValueError, match="two columns are called 'x'"):
        read(put("episode,x,x,action,reward\n1,1,1,0,1\n"))


def test_a_quote_that_never_closes(put: Put) -> None:
    assert kinds(put(PLAIN.replace("2.5", '"2.5'))) in (["damaged file"], ["ragged row"])


def test_rows_are_counted_where_lines_are_not_rows(put: Put) -> None:
    content = 'episode,word,action,reward\n1,"two\nlines",0,1\n1,b,0,oops\n'
    with pytest.raises(ValueError, match=": row 1: column 'reward' holds 'oops'"):
        read(put(content))
    with pytest.raises(ValueError, match=": row 1: column 'reward' holds 'oops'"):
        read(put("episode,word,action,reward\n1,a,0,1\n\n1,b,0,oops\n"))


# Our own files


def test_names_csv_cannot_keep_are_refused(put: Put, tmp_path: Path) -> None:
    data = joined(put(PLAIN), LogOptions(actions=("0", "1", " ")))
    with pytest.raises(ValueError, match="CSV cannot keep the name ' '"):
        write(data, tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()
    assert not list(tmp_path.glob(".*"))


def test_floats_survive(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    obs = rng.normal(size=(41, 2)).astype(np.float32)
    reward = np.append((rng.normal(size=40) * 10.0 ** rng.integers(-30, 30, 40)), 0)
    data = Dataset(
        obs=obs,
        action=np.append(np.zeros(40, np.int32), -1).astype(np.int32),
        reward=reward.astype(np.float32),
        offsets=np.array([0, 41]),
        terminated=np.array([False]),
        complete=np.array([True]),
        episode_return=np.array([1 / 3]),
        actions=("0",),
    )
    write(data, tmp_path / "out.csv")
    found = load(tmp_path / "out.csv")
    assert found.obs.dtype == np.float32
    np.testing.assert_array_equal(found.obs, obs)
    np.testing.assert_array_equal(found.reward, data.reward)
    np.testing.assert_array_equal(found.episode_return, [1 / 3])
    assert found.final_observed is None
