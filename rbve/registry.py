"""A folder whose files are its members: algorithms, formats, experiments. No list to keep."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path


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


def unknown(kind: str, name: str, known: Sequence[str]) -> ValueError:
    hint = did_you_mean(name, known, cutoff=0.4)
    return ValueError(f"unknown {kind} {name!r}.{hint} Known: {', '.join(known)}")


def did_you_mean(name: str, known: Iterable[str], before: str = "", cutoff: float = 0.6) -> str:
    """A sentence to put after an error, or nothing; `before` is what a full name begins with."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f" Did you mean {before + near[0]!r}?" if near else ""
