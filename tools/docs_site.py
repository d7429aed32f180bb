"""Pages of the documentation that are made from the code and from results/.

python tools/docs_site.py

writes docs/generated, which git ignores; `make docs` runs it first.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from rbve.files import write_atomically

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
_LINK = re.compile(r"(\]\()(?!https?:|#|mailto:)([^)#\s]+)")


def shown(file: str) -> str:
    """A file of the repository, its links turned to where they lead from docs/generated."""
    folder = (ROOT / file).parent
    pages = {(ROOT / path).resolve(): f"{name}.md" for name, path in SHOWN.items()}

    def turned(match: re.Match[str]) -> str:
        target = (folder / match[2]).resolve()
        if target in pages:
            return match[1] + pages[target]
        return match[1] + os.path.relpath(target, OUT)

    return _LINK.sub(turned, (ROOT / file).read_text(encoding="utf-8"))


def main() -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    for name, file in SHOWN.items():
        write_atomically(OUT / f"{name}.md", shown(file).encode())


if __name__ == "__main__":
    main()
