"""`rbve pack`."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from rbve.cli import _console
from rbve.cli._arguments import need_one


def command(
    study: Positional[Annotated[tuple[Path, ...], arg(metavar="STUDY")]], /, out: Path
) -> None:
    """Keep of studies what reports read: rows, lists of runs, audits; no data, no checkpoints.

    `rbve report OUT` then gives the same page as `rbve report STUDY`. To add a study to what was
    packed before, name both: `rbve pack results study --out results`.

    Args:
        study: One or more folders of studies.
        out: Folder for a few small files.
    """
    from rbve.paper import results

    need_one("STUDY", study)
    packed = results.pack(study, out)
    left = f", {packed.left_out} not finished or of no experiment" if packed.left_out else ""
    _console.tell(f"{out}: {packed.runs} runs{left}; {packed.theory} of theory")
