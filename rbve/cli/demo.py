"""`rbve demo`."""

from pathlib import Path

RESUMES = True


def command(out: Path = Path("demo")) -> None:
    """Show when the choice of method matters: record, audit, train, evaluate. Needs no input.

    Run again after an interruption: finished work is kept.

    Args:
        out: Folder for datasets, runs and the report.
    """
    from rbve.cli import _demo
    from rbve.files import locked

    with locked(out):
        _demo.run(out)
