"""The house rules: imports go one way, start-up needs no JAX, files stay small and plain."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rbve

ROOT = Path(next(iter(rbve.__path__)))
MAX_LINES = 350

# A module may import its own layer and those above it in this list.
LAYERS = (
    {"types", "ops", "files", "ranking", "registry", "rows", "schema", "stopping", "backend"},
    {"algorithms", "networks", "data", "envs"},
    {"training", "evaluation", "policy", "behaviours", "audit"},
    {"sweep"},
    {"report"},
    {"api", "rbve"},  # "rbve" is rbve/__init__.py
    {"paper"},
    {"cli"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def module_name(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(["rbve", *(part for part in parts if part != "__init__")])


MODULES = {module_name(file): file for file in sorted(ROOT.rglob("*.py"))}
TREES = {name: ast.parse(file.read_text()) for name, file in MODULES.items()}


def unit(module: str) -> str:
    """The package or top-level file a module belongs to."""
    return (module.split(".")[1:2] or ["rbve"])[0]


def imports(name: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, module) of every import, those inside functions too."""
    package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield node.lineno, full if full in MODULES else base


def internal(name: str) -> list[tuple[int, str]]:
    return [(n, m) for n, m in imports(name, TREES[name]) if m.split(".")[0] == "rbve"]


def at(name: str, line: int) -> str:
    return f"{MODULES[name].relative_to(ROOT.parent)}:{line}"


def test_every_module_is_found() -> None:
    assert {"rbve.types", "rbve.data", "rbve.data.formats.native", "rbve.algorithms.bve"} <= set(
        MODULES
    )
    found = {module for _, module in internal("rbve.algorithms.rbve")}
    assert {"rbve.ops", "rbve.ranking", "rbve.algorithms.bve", "rbve.types"} <= found
    lazy = {module for _, module in internal("rbve.algorithms")}
    assert lazy == {"rbve.ops", "rbve.registry"}


def test_every_module_has_a_layer() -> None:
    strangers = {unit(name) for name in MODULES} - set(LEVEL)
    assert not strangers, f"give them a layer in this test: {sorted(strangers)}"


@pytest.mark.parametrize("name", MODULES)
def test_imports_go_one_way(name: str) -> None:
    own = LEVEL[unit(name)]
    upward = [
        f"{at(name, line)} imports {module}"
        for line, module in internal(name)
        if LEVEL[unit(module)] > own
    ]
    assert not upward, "\n".join(upward)


def test_no_module_imports_itself_through_others() -> None:
    graph = {name: {module for _, module in internal(name)} & set(MODULES) for name in MODULES}
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> None:
        assert name not in path, " -> ".join([*path[path.index(name) :], name])
        if name not in done:
            for module in sorted(graph[name]):
                visit(module, [*path, name])
            done.add(name)

    for name in MODULES:
        visit(name, [])


def test_reports_never_train() -> None:
    wrong = [
        f"{at(name, line)} imports {module}"
        for name, tree in TREES.items()
        if unit(name) == "report"
        for line, module in imports(name, tree)
        if module.split(".")[0] in ("jax", "equinox", "optax")
        or (module.startswith("rbve.training") and module != "rbve.training.spec")
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "module", ["rbve", "rbve.algorithms", "rbve.envs", "rbve.data", "rbve.report", "rbve.cli"]
)
def test_start_up_needs_no_jax(module: str) -> None:
    code = f"import sys, {module}; print(sorted({{'jax', 'equinox', 'optax'}} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("name", MODULES)
def test_files_stay_small(name: str) -> None:
    lines = len(MODULES[name].read_text().splitlines())
    assert lines <= MAX_LINES, f"{at(name, lines)}: more than {MAX_LINES} lines; split it"


def test_no_pickle() -> None:
    """Loading a pickle runs code; data and checkpoints must not."""
    wrong = [
        f"{at(name, line)} imports {module}"
        for name, tree in TREES.items()
        for line, module in imports(name, tree)
        if module.split(".")[0] in ("pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal")
    ]
    wrong += [
        f"{at(name, node.value.lineno)} allows pickles"
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword)
        and node.arg == "allow_pickle"
        and not (isinstance(node.value, ast.Constant) and node.value.value is False)
    ]
    assert not wrong, "\n".join(wrong)


PRINTING = {name for name in MODULES if name.startswith("rbve.cli.")}


@pytest.mark.parametrize("name", sorted(set(MODULES) - PRINTING))
def test_library_code_does_not_print(name: str) -> None:
    calls = (node.func for node in ast.walk(TREES[name]) if isinstance(node, ast.Call))
    found = [at(name, f.lineno) for f in calls if isinstance(f, ast.Name) and f.id == "print"]
    assert not found
