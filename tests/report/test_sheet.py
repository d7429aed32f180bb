"""CSV files of reports: what a spreadsheet would compute is kept as text."""

import csv
import io
from pathlib import Path

import pytest
from support.reports import add_run, finals

from rbve.report import write_report
from rbve.report.sheet import as_csv, plain


@pytest.mark.parametrize("text", ["=1+1", "+SUM(A1)", "-cmd|' /C calc'!A0", "@x", "\t=1", "\r=1"])
def test_formulas_become_text(text: str) -> None:
    assert plain(text) == f"'{text}"


@pytest.mark.parametrize("cell", ["-5", "+1e5", "-0.25", "R-BVE", "a=b", "", -5, 0.5, None])
def test_numbers_and_words_stay(cell: object) -> None:
    assert plain(cell) == cell


def test_headers_and_cells() -> None:
    lines = list(csv.reader(io.StringIO(as_csv(["a", "=b"], [["=1", -2.5], [None, "x,y"]]))))
    assert lines == [["a", "'=b"], ["'=1", "-2.5"], ["", "x,y"]]


def test_names_of_data_and_algorithms_reach_no_cell_as_formulas(tmp_path: Path) -> None:
    name = "=SUM(A1)"
    run = add_run(tmp_path / "runs", name, data={"path": f"data/{name}"}, facts={"recording": None})
    run.append(finals({"return": 1.0, "overestimation": 0.5}))
    write_report([tmp_path / "runs"], tmp_path)
    files = list((tmp_path / "figures").glob("*.csv"))
    assert len(files) == 3
    lines = [line for file in files for line in csv.reader(io.StringIO(file.read_text()))]
    cells = [cell for line in lines for cell in line]
    assert not [cell for cell in cells if cell.startswith("=")]
    assert any(cell.startswith("'=SUM(A1)") for cell in cells)
