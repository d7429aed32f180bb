"""What cells of the documentation may use: %load_ext docs_cells.

    %%sh 0 3
    rbve inspect data/visits

runs lines in bash and shows what they print; an exit code other than those named fails the build.
Pages show such a cell without its first line (docs/conf.py). The folder of the cells gets the
repository's examples and the fetched data, by their names.
"""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

from rbve.report import render

HERE = Path(os.environ["RBVE_DOCS"])
FETCHED = HERE / "_build" / "fetched"
# Of terminals: colours, and lines that later ones overwrite.
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[^\n]*\r(?!\n)")
# Of work that takes more than a minute: another line at each build.
_PROGRESS = re.compile(r"^.*: (?:\d+%, )?\d+ min(?:, .*)?\n", re.MULTILINE)


def sh(line: str, cell: str) -> None:
    """Run a cell in bash, which stops at the first line that fails."""
    allowed = [int(each) for each in line.split()] or [0]
    command = ["bash", "-e", "-o", "pipefail", "-c", cell]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(_PROGRESS.sub("", _ESCAPES.sub("", done.stdout)).rstrip())
    if done.returncode not in allowed:
        raise RuntimeError(f"exit code {done.returncode}, where {allowed} were expected")


class Chart:
    """A Vega-Lite specification, which the page draws; last in a cell, it is shown."""

    def __init__(self, spec: dict[str, Any], words: str) -> None:
        self.spec, self.words = spec, words

    def _repr_html_(self) -> str:
        text = render.embedded(self.spec)
        return (
            f'<div class="vega-figure" role="img" aria-label="{html.escape(self.words)}">'
            f'<script type="application/json">{text}</script><div class="drawing"></div>'
            f"<noscript>{html.escape(self.words)} (drawn by a script)</noscript></div>"
        )


def load_ipython_extension(ipython: Any) -> None:
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    ipython.register_magic_function(sh, "cell")
    ipython.push({"Chart": Chart, "ROOT": HERE.parent, "os": os, "sys": sys})
    places = {name: HERE.parent / name for name in ("examples", "results")} | {"fetched": FETCHED}
    for name, place in places.items():
        if place.exists() and not Path(name).exists():
            Path(name).symlink_to(place)
