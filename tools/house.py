"""How large the library is: lines of each folder and of its tests, and names that are public.

python tools/house.py [--json]

A name is public if a module defines it, it has no leading underscore, no part of the module's
path has one, and the module's `__all__`, where there is one, lists it.
"""

from __future__ import annotations

import argparse
import ast
import json
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
CODE = (".py", ".js", ".css", ".html", ".jinja")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    figures = {"lines": lines(ROOT / "rbve"), "tests": lines(ROOT / "tests"), "public": public()}
    if arguments.json:
        print(json.dumps(figures, indent=1))
        return
    for name, found in figures.items():
        print(f"{name}: {sum(found.values()):,}")
        for part, count in sorted(found.items(), key=lambda item: -item[1]):
            print(f"{count:8,} {part}")


def lines(root: Path) -> dict[str, int]:
    """By folder; files directly in `root` count by themselves."""
    found: dict[str, int] = {}
    for file in sorted(root.rglob("*")):
        if file.suffix in CODE and file.is_file():
            part = file.relative_to(root).parts[0]
            found[part] = found.get(part, 0) + len(file.read_text().splitlines())
    return found


def public() -> dict[str, int]:
    """Names by folder."""
    root = ROOT / "rbve"
    found: dict[str, int] = {}
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        if any(part.startswith("_") and part != "__init__" for part in parts):
            continue
        names = set(defined(ast.parse(file.read_text())))
        found[parts[0]] = found.get(parts[0], 0) + len(names)
    return {part: count for part, count in found.items() if count}


def defined(tree: ast.Module) -> Iterator[str]:
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            names += [each.id for each in ast.walk(target) if isinstance(each, ast.Name)]
            if isinstance(target, ast.Name) and target.id == "__all__":
                yield from ast.literal_eval(node.value)  # type: ignore[union-attr, arg-type]
                return
    yield from (name for name in names if not name.startswith("_"))


if __name__ == "__main__":
    main()
