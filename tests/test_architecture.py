"""The house rules: imports go one way, start-up needs no JAX, files stay small and plain.

One test for each rule; it lists all offenders.
"""

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

# A unit (a package or a file directly in rbve/) may import those in lines above its own.
LAYERS = (
    {
        "types",
        "ops",
        "files",
        "ranking",
        "registry",
        "rows",
        "schema",
        "stopping",
        "backend",
        "tensors",
    },
    {"algorithms", "networks", "data", "envs"},
    {"parts", "spec", "runtime"},
    {"policy", "audit", "loggers", "tidy"},
    {"evaluation", "exports", "streaming"},
    {"behaviours", "training"},
    {"sweep"},
    {"off_policy"},
    {"tuning"},
    {"report"},
    {"api", "deciding", "decisions", "shipping", "rbve"},  # "rbve" is rbve/__init__.py
    {"paper", "sklearn"},
    {"cli"},
)
# And of those in its own line these.
BESIDE = {
    "ranking": {"types", "ops"},
    "rows": {"files", "schema"},
    "spec": {"parts"},
    "tensors": {"files", "schema"},
    "algorithms": {"data"},  # filtered BC chooses episodes
    "behaviours": {"training"},  # online agents learn by the same update
    "rbve": {"api", "deciding", "decisions", "shipping"},
}
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def module_name(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(["rbve", *(part for part in parts if part != "__init__")])


MODULES = {module_name(file): file for file in sorted(ROOT.rglob("*.py"))}
TREES = {name: ast.parse(file.read_text()) for name, file in MODULES.items()}


def unit(module: str) -> str:
    return (module.split(".")[1:2] or ["rbve"])[0]


def imports(name: str) -> Iterator[tuple[int, str]]:
    """(line, module) of every import, those inside functions too."""
    package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(TREES[name]):
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
    return [(line, module) for line, module in imports(name) if module.split(".")[0] == "rbve"]


def at(name: str, line: int) -> str:
    return f"{MODULES[name].relative_to(ROOT.parent)}:{line}"


def may_import(name: str, module: str) -> bool:
    own, other = unit(name), unit(module)
    if own == other or LEVEL[other] < LEVEL[own]:
        return True
    return other in BESIDE.get(own, ())


def test_every_module_is_found() -> None:
    assert {"rbve.types", "rbve.data", "rbve.data.formats.native", "rbve.algorithms.bve"} <= set(
        MODULES
    )
    found = {module for _, module in internal("rbve.algorithms.rbve")}
    assert {"rbve.ops", "rbve.ranking", "rbve.algorithms.bve", "rbve.types"} <= found
    lazy = {module for _, module in internal("rbve.algorithms")}
    assert {"rbve.ops", "rbve.registry"} <= lazy  # those inside functions too


def test_every_module_has_a_layer() -> None:
    strangers = {unit(name) for name in MODULES} - set(LEVEL)
    assert not strangers, f"give them a layer in this test: {sorted(strangers)}"


def test_imports_go_one_way() -> None:
    wrong = [
        f"{at(name, line)} imports {module}"
        for name in MODULES
        for line, module in internal(name)
        if not may_import(name, module)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_library_does_not_know_the_paper() -> None:
    """Nor by a name that it imports later."""
    wrong = [
        f"{at(name, node.lineno)} names {node.value}"
        for name, tree in TREES.items()
        if unit(name) not in ("paper", "cli")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith("rbve.paper")
    ]
    assert not wrong, "\n".join(wrong)


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
        for name in MODULES
        if unit(name) == "report"
        for line, module in imports(name)
        if module.split(".")[0] in ("jax", "equinox", "optax") or module.startswith("rbve.training")
    ]
    assert not wrong, "\n".join(wrong)


START_UP = (
    "rbve",
    "rbve.deciding",
    "rbve.algorithms",
    "rbve.envs",
    "rbve.data",
    "rbve.report",
    "rbve.cli",
)


def test_start_up_needs_no_jax() -> None:
    code = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
        "    print(name, *sorted({'jax', 'equinox', 'optax'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code, *START_UP]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == list(START_UP)


def test_files_stay_small() -> None:
    lengths = {name: len(file.read_text().splitlines()) for name, file in MODULES.items()}
    long = [f"{at(name, n)}: split it" for name, n in lengths.items() if n > MAX_LINES]
    assert not long, f"more than {MAX_LINES} lines:\n" + "\n".join(long)


def test_no_pickle() -> None:
    """Loading a pickle runs code; data and checkpoints must not."""
    wrong = [
        f"{at(name, line)} imports {module}"
        for name in MODULES
        for line, module in imports(name)
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


def test_library_code_does_not_print() -> None:
    wrong = [
        at(name, node.lineno)
        for name, tree in TREES.items()
        if unit(name) != "cli"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("name", "module", "allowed"),
    [
        ("rbve.data.dataset", "rbve.training.run", False),
        ("rbve.report.page", "rbve.paper", False),
        ("rbve.training.run", "rbve.behaviours.record", False),
        ("rbve.behaviours.record", "rbve.training.run", True),
        ("rbve.data.dataset", "rbve.envs", False),
        ("rbve.paper", "rbve.api", True),
        ("rbve.api", "rbve.cli", False),
    ],
)
def test_the_rule_itself(name: str, module: str, allowed: bool) -> None:
    assert may_import(name, module) == allowed
