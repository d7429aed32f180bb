"""A study of one's own: a file with an EXPERIMENT, recorded, trained, shown with its question."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.cli import run

SCALE = "Scale(2, 40, episodes=0.01, settings=1, evaluations=2, eval_episodes=2, name='quick')"
EXPERIMENT = f"""
from rbve.paper.experiments import Data, Experiment, Method, Scale

EXPERIMENT = Experiment(
    question="Does scarce data favour <BVE>?",
    title="Scarce catch",
    data=(Data("catch", keep=0.5), Data("catch", keep=1.0)),
    methods=(Method("bve"), Method("rbve", settings={{"lam": 0.5}})),
    figure="against",
    against="keep",
    measures=("return",),
    scales=({SCALE},),
)
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    (folder / "scarce.py").write_text(EXPERIMENT)
    (folder / "other.py").write_text(
        EXPERIMENT.replace('"against"', '"methods"').replace("Scarce catch", "")
    )
    done = run("reproduce", folder / "scarce.py", folder / "other.py", "--out", folder / "study")
    assert done.code == 0, done.err
    return folder / "study"


def page_of(folder: Path, tmp_path: Path) -> str:
    done = run("report", folder, "--out", tmp_path / "page.html")
    assert done.code == 0, done.err
    return (tmp_path / "page.html").read_text()


def test_the_page_asks_its_question_and_runs_no_file(study: Path, tmp_path: Path) -> None:
    for file in study.parent.glob("*.py"):
        file.rename(file.with_suffix(".moved"))
    page = page_of(study, tmp_path)
    for file in study.parent.glob("*.moved"):
        file.rename(file.with_suffix(".py"))
    assert "Does scarce data favour &lt;BVE&gt;?" in page
    assert "Scarce catch" in page
    assert "An experiment of scarce.py (" in page
    assert "return by share of the episodes" in page
    assert 'id="other"' in page
    assert "claims, measured" not in page  # none of its experiments was run
    assert (tmp_path / "page-figures" / "scarce-return.csv").is_file()
    assert not (tmp_path / "page-figures" / "claims.csv").exists()


def test_runs_are_shared_and_kept(study: Path) -> None:
    lists = {name: json.loads((study / "experiments" / f"{name}.json").read_text())
             for name in ("scarce", "other")}  # fmt: skip
    assert lists["scarce"]["jobs"] == lists["other"]["jobs"]  # 2 kinds × 2 datasets × 2 methods
    assert len(lists["scarce"]["jobs"]) == len(list(study.glob("runs/*"))) == 8
    outline = lists["scarce"]["outline"]
    assert (outline["figure"], outline["against"], outline["measures"]) == (
        "against",
        "keep",
        ["return"],
    )


def test_packed_it_shows_the_same(study: Path, tmp_path: Path) -> None:
    assert run("pack", study, "--out", tmp_path / "packed").code == 0
    assert (
        str(study.parent) not in (tmp_path / "packed" / "experiments" / "scarce.json").read_text()
    )
    assert "Scarce catch" in page_of(tmp_path / "packed", tmp_path)


def test_beside_an_experiment_of_the_package(study: Path, tmp_path: Path) -> None:
    shutil.copytree(study, tmp_path / "both")
    done = run("reproduce", study.parent / "scarce.py", "divergence", "--out", tmp_path / "both")
    assert done.code == 0, done.err
    page = page_of(tmp_path / "both", tmp_path)
    assert "Scarce catch" in page
    assert "claims, measured" in page


def test_a_file_that_was_edited_or_moved_is_told(study: Path, tmp_path: Path) -> None:
    file = tmp_path / "scarce.py"
    again = ("reproduce", file, "--out", study)
    file.write_text(EXPERIMENT)
    moved = run(*again)
    assert moved.code == 0
    assert f"note: scarce was {study.parent / 'scarce.py'} when" in moved.err
    assert "it has the same content" in moved.err
    file.write_text(EXPERIMENT.replace("keep=0.5", "keep=0.9"))
    edited = run(*again)
    assert edited.code == 0
    assert f"note: {file} was edited since {study} was begun" in edited.err
    other = study.parent / "scarce.py"
    refused = run("reproduce", other, "--out", study)
    assert refused.code == 2
    assert f"was made by {file}, and {other} is another file with other content" in refused.err
    other.write_text(EXPERIMENT.replace("keep=0.5", "keep=0.9"))
    assert run("reproduce", other, "--out", study).code == 0
    other.write_text(EXPERIMENT)
    assert run("reproduce", other, "--out", study).code == 0
    assert len(list(study.glob("runs/*"))) == 12  # those of the edit beside the first


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("Experiment(", "Experimen("), "NameError: name 'Experimen' is not defined"),
        (("Experiment(", "Experiment(("), "SyntaxError"),
        (("EXPERIMENT = ", "X = "), "lacks EXPERIMENT"),
        (('"catch", keep=0.5', '"catsh"'), "unknown environment 'catsh'. Did you mean 'catch'?"),
        (("keep=0.5", "keep=5"), "keep is a share from 0 to 1, not 5 (line 7)"),
        (('Method("bve")', 'Method("bvee")'), "unknown algorithm 'bvee'. Did you mean 'bve'?"),
        (('"lam"', '"lamda"'), "has no setting 'lamda'. Did you mean 'lam'?"),
        (("methods=(", "methods=[("), "SyntaxError"),
        (('data=(Data("catch", keep=0.5), Data("catch", keep=1.0))', 'data=Data("catch")'),
         "data takes a tuple of Data, e.g. (Data(...),)"),
        (('question="Does scarce data favour <BVE>?",', ""), "TypeError: "),
        (('measures=("return",)', 'measures="return"'), "measures takes a tuple of names"),
    ],
)  # fmt: skip
def test_an_error_in_the_file_is_one_line(
    change: tuple[str, str], words: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    assert change[0] in EXPERIMENT
    file.write_text(EXPERIMENT.replace(*change, 1) if "import" not in change[0] else "")
    done = run("reproduce", file, "--out", tmp_path / "study")
    assert done.code == 2, done.err
    (line,) = done.err.splitlines()
    assert line.startswith(f"rbve: {file}: ")
    assert words in line
    assert not (tmp_path / "study" / "data").exists()


def test_names_of_files(tmp_path: Path) -> None:
    for name in ("bsuite.py", "two words.py", "all.py"):
        (tmp_path / name).write_text(EXPERIMENT)
        done = run("reproduce", tmp_path / name, "--out", tmp_path / "study")
        assert done.code == 2
        assert "an experiment goes by its file's name; choose one of letters" in done.err
    done = run("reproduce", tmp_path / "missing.py", "--out", tmp_path / "study")
    assert (done.code, "no such experiment file" in done.err) == (2, True)
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.py").write_text(EXPERIMENT)
    done = run("reproduce", tmp_path / "a" / "x.py", tmp_path / "b" / "x.py", "--out", "study")
    assert (done.code, "two experiments are called 'x'; rename one" in done.err) == (2, True)
