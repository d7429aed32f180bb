"""A folder whose files are things of one kind: algorithms, formats, executors. No list to keep."""

import ast
import difflib
import hashlib
import importlib
import importlib.util
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple


class Registry(NamedTuple):
    """The files of a package, each a thing of its kind; those with a leading underscore are not."""

    kind: str  # as messages call one of them: "executor"
    package: str  # __name__ of the package
    file: str  # its __file__

    def names(self) -> list[str]:
        return names(Path(self.file).parent)

    def summary(self, name: str) -> str:
        """First line of a file's docstring, read without importing it."""
        return summary(Path(self.file).parent, name)

    def load(self, name: str) -> ModuleType:
        """Import one of `names()` and nothing else; ValueError with the nearest name."""
        if name not in self.names():
            raise unknown(self.kind, name, self.names())
        return importlib.import_module(f"{self.package}.{name}")


def names(folder: Path) -> list[str]:
    return sorted(file.stem for file in folder.glob("*.py") if not file.stem.startswith("_"))


def summary(folder: Path, name: str, function: str | None = None) -> str:
    """First line of the docstring of a file, or of a function in it, read without importing it."""
    tree: ast.Module | ast.FunctionDef
    tree = ast.parse((folder / f"{name}.py").read_text(encoding="utf-8"))
    if function is not None:
        functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
        tree = next(node for node in functions if node.name == function)
    doc = ast.get_docstring(tree)
    return (doc or name).splitlines()[0].rstrip(".")


_loading = threading.RLock()
_loaded: dict[tuple[Path, str], ModuleType] = {}


def version(file: Path) -> str:
    """Hash of a user's file: an edited one is another."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]


def load_file(file: Path, kind: str) -> ModuleType:
    """Execute a file of the user's, once for each content: its classes are the same everywhere.
    ValueError where there is no such file, or it fails; what it raised is the cause."""
    if not file.is_file():
        raise ValueError(f"{file}: no such {kind} file")
    mark, path = version(file), file.absolute()
    with _loading:
        if (path, mark) in _loaded:
            return _loaded[path, mark]
        name = f"rbve_user_{file.stem}_{mark}"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ValueError(f"{file}: cannot be imported")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses look their module up by name
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[name]
            what = f"{type(error).__name__}: {error}"
            raise ValueError(f"{file}: cannot be imported: {what}") from error
        return _loaded.setdefault((path, mark), module)


def unknown(kind: str, name: str, known: Sequence[str]) -> ValueError:
    hint = did_you_mean(name, known, cutoff=0.4)
    return ValueError(f"unknown {kind} {name!r}.{hint} Known: {', '.join(known)}")


def did_you_mean(name: str, known: Iterable[str], before: str = "", cutoff: float = 0.6) -> str:
    """A sentence to put after an error, or nothing; `before` is what a full name begins with."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f" Did you mean {before + near[0]!r}?" if near else ""
