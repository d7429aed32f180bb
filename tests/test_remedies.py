"""Every option that a message about data names is one that a command has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from support.cli import run

import rbve

FOLDERS = ("audit", "data", "training")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")


@pytest.fixture(scope="module")
def flags() -> set[str]:
    commands = ("record", "convert", "inspect", "train", "evaluate", "report")
    return {flag for name in commands for flag in FLAG.findall(run(name, "--help").out)}


def named() -> set[tuple[str, str]]:
    """(file, option) of all texts in the code."""
    found = set()
    root = Path(rbve.__file__).parent
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found |= {(file.name, flag) for flag in FLAG.findall(node.value)}
    return found


def test_options_in_messages_exist(flags: set[str]) -> None:
    texts = named()
    assert ("resolve.py", "--episode-return") in texts
    assert {each for each in texts if each[1] not in flags} == set()
