"""Pages of the documentation that are made from the code and from results/.

python tools/docs_site.py

writes docs/generated, which git ignores; `make docs` runs it first.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import docs_reference

from rbve import algorithms, envs
from rbve.data import formats
from rbve.files import write_atomically
from rbve.off_policy import estimators
from rbve.report import render

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
OUT = DOCS / "generated"
# Files of the repository that are pages too, as docs/conf.py knows them.
SHOWN = {
    "results": "results/README.md",
    "benchmarks": "benchmarks/README.md",
    "changelog": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
}
COMPARED = "Beside other libraries"  # section of the README
_LINK = re.compile(r"(\]\()(?!https?:|#|mailto:)([^)#\s]+)")


def shown(file: str, section: str = "") -> str:
    """A file of the repository, or a section of it, links turned to lead from docs/generated."""
    folder = (ROOT / file).parent
    pages = {(ROOT / path).resolve(): f"{name}.md" for name, path in SHOWN.items()}

    def turned(match: re.Match[str]) -> str:
        target = (folder / match[2]).resolve()
        if target in pages:
            return match[1] + pages[target]
        return match[1] + os.path.relpath(target, OUT)

    text = (ROOT / file).read_text(encoding="utf-8")
    if section:
        text = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return _LINK.sub(turned, text)


class Group(NamedTuple):
    """Things of one kind, a page each."""

    title: str
    names: Sequence[str]
    line: Callable[[str], str]  # in the list
    page: Callable[[str], str]


def groups() -> dict[str, Group]:
    """By the folder of their pages."""
    own = docs_reference
    every = sorted([*envs.names(), *envs.ADAPTERS])
    return {
        "algorithms": Group(
            "Algorithms", algorithms.names(), algorithms.summary, own.algorithm_page
        ),
        "estimators": Group(
            "Estimators", estimators.names(), estimators.summary, own.estimator_page
        ),
        "formats": Group("Formats", formats.names(), formats.summary, own.format_page),
        "environments": Group("Environments", every, own.environment_line, own.environment_page),
    }


def list_page(title: str, folder: str, names: Sequence[str], line: Callable[[str], str]) -> str:
    lines = [(f"[`{name}`]({folder}/{name}.md)", line(name)) for name in names]
    trees = "".join(f"{folder}/{name}\n" for name in names)
    hidden = f"```{{toctree}}\n:hidden:\n{trees}```\n"
    return f"# {title}\n\n{docs_reference.table(('name', 'what it is'), lines)}\n{hidden}"


def main() -> None:
    pages = {name: shown(file) for name, file in SHOWN.items()}
    for folder, each in groups().items():
        pages[folder] = list_page(each.title, folder, each.names, each.line)
        pages |= {f"{folder}/{name}": each.page(name) for name in each.names}
    pages["metrics"] = docs_reference.metrics_page()
    pages["audit"] = docs_reference.findings_page()
    judged = docs_reference.notes("pages", "comparison")
    pages["comparison"] = f"# Beside other libraries\n{judged}\n{shown('README.md', COMPARED)}"
    shutil.rmtree(OUT, ignore_errors=True)
    for name, text in pages.items():
        file = OUT / f"{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, text.encode())
    (OUT / "static").mkdir()
    # In a function: the site's other scripts have names of their own.
    vega = f"(() => {{\n{render.vega()}\n}})();\n"
    write_atomically(OUT / "static" / "vega.js", vega.encode())


if __name__ == "__main__":
    main()
