"""Figures of experiments, one file each: its presence puts them into every experiment's sections.

A file holds

    PLACE     its place among the others
    TITLE     of the section it makes after the experiment's own; "" = it is part of that
    SHORT     of TITLE, for the table of contents
    ABOUT     the words before its figures
    figures(study, name)   a Chart or Figure each, of the study's experiment of that name; None
                           where the file has nothing to say about it
    tables(study, name)    HTML after the figures; optional
"""

from functools import cache
from typing import Any

from rbve import registry


@cache
def parts() -> tuple[Any, ...]:
    """The modules of this folder, by PLACE."""
    files = registry.Registry("figure", __name__, __file__)
    return tuple(sorted(map(files.load, files.names()), key=lambda module: module.PLACE))
