"""File formats, one file each. The file's name is the format's name, its presence its registration.

A format file holds

    a docstring whose first line says what the format is
    recognises  (path) -> bool, by what is there: a suffix, a file in a folder
    read        (path, ...) -> Source, which reads part by part

and, where it applies,

    write       (source, path, overwrite) -> None; the target appears when it is complete
    SUFFIX      of paths written in this format, where the path alone should say so
    Options     frozen dataclass of choices, the second argument of read(path, options, on_fault):
                flags of `rbve convert` and `rbve inspect`, keywords of rbve.convert, rbve.load and
                rbve.inspect, keys of the file that --columns names
"""

import glob
import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

from rbve import registry
from rbve.data.check import check_values
from rbve.data.dataset import Dataset
from rbve.data.formats._options import choices as choices
from rbve.data.formats._options import choose
from rbve.data.formats._options import from_toml as from_toml
from rbve.data.source import OnFault, Source, parts_of, refuse
from rbve.files import restore

_FILES = registry.Registry("format", __name__, __file__)
names, summary = _FILES.names, _FILES.summary
# Suffixes of files: a store of such a name is not what was meant.
_NO_FOLDERS = (".gz", ".zst", ".bz2", ".zip", ".tsv", ".txt", ".json", ".pq", ".h5", ".hdf5")


def module(name: str) -> ModuleType:
    if name not in names():
        raise registry.unknown("format", name, names())
    return importlib.import_module(f"rbve.data.formats.{name}")


def writable() -> list[str]:
    return [name for name in names() if hasattr(module(name), "write")]


def recognise(path: Path) -> str:
    """The format of what is at the path; a path may be a glob."""
    restore(path)
    for name in names():
        if module(name).recognises(path):
            return name
    if glob.has_magic(str(path)):
        if not path.exists() and not glob.glob(str(path), recursive=True):
            raise ValueError(f"{path}: no file matches; say where the files are")
    elif not path.exists():
        raise ValueError(
            f"{path}: no such dataset; make one with `rbve record ENV --out PATH` or "
            "`rbve convert SRC DST`"
        )
    raise ValueError(f"{path}: no dataset of a known format; known: {', '.join(names())}")


def option_kinds() -> dict[str, type]:
    """The Options of the formats that have some."""
    return {name: kind for name in names() if (kind := getattr(module(name), "Options", None))}


def read(
    path: str | Path, format: str | None = None, options: Any = None, on_fault: OnFault = refuse
) -> Source:
    """Open a dataset of any format, to be read part by part; arguments are those of load()."""
    name = format or recognise(Path(path))
    chosen = module(name)  # first: options of a mistyped format would be blamed on the options
    options = choose(name, option_kinds(), options)
    arguments = () if options is None else (options, on_fault)
    return chosen.read(Path(path), *arguments)


def load(
    path: str | Path,
    format: str | None = None,
    options: Any = None,
    verify: bool | int = True,
    on_fault: OnFault = refuse,
    **choices: Any,
) -> Dataset:
    """A dataset of any format. Native stores stay on disk, memory-mapped; others are read whole.

    Args:
        path: File, folder or glob.
        format: One of names(). Default: the one that recognises what is there.
        options: Of the format: its Options, or choices by name.
        verify: Which checksums of a native store to check: all, none, or those of columns up to so
            many bytes.
        on_fault: Called for each fault; the default raises the first.
        choices: Options by name, such as episode="visit".

    Raises:
        ValueError: The path, format or options are wrong, or the data is.

    Example:
        >>> log = rbve.load("data/visits")
        >>> log.obs.shape, log.action.shape, log.offsets[:3].tolist()
        ((2421, 3), (2421,), [0, 5, 14])
    """
    path = Path(path)
    chosen = format or recognise(path)
    options = choices or options
    if chosen == "native":
        choose(chosen, option_kinds(), options)
        return module(chosen).open_store(path, verify)
    dataset = Dataset.join(read(path, chosen, options, on_fault).parts)
    if on_fault is refuse:
        check_values(dataset, f"{path}: ")
    return dataset


def write(
    data: Source | Dataset, path: str | Path, format: str | None = None, overwrite: bool = False
) -> None:
    """Write a dataset in the format named, or the one the path's suffix says; else native."""
    path = Path(path)
    chosen = module(format or written_as(path))
    if not hasattr(chosen, "write"):
        raise ValueError(f"{format} can be read, not written; known: {', '.join(writable())}")
    chosen.write(data if isinstance(data, Source) else parts_of(data), path, overwrite)


def written_as(path: Path) -> str:
    suffixes = {name: getattr(module(name), "SUFFIX", None) for name in writable()}
    for name, suffix in suffixes.items():
        if path.suffix and path.suffix == suffix:
            return name
    if path.suffix in _NO_FOLDERS:
        known = ", ".join(filter(None, suffixes.values()))
        raise ValueError(
            f"{path}: files are written with the suffixes {known}; a native store is a folder, so "
            f"leave {path.suffix} out, or name the format with --to"
        )
    return "native"
