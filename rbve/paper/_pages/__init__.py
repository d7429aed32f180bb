"""The pages of a study, from its result rows alone; their HTML is from rbve/paper/templates."""

from functools import cache
from typing import Any

import jinja2

from rbve.report import render as report


@cache
def _environment() -> jinja2.Environment:
    loaders = [jinja2.PackageLoader(name) for name in ("rbve.paper", "rbve.report")]
    return report.environment().overlay(loader=jinja2.ChoiceLoader(loaders))


def render(template: str, **values: Any) -> str:
    """A template filled in; `values` are escaped, unless Markup."""
    return _environment().get_template(template).render(**values)
