"""A wheel and an editable install, each in an environment of its own, away from the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import rbve

ROOT = Path(__file__).parent.parent
# What setuptools reads; copied, because building writes next to it.
SOURCES = ("rbve", "pyproject.toml", "README.md", "LICENSE")


def run(*command: str | Path, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, f"{command}\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def pip(python: Path, *arguments: str | Path, cwd: Path) -> None:
    run(sys.executable, "-m", "pip", "--python", python, *arguments, cwd=cwd)


def environment(folder: Path, packages: list[str]) -> Path:
    """The Python of a new environment that also sees the folders `packages`, not their hooks."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=ROOT)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text("".join(f"{each}\n" for each in packages))
    return folder / "bin" / "python"


def dependencies() -> list[str]:
    return [each for each in sys.path if Path(each).name == "site-packages"]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            skip = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, ignore=skip)
        else:
            shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder)
    run(sys.executable, "-m", "pip", "wheel", *options, source, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    files = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "rbve").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("rbve/")}
    assert packed == files
    assert wheel.name.split("-")[1] == rbve.__version__


@pytest.mark.slow
def test_an_installed_wheel_records_trains_inspects_and_reports(
    wheel: Path, tmp_path: Path
) -> None:
    python = environment(tmp_path / "venv", dependencies())
    pip(python, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    where = run(python, "-c", "import rbve; print(rbve.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(tmp_path / "venv")

    def command(line: str) -> str:
        return run(python.with_name("rbve"), *line.split(), cwd=tmp_path)

    assert "record" in command("--help")
    command("record catch --out catch --policy uniform --episodes 60")
    assert "fine" in command("inspect catch --html audit.html")
    command("train catch --algorithm bc --steps 60 --env catch --out runs")
    command("report runs --out report.html")
    assert (tmp_path / "audit.html").stat().st_size > 10_000
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.slow
def test_an_editable_install_shows_its_names_and_types(source: Path, tmp_path: Path) -> None:
    """To dir() and to a type checker, which reads the installed files without importing them."""
    python = environment(tmp_path / "venv", [])
    # setuptools builds with the Python it installs for; editors and mypy follow plain paths only.
    site = next((tmp_path / "venv").glob("lib/python*/site-packages"))
    builder = site / "builder.pth"
    builder.write_text("".join(f"{each}\n" for each in dependencies()))
    options = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--editable")
    pip(python, "install", *options, source, cwd=tmp_path)
    builder.unlink()

    names = run(python, "-c", "import rbve; print(*dir(rbve))", cwd=tmp_path)
    assert {*rbve.__all__, "__version__"} <= {*names.split()}

    program = tmp_path / "program.py"
    program.write_text(
        "import rbve\n"
        "policy = rbve.train('data', 'bc', steps=10)\n"
        "reveal_type(policy)\n"
        "rbve.evaluate(policy, 'catch', episodes='many')\n"
    )
    options = ("--ignore-missing-imports", "--follow-imports=silent", "--cache-dir", "cache")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "--python-executable", python, program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    first, second, *_ = checked.stdout.splitlines()
    assert 'program.py:3: note: Revealed type is "rbve.policy' in first, checked.stdout
    assert second.startswith("program.py:4: error:")
    assert '"episodes"' in second
