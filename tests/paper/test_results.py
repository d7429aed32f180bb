"""Studies packed: a report of the packed folder reads the same runs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from rbve import rows
from rbve.paper import results
from rbve.paper.results import Listed
from rbve.rows import Row, Run

AUDIT = {
    "verdict": "fine",
    "findings": [],
    "notes": [],
    "episodes": 60,
    "transitions": 540,
    "observation": "10 × 5 float32",
    "executed_differs": None,
    "actions": {"left": 0.25},
    "length": {"mean": 9.0},
    "returns": {"mean": -0.5},
    "ends": {"terminated": 60},
}


def run(job: str, finished: bool = True) -> Run:
    name = "final/return" if finished else "return"
    spec = {"seed": 1, "data": {"path": "study/data/catch-0/1"}}
    return Run(job, spec, {"env": "catch"}, [Row(5, "return", 0.25, 9), Row(10, name, 1 / 3, 9)])


@pytest.fixture
def study(tmp_path: Path) -> Path:
    out = tmp_path / "study"
    for job in ("b", "a", "foreign"):
        rows.write(run(job), out / "runs" / job / rows.FILE)
    rows.write(run("half", finished=False), out / "runs" / "half" / rows.FILE)
    (out / "experiments").mkdir()
    (out / "experiments" / "bsuite.json").write_text(json.dumps({"jobs": ["a", "b", "half", "c"]}))
    rows.write(run("chain/1"), out / "theory" / "improvement" / "rows" / "chain" / "1.jsonl")
    (out / "audits.json").write_text(json.dumps({"data/x/1": AUDIT}))
    return out


def test_finished_runs_of_experiments_are_kept(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "kept"
    assert results.pack([study], out) == results.Packed(runs=2, left_out=2, theory=1)
    assert rows.find([out]) == [run("a"), run("b")]  # theory's runs are not among them
    assert results.theory_runs([out]) == {"improvement": [run("chain/1")]}
    assert results.listed([out]) == {"bsuite": Listed({"a", "b", "half", "c"})}
    assert json.loads((out / "audits.json").read_text()) == {"data/x/1": AUDIT}
    assert {file.name for file in out.rglob("*") if file.is_file()} == {
        "rows.jsonl.gz", "theory.jsonl.gz", "bsuite.json", "audits.json",
    }  # fmt: skip


def test_packing_again_gives_equal_bytes(study: Path, tmp_path: Path) -> None:
    results.pack([study], tmp_path / "one")
    results.pack([tmp_path / "one"], tmp_path / "two")
    first, second = (tmp_path / name / rows.PACKED for name in ("one", "two"))
    assert first.read_bytes() == second.read_bytes()


def test_where_the_study_lay_is_not_told(study: Path, tmp_path: Path) -> None:
    lies = run("a")._replace(spec={"data": {"path": "/home/me/study/data/catch-0/3", "keep": 0.1}})
    rows.write(lies, study / "runs" / "a" / rows.FILE)
    results.pack([study], tmp_path / "kept")
    kept = {each.job: each.spec["data"] for each in rows.find([tmp_path / "kept"])}
    assert kept["a"] == {"path": "study/data/catch-0/3", "keep": 0.1}


def test_studies_are_packed_together(study: Path, tmp_path: Path) -> None:
    out, other = tmp_path / "kept", tmp_path / "other"
    results.pack([study], out)
    rows.write(run("m"), other / "runs" / "m" / rows.FILE)
    rows.write(run("a"), other / "runs" / "a" / rows.FILE)  # shared: kept once
    (other / "experiments").mkdir()
    (other / "experiments" / "minatar.json").write_text(json.dumps({"jobs": ["m", "a"]}))
    audit = {"data/x/0": AUDIT, "data/x/1": AUDIT}
    (other / "audits.json").write_text(json.dumps(audit))
    assert results.pack([out, other], out) == results.Packed(runs=3, left_out=0, theory=1)
    assert {each.job for each in rows.find([out])} == {"a", "b", "m"}
    assert set(results.listed([out])) == {"bsuite", "minatar"}
    assert set(results.theory_runs([out])) == {"improvement"}
    assert json.loads((out / "audits.json").read_text()) == audit


def test_a_folder_without_a_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no study"):
        results.pack([tmp_path], tmp_path / "out")


@pytest.mark.parametrize(
    "content",
    [b"junk", gzip.compress(b'{"step": 1}\n'), gzip.compress(b"[]\n")],
    ids=["no gzip", "no run", "no fields"],
)
def test_a_damaged_pack_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / rows.PACKED
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"rows\.jsonl\.gz: not a file of result rows"):
        rows.find([tmp_path])
    file.write_bytes(gzip.compress(b'{"job": "a", "spec": {}, "facts": {}}\n')[:-6])
    with pytest.raises(ValueError, match="not a file of result rows"):
        rows.find([tmp_path])


def test_two_recordings_of_a_kind_keep_an_audit_each(tmp_path: Path) -> None:
    """While runs of both are kept; else the later one is all there is."""

    def study(name: str, experiment: str, mark: str) -> Path:
        out = tmp_path / name
        spec = {"data": {"path": f"{name}/data/catch-0/1", "fingerprint": mark}}
        rows.write(run(mark)._replace(spec=spec), out / "runs" / mark / rows.FILE)
        (out / "experiments").mkdir()
        (out / "experiments" / f"{experiment}.json").write_text(json.dumps({"jobs": [mark]}))
        audit = {"data/catch-0/1": {**AUDIT, "fingerprint": mark}}
        (out / "audits.json").write_text(json.dumps(audit))
        return out

    def kept() -> dict[str, str]:
        audits = json.loads((tmp_path / "kept" / "audits.json").read_text())
        return {name: each["fingerprint"] for name, each in audits.items()}

    one, other = study("one", "bsuite", "aa"), study("other", "fractions", "bb")
    results.pack([one, other], tmp_path / "kept")
    assert kept() == {"data/catch-0/1": "aa", "other/data/catch-0/1": "bb"}
    results.pack([tmp_path / "kept", other], tmp_path / "kept")
    assert kept() == {"data/catch-0/1": "aa", "other/data/catch-0/1": "bb"}
    results.pack([one, study("anew", "bsuite", "cc")], tmp_path / "kept")
    assert kept() == {"data/catch-0/1": "cc"}
