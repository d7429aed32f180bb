"""Fetch the real data that the documentation works on, and keep it in docs/_build/fetched.

python tools/docs_data.py [NAME ...]

| name    | data                                                | from                            |
|---------|-----------------------------------------------------|---------------------------------|
| clicks  | Open Bandit, 10,000 rows of each of six logs        | the wheel of obp 0.4.1, by pip  |
| schools | STAR, the class-size trial, 26,796 pupil-years      | Debian's r-cran-mlmrev, by apt  |
| care    | ICU-Sepsis, an MDP estimated from intensive care    | the extra icu of rbve, by pip   |

Nothing of these packages is executed: files are read out of the archives. What cannot be reached is
told with the reason, and does not stop the others: its page then shows commands without output.
"""

from __future__ import annotations

import bz2
import gzip
import importlib.metadata
import lzma
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

FETCHED = Path(__file__).parents[1] / "docs" / "_build" / "fetched"
OBP, DEB = "obp==0.4.1", "r-cran-mlmrev"
SECONDS = 120  # that a download may take
_UNREADABLE = (
    ValueError, KeyError, OSError, ImportError, tarfile.TarError, zipfile.BadZipFile,
)  # fmt: skip
LIBRARY = "./usr/lib/R/site-library/mlmRev/data/Rdata"


def run(command: list[str], folder: Path) -> None:
    """ValueError with the last line of what the command said, where it failed."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ValueError(f"{command[0]}: {error}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        raise ValueError(f"{' '.join(command[:3])}: {said[-1][:200]}")


def clicks(out: Path) -> None:
    """clicks-{random,bts}-{all,men,women}.csv."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        pip = [sys.executable, "-m", "pip"]
        run([*pip, "download", "--quiet", "--no-deps", "--dest", str(folder), OBP], folder)
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for logger in ("random", "bts"):
                for campaign in ("all", "men", "women"):
                    name = f"obp/dataset/obd/{logger}/{campaign}/{campaign}.csv"
                    (out / f"clicks-{logger}-{campaign}.csv").write_bytes(archive.read(name))


def schools(out: Path) -> None:
    """star.csv, as the R package has it."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)  # apt may download as a user of its own
        run(["apt-get", "download", "-qq", DEB], folder)
        (package,) = folder.glob("*.deb")
        with tarfile.open(fileobj=BytesIO(member(package, "data.tar"))) as archive:
            index, blocks = (content(archive, f"{LIBRARY}.{end}") for end in ("rdx", "rdb"))
    frame = r_object(gzip.decompress(index), blocks, "star")
    frame.to_csv(out / "star.csv", index=False)


def member(package: Path, name: str) -> bytes:
    """Of a Debian package, an ar archive: 60 bytes of header before each member."""
    data, at = package.read_bytes(), 8
    while at < len(data):
        size = int(data[at + 48 : at + 58])
        if data[at : at + 16].decode().startswith(name):
            return data[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
    raise ValueError(f"{package.name}: no {name} in it")


def content(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    if file is None:
        raise ValueError(f"{DEB}: {name} is no file")
    return file.read()


def parsed(data: bytes) -> Any:
    """Of R's serialisation."""
    try:
        import rdata
    except ImportError:
        raise ImportError('a reader of R\'s files is missing; pip install "rbve[docs]"') from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it is no .rda file
        return rdata.conversion.convert(rdata.parser.parse_data(data))


def r_object(index: bytes, blocks: bytes, name: str) -> Any:
    """An object of a package: a block (its length, then zlib, bzip2 or xz) at an indexed place."""
    start, length = map(int, parsed(index)["variables"][name])
    block = blocks[start : start + length]
    (size,) = struct.unpack(">I", block[:4])
    unpack = {b"2": bz2.decompress, b"Z": lzma.decompress}.get(block[4:5])
    data = unpack(block[5:]) if unpack else zlib.decompress(block[4:])
    if len(data) != size:
        raise ValueError(f"{DEB}: {name} has {len(data)} bytes where {size} were announced")
    return parsed(data)


def care(out: Path) -> None:
    """Nothing to fetch: the package's arrays are read where pip put them."""
    if not any(importlib.metadata.distributions(name="icu-sepsis")):
        raise ValueError('icu-sepsis is not installed; pip install "rbve[icu]"')


SETS: dict[str, Callable[[Path], None]] = {"clicks": clicks, "schools": schools, "care": care}


def fetch(name: str) -> str:
    """Why a set cannot be had, or nothing. One that is there already is not fetched again."""
    done, reason = FETCHED / f"{name}.done", FETCHED / f"{name}.reason"
    reason.unlink(missing_ok=True)
    if done.exists():
        return ""
    FETCHED.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FETCHED) as scratch:
        try:
            SETS[name](Path(scratch))
        except _UNREADABLE as error:
            reason.write_text(str(error))
            return str(error)
        for file in Path(scratch).iterdir():
            shutil.move(file, FETCHED / file.name)
    done.touch()
    return ""


def main() -> None:
    for name in sys.argv[1:] or SETS:
        if name not in SETS:
            sys.exit(f"unknown data {name!r}; known: {', '.join(SETS)}")
        print(f"{name}: {fetch(name) or 'here'}")


if __name__ == "__main__":
    main()
