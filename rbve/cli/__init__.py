"""The command line: parse, call, print.

What a command needs is imported once interruptions are caught: that takes a second.
"""

import os
import sys
from collections.abc import Sequence

try:
    from rbve.cli import _console, _ending
except KeyboardInterrupt:
    os.write(2, b"rbve: interrupted\n")
    os._exit(130)


def main(arguments: Sequence[str] | None = None) -> None:
    words = list(sys.argv[1:] if arguments is None else arguments)
    _console.prepare_streams()
    try:
        with _ending.told_in_one_line(*words[:1]):
            from rbve.cli import _parse

            with _parse.one_line_errors():
                call = _parse.parse(words)
            call()
    except SystemExit as end:
        if arguments is None and end.code in _ending.STOPPED:
            _ending.leave_at_once(end.code)
        raise
