"""What `import rbve` offers is seen by dir(), by type checkers and by editors."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import rbve

ROOT = Path(__file__).parent.parent


def test_dir_shows_them_and_imports_nothing() -> None:
    code = "import rbve, sys; print(*dir(rbve)); sys.exit('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert {*rbve.__all__, "__version__"} <= {*done.stdout.split()}


def test_type_checkers_see_them() -> None:
    tree = ast.parse((ROOT / "rbve" / "__init__.py").read_text())
    (static,) = (each for each in tree.body if isinstance(each, ast.If))
    names = {name.name for each in static.body for name in each.names}  # type: ignore[attr-defined]
    assert names == {*rbve.__all__}
    assert (ROOT / "rbve" / "py.typed").exists()


def test_functions_stay_functions() -> None:
    """Also where a package has the name of one, and whatever was imported before."""
    code = (
        "import rbve, rbve.off_policy.fits, rbve.decisions; print(all(callable(getattr(rbve, n)) "
    )
    code += "for _ in (1, 2) for n in rbve.__all__ if n not in ('Dataset', 'Episode', 'Policy')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "True", done.stderr
