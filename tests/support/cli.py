"""The command line, called as a function."""

from __future__ import annotations

import contextlib
import io
from typing import NamedTuple

from rbve.cli import main


class Result(NamedTuple):
    code: int
    out: str
    err: str


def run(*arguments: object) -> Result:
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
    return Result(code, out.getvalue(), err.getvalue())
