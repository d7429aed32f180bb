"""Forms in which policies are shipped, a file each. A file's presence is its registration.

A form's file holds

    SUFFIX  what the path ends in, with the dot; "" of a folder
    write   (shipment, path) -> None

and, where the form needs a package that is not always there, raises ImportError that names it.
"""

from pathlib import Path
from typing import Any

from rbve.registry import Registry

FORMS = Registry("form", __name__, __file__)


def form_for(path: Path, name: str | None = None) -> Any:
    """The module of a form by name, else by what the path ends in."""
    if name is not None:
        return FORMS.load(name)
    modules = [FORMS.load(each) for each in FORMS.names()]
    for module in modules:
        if path.suffix == module.SUFFIX:
            return module
    known = ", ".join(f"{m.SUFFIX or 'no ending, for a folder'}" for m in modules)
    raise ValueError(f"{path}: what it is to be shows by its ending ({known}), or by --format")
