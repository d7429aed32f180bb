"""Algorithms with a test file of their own, tests/algorithms/test_NAME.py."""

from __future__ import annotations

import ast
from pathlib import Path

from rbve import algorithms

FOLDER = Path(__file__).parents[1] / "algorithms"


def own_files(function: str) -> set[str]:
    """Those whose file calls `function` with the algorithm's name."""
    found = set()
    for name in algorithms.names():
        path = FOLDER / f"test_{name}.py"
        if path.is_file():
            calls = [node for node in ast.walk(ast.parse(path.read_text())) if _is(node, function)]
            if any(_names(call, name) for call in calls):
                found.add(name)
    return found


def _is(node: ast.AST, function: str) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == function


def _names(call: ast.AST, name: str) -> bool:
    return any(isinstance(each, ast.Constant) and each.value == name for each in ast.walk(call))
