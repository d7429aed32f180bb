"""How the site is built: `make docs`. Warnings are errors, and so is a cell that fails."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools"), str(HERE / "_ext")]

from docs_unrun import unrun  # noqa: E402

from rbve import __version__  # noqa: E402

project, author, release = "rbve", "the authors of rbve", __version__
copyright = "the authors of rbve, Apache-2.0"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "mathml",
]
exclude_patterns = ["_build", "_ext", "generated/parts", "notes"]
nitpicky = True
default_role = "code"  # docstrings write `name`, as Markdown does

html_theme = "furo"
html_title = f"rbve {__version__}"
html_static_path = ["_static", "generated/static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath", "substitution"]
myst_heading_anchors = 4

# Cells run from beginning to end at every build, in a folder that is thrown away.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 900
nb_execution_in_temp = True
nb_merge_streams = True
# What cells and the processes they start find: this package, its commands, where fetched data lies.
os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
os.environ["PYTHONPATH"] = f"{ROOT}:{ROOT / 'tools'}"
os.environ["RBVE_DOCS"] = str(HERE)
os.environ["COLUMNS"] = "100"
# Kernels listen on this machine alone, and need not warn of it in every page.
os.environ["IPYTHONDIR"] = str(HERE / "_build" / "ipython")
profile = HERE / "_build" / "ipython" / "profile_default"
profile.mkdir(parents=True, exist_ok=True)
(profile / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 'ERROR'\n")

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_attr_annotations = True
# Types in signatures that have no page here.
nitpick_ignore_regex = [("py:.*", ".*")]

# Files of the repository that pages link to, and the pages that show them.
SHOWN = {
    "results/README.md": "results",
    "benchmarks/README.md": "benchmarks",
    "CHANGELOG.md": "changelog",
    "CONTRIBUTING.md": "contributing",
}
SHELL = re.compile(r"%%sh[ 0-9]*\n")


def link_to_pages(app: Sphinx, page: str, content: list[str]) -> None:
    """Links to those files lead to their pages; on the web view of a repository, to the files."""
    up = "../" * page.count("/")
    for file, shown in SHOWN.items():
        content[0] = content[0].replace(f"]({up}../{file}", f"]({up}generated/{shown}.md")


def show_unrun(app: Sphinx, page: str, content: list[str]) -> None:
    content[0] = unrun(content[0], HERE / "_build" / "fetched")


def show_commands(app: Sphinx, doctree: nodes.document) -> None:
    """A cell that runs in bash shows its commands alone (tools/docs_cells.py), one that writes a
    file the file under its name."""
    for block in list(doctree.findall(nodes.literal_block)):
        text = block.astext()
        if SHELL.match(text):
            commands = SHELL.sub("", text)
            block.replace_self(nodes.literal_block(commands, commands, language="bash"))
        elif text.startswith("%%writefile "):
            line, _, content = text.partition("\n")
            named = f"# {line.split()[1]}\n{content}"
            block.replace_self(nodes.literal_block(named, named, language="python"))


def add_scripts(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Vega, a large script, where something is drawn."""
    if 'class="vega-figure"' in context.get("body", ""):
        app.add_js_file("vega.js")
        app.add_js_file("figures.js")


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", add_scripts)
    app.connect("source-read", link_to_pages)
    app.connect("source-read", show_unrun)
    app.connect("doctree-read", show_commands)
