"""Text files as spreadsheets write them: other separators, decimal commas, dates by a format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import run
from support.logs import joined, joined_with_notes, kinds, said

from rbve.data import formats
from rbve.data.formats import read
from rbve.data.formats._text import times
from rbve.data.logs import LogOptions

Put = Callable[..., Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    def write_text(content: str, name: str = "log.csv") -> Path:
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return path

    return write_text


PLAIN = "episode,x,action,reward\n1,0.5,0,1\n1,1.5,1,2\n2,2.5,0,3\n"
SHEET = "episode;time;x;action;reward\n1;31.01.2024 9:00;0,5;0;1\n1;1.02.2024 8:30;1,5;1;2,5\n"


# Separators


@pytest.mark.parametrize(("sign", "name"), [(";", "semicolons"), ("\t", "tabs"), ("|", "vertical")])
def test_other_separators_are_found(put: Put, sign: str, name: str) -> None:
    data, notes = joined_with_notes(put(PLAIN.replace(",", sign)))
    np.testing.assert_array_equal(data.obs[:, 0], [0.5, 1.5, 1.5, 2.5, 2.5])
    np.testing.assert_array_equal(data.reward, [1, 2, 0, 3, 0])
    assert said(notes, f"separated by {name}", "--delimiter")
    _, notes = joined_with_notes(put(PLAIN))
    assert not said(notes, "separated")


def test_the_header_decides_between_separators(put: Put) -> None:
    """Every row holds one comma too, so both signs cut all rows alike."""
    options = LogOptions(decimal=",", time_format="%d.%m.%Y %H:%M")
    data = joined(put(SHEET.replace("x;", "x,y;")), options)
    assert data.features is not None
    assert data.features.names == ["x,y"]
    data = joined(put("episode,x|y,action,reward\n1,a|b,0,1\n1,c|d,0,1\n"))
    assert data.features is not None
    assert data.features.columns[0].categories == ("a|b", "c|d")


def test_separators_by_name(put: Put) -> None:
    for given, sign in (("tab", "\t"), ("\\t", "\t"), ("\t", "\t"), (";", ";"), ("^", "^")):
        path = put(PLAIN.replace(",", sign))
        data, notes = joined_with_notes(path, LogOptions(delimiter=given))
        assert data.num_transitions == 3
        assert not said(notes, "separated")
    with pytest.raises(ValueError, match=r"no column 'action'.*--delimiter"):
        read(put(PLAIN.replace(",", "^")))
    for wrong in ("", ";;", '"', "\n", "é"):
        with pytest.raises(ValueError, match="delimiter must be one sign"):
            LogOptions(delimiter=wrong)
    with pytest.raises(ValueError, match="cannot both be ','"):
        LogOptions(delimiter=",", decimal=",")


def test_files_of_tabs_by_their_suffix(put: Put) -> None:
    assert joined(put(PLAIN.replace(",", "\t"), "log.tsv")).num_transitions == 3


# Decimals


def test_decimal_commas(put: Put) -> None:
    path = put(SHEET)
    options = LogOptions(decimal=",", time_format="%d.%m.%Y %H:%M")
    data = joined(path, options)
    np.testing.assert_array_equal(data.obs[:, 0], [0.5, 1.5, 1.5])
    np.testing.assert_array_equal(data.reward, [1, 2.5, 0])
    data = joined(
        put('episode,x,w,action,reward\n1,"-3,5e2","a, b",0,",5"\n'), LogOptions(decimal=",")
    )
    assert data.obs[0, 0] == -350
    assert data.reward[0] == 0.5
    assert data.features is not None
    assert data.features.columns[1].categories == ("a, b",)


@pytest.mark.parametrize("rows", [["3,5", "4"], ["3,5", "4,5"]])
def test_decimal_commas_name_the_option(put: Put, rows: list[str]) -> None:
    lines = "".join(f"1;{value};0;1\n" for value in rows)
    path = put(f"episode;x;action;reward\n{lines}")
    with pytest.raises(
        ValueError, match=r"line 2: column 'x' holds '3,5', .*pass --decimal , .*--categorical x"
    ):
        read(path)
    assert joined(path, LogOptions(categorical=("x",))).features is not None


@pytest.mark.parametrize(
    ("text", "decimal", "words"),
    [
        ("1,234.5", None, "thousands separators are not read"),
        ("1,234,567", None, "thousands separators are not read"),
        ("1,234", None, r"pass --decimal , if ',' stands before decimals \(thousands"),
        ("1.234,5", ",", "thousands separators are not read"),
        ("1.234", ",", r"pass --decimal \. if '\.' stands before decimals \(thousands"),
        ("3.5", ",", r"pass --decimal \. to read it"),
        ("3,5", None, "pass --decimal , to read it"),
        ("many", None, "correct it"),
    ],
)
def test_what_is_no_number(put: Put, text: str, decimal: str | None, words: str) -> None:
    path = put(f"episode;x;action;reward\n1;2;0;1\n1;2;0;{text}\n")
    with pytest.raises(ValueError, match=f"line 3: column 'reward' holds '{text}', .*{words}"):
        read(path, options=LogOptions(decimal=decimal))


def test_names_of_actions_may_hold_commas(put: Put) -> None:
    assert joined(put("episode;x;action;reward\n1;2;2,5 mg;1\n1;2;5 mg;1\n")).num_actions == 2
    assert joined(put("episode;x;action;reward\n1;2;2,5;1\n1;2;0,5;1\n")).actions == ("0,5", "2,5")


# Times

TIMES = "episode,time,x,action,reward\n1,{},1,0,1\n1,{},2,0,1\n"


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (("31.01.2024 10:00", "1.02.2024 9:00"), r"pass --time-format '%d\.%m\.%Y %H:%M'$"),
        (("01/31/2024", "02/01/2024"), r"pass --time-format '%m/%d/%Y'$"),
        (
            ("03/04/2024", "03/05/2024"),
            "pass --time-format '%d/%m/%Y' if the day comes first, --time-format '%m/%d/%Y' if the "
            "month does$",
        ),
        (("31.01.24", "01.02.24"), r"pass --time-format '%d\.%m\.%y'$"),
        (("noon", "night"), "say how it is written with --time-format"),
    ],
)
def test_dates_name_the_format_that_reads_them(
    put: Put, times: tuple[str, str], words: str
) -> None:
    path = put(TIMES.format(*times))
    with pytest.raises(ValueError, match=f"line 2: column 'time' holds '{times[0]}', .*{words}"):
        read(path)
    assert kinds(path) == ["mixed types"]


def test_dates_by_a_format(put: Put) -> None:
    path = put(TIMES.format("31.01.2024", "1.02.2024"))
    assert joined(path, LogOptions(time_format="%d.%m.%Y")).num_transitions == 2
    with pytest.raises(ValueError, match=r"2024-01-01 .* after 2024-01-31"):
        joined(put(TIMES.format("31.01.2024", "1.01.2024")), LogOptions(time_format="%d.%m.%Y"))
    for wrong in ("31.02.2024", "1.13.2024", "2024-02-01", "1.2.24"):
        path = put(TIMES.format("31.01.2024", wrong))
        with pytest.raises(
            ValueError, match=f"line 3: column 'time' holds '{wrong}', which is not"
        ):
            read(path, options=LogOptions(time_format="%d.%m.%Y"))
    path = put(TIMES.format("20240131", "20240201"))
    assert joined(path, LogOptions(time_format="%Y%m%d")).num_transitions == 2


def test_formats_beyond_days() -> None:
    texts = pa.array(["31.01.2024 10:00:00.25", None, "03.02.2024 10:00:01"])
    found = times(texts, "%d.%m.%Y %H:%M:%S.%f")
    assert [each.value for each in found] == [1706695200250000, None, None]
    zones = times(
        pa.array(["2024-01-31 10:00 +0200", "2024-02-01 10:00 +0000"]), "%Y-%m-%d %H:%M %z"
    )
    assert [each.value for each in zones] == [1706688000000000, 1706781600000000]


def test_formats_that_read_nothing() -> None:
    for wrong in ("day", "%q", "", "100%%"):
        with pytest.raises(ValueError, match="time_format must say how times are written"):
            LogOptions(time_format=wrong)


@pytest.mark.parametrize("times", [("31.01.2024", "1.02.2024"), ("2024-01-31", "2024-02-01")])
def test_dates_are_no_categories(put: Put, times: tuple[str, str]) -> None:
    path = put(TIMES.format(*times))
    with pytest.raises(
        ValueError, match=r"line 2: column 'time' holds .*, a date.*pass --time time"
    ):
        read(path, options=LogOptions(time=""))
    assert kinds(path, LogOptions(time="")) == ["mixed types"]
    data = joined(path, LogOptions(time="", categorical=("time",)))
    assert data.features is not None
    assert data.features.columns[0].kind == "category"


# Faults stop what would rest on them


def test_all_columns_that_cannot_be_read_are_told_at_once(put: Put) -> None:
    path = put(SHEET)
    for command in (("convert", path, path.parent / "out"), ("inspect", path)):
        done = run(*command)
        assert done.code == 2
        assert done.err.startswith(f"rbve: {path}: line 2: column 'time' holds '31.01.2024 9:00'")
        assert "--time-format '%d.%m.%Y %H:%M'" in done.err
        assert (
            "line 3: column 'reward' holds '2,5', and needs a number; pass --decimal ," in done.err
        )
        assert "line 2: column 'x' holds '0,5'" in done.err
        assert done.out == ""
    options = ("--decimal", ",", "--time-format", "%d.%m.%Y %H:%M")
    assert run("convert", path, path.parent / "out", *options).code == 0


def test_rows_and_signs_that_cannot_be_read_stop_an_audit(put: Put) -> None:
    path = put(PLAIN.replace("1,1.5,1,2", "1,1,5,1,2"))
    done = run("inspect", path)
    assert (done.code, done.out) == (2, "")
    assert "line 3: 5 fields, and the header names 4; quote fields that hold ','" in done.err
    done = run("inspect", put("episode,x,action,reward\n1,0,5,0,1\n"))  # in all rows
    assert "line 2: 5 fields" in done.err
    path.write_bytes(PLAIN.replace("0.5", "é").encode("latin-1"))
    done = run("inspect", path)
    assert (done.code, done.out) == (2, "")
    assert "not UTF-8" in done.err


def test_the_choices_stand_in_a_file_too(put: Put, tmp_path: Path) -> None:
    path = put(SHEET)
    (tmp_path / "log.toml").write_text(
        'delimiter = ";"\ndecimal = ","\ntime_format = "%d.%m.%Y %H:%M"\n'
    )
    assert joined(path, formats.from_toml(tmp_path / "log.toml", LogOptions)).num_transitions == 2
    done = run("convert", path, tmp_path / "out", "--columns", tmp_path / "log.toml")
    assert done.code == 0, done.err


def test_parquet_has_types_of_its_own(tmp_path: Path) -> None:
    columns = {"episode": [1], "x": [0.5], "action": [0], "reward": [1.0]}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    with pytest.raises(ValueError, match="--decimal is a choice for CSV logs"):
        read(tmp_path / "log.parquet", options=LogOptions(decimal=","))
