"""How commands end: exit codes, tracebacks for code that is wrong, nothing where nobody reads."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import run
from support.tiers import first_and_slow

from rbve import Policy, rows
from rbve.cli import _console as console
from rbve.cli import _ending as ending
from rbve.training.run import CHECKPOINT, POLICY

TRAIN = ("--steps", "40", "--every", "20", "--eval-episodes", "4", "--batch-size", "8")
COMMAND = [sys.executable, "-m", "rbve.cli"]

OWN = '''"""Regression to the return, with a fault."""

from typing import NamedTuple

from rbve import ops

HEAD = "q"
BOOTSTRAP = "none"


class Config(NamedTuple):
    pull: float = 1.0


def loss(views, batch, config, options, td, key):
    {fault}
    q = ops.select(views.now.q, batch.action)
    return config.pull * td.penalty(q - batch.g), {{"q": q}}
'''


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ('raise RuntimeError("my own bug")', RuntimeError),
        ('raise ValueError("my own bug")', ValueError),
        ("undefined", NameError),
    ],
)
def test_a_bug_in_a_loss_has_its_traceback(
    fault: str, kind: type[Exception], catch_path: Path, tmp_path: Path
) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN.format(fault=fault))
    with pytest.raises(kind) as caught:
        run("train", catch_path, "--out", tmp_path / "runs", "--algorithm", file, *TRAIN)
    assert any(entry.path == file for entry in caught.traceback)


def test_a_bug_outside_the_functions_of_an_algorithm_file_has_its_traceback(
    catch_path: Path, tmp_path: Path
) -> None:
    file = tmp_path / "own.py"
    file.write_text("HEAD = undefined")
    with pytest.raises(ValueError, match=r"own\.py: cannot be imported") as caught:
        run("train", catch_path, "--out", tmp_path / "runs", "--algorithm", file, *TRAIN)
    assert isinstance(caught.value.__cause__, NameError)


def test_code_beside_the_package_is_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though its path begins like that of the package."""
    monkeypatch.setattr(ending, "PACKAGE", str(tmp_path / "rbve"))
    monkeypatch.setattr(ending, "STANDARD", str(Path(__file__).parent))
    for name, own in (("rbve_own.py", True), ("rbve/part.py", False)):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("raise ValueError('wrong')")
        with pytest.raises(ValueError, match="wrong") as caught:
            exec(compile(file.read_text(), file, "exec"))
        assert ending.is_of_user_code(caught.value) == own


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes")]
)
def test_too_little_memory_is_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("rbve.audit.audit_path", fail)
    found = run("inspect", tmp_path)
    assert found.code == 2
    assert found.err.count("\n") == 1
    assert found.err.endswith("; try smaller numbers\n")


@pytest.mark.filterwarnings("default")
def test_a_diverged_run_says_so(catch_path: Path, tmp_path: Path) -> None:
    command = ("train", catch_path, "--out", tmp_path, "--algorithm", "dqn", *TRAIN)
    found = run(*command, "--learning-rate", "1e30", "3e-4")
    assert found.code == 5
    last = found.err.splitlines()[-1]
    assert last.startswith("rbve: diverged: dqn-")
    (diverged,) = (r for r in rows.find([tmp_path]) if r.last("diverged_at") is not None)
    assert last.count(" at update ") == 1
    assert f"{diverged.job} at update {diverged.last('diverged_at'):.0f};" in last
    with pytest.warns(UserWarning, match="training diverged at update"):
        policy = Policy.load(tmp_path / diverged.job / POLICY)
    assert policy.info["diverged_at"] == diverged.last("diverged_at")
    # Again: nothing is left to train, and the end is the same.
    assert run(*command, "--learning-rate", "1e30", "3e-4").code == 5
    assert run(*command, "--learning-rate", "3e-4").code == 0


@pytest.mark.filterwarnings("default")
def test_going_on_from_the_checkpoint_before_is_told(catch_path: Path, tmp_path: Path) -> None:
    command = ("train", catch_path, "--out", tmp_path, "--algorithm", "bve", *TRAIN)
    assert run(*command).code == 0
    (file,) = tmp_path.glob(f"*/{CHECKPOINT}")
    file.write_bytes(file.read_bytes()[:-1])
    found = run(*command)
    assert found.code == 0
    (note,) = (line for line in found.err.splitlines() if "going on from" in line)
    assert note.startswith(f"note: {file}: ")
    assert note.endswith("; going on from the checkpoint before it, at update 20")


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["inspect", "DATA"]])
def test_nobody_reads_the_output(arguments: list[str], catch_path: Path) -> None:
    given = [str(catch_path) if word == "DATA" else word for word in arguments]
    with subprocess.Popen(
        [*COMMAND, *given], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
        code = process.wait()
    assert said == ""
    assert code == 141


@pytest.mark.parametrize("closed", first_and_slow(["<&- >&- 2>&-", ">&-", "2>&-"]))
def test_closed_streams(closed: str, catch_path: Path) -> None:
    for arguments, code in ((["inspect", str(catch_path)], 0), (["inspect", "nowhere"], 2)):
        words = " ".join([*COMMAND, *arguments])
        found = subprocess.run(
            ["sh", "-c", f"{words} {closed}"], capture_output=True, text=True, check=False
        )
        assert found.returncode == code, found.stderr
        assert "Traceback" not in found.stderr
        if closed == "2>&-":
            assert ("decisions" in found.stdout) == (code == 0), "errors are not output"


def test_control_characters_and_markup_in_names(tmp_path: Path) -> None:
    hostile = "a[b]\x1b[31m\u202e.csv"
    found = run("inspect", tmp_path / hostile)
    assert found.code == 2
    assert "a[b]\\x1b[31m\\u202e.csv" in found.err
    log = tmp_path / hostile
    log.write_text("visit,what,gain,age\n1,\x1b[2Jup[/],0,3\n1,down,1,4\n2,down,1,2\n")
    columns = ("--episode", "visit", "--action", "what", "--reward", "gain")
    found = run("convert", log, tmp_path / "[/store", *columns)
    assert found.code == 0, found.err
    for arguments in (("inspect", tmp_path / "[/store"), ("inspect", log, *columns)):
        found = run(*arguments)
        assert found.code in (0, 3, 4), found.err
        assert "\\x1b[2Jup[/]" in found.out
        assert "\x1b[2J" not in found.out + found.err
    flags = ("--holdout", 0, *TRAIN)  # of two episodes none is held out
    found = run("train", tmp_path / "[/store", "--out", tmp_path / "[/runs", *flags)
    assert found.code == 0, found.err


def test_letters_of_all_languages_are_printed_as_they_are() -> None:
    assert console.escaped("λ 日本 é\u200d نص") == "λ 日本 é\u200d نص"
    assert console.escaped("a\tb\n", "\n") == "a\\tb\n"


def test_a_signal_whose_exception_gets_lost_stops_the_work(
    catch_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a callback of an import, where Python goes on after an exception."""

    def lose(*_: object) -> list[str]:
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        return []

    monkeypatch.setattr("rbve.training.notes.notes", lose)  # called once, of one dataset
    found = run("train", catch_path, "--out", tmp_path, "--algorithm", "bve", *TRAIN)
    assert found.code == 143
    assert found.err.startswith("rbve: terminated; what was finished is kept")
    monkeypatch.undo()
    assert run("train", catch_path, "--out", tmp_path, "--algorithm", "bve", *TRAIN).code == 0
