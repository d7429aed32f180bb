"""`rbve convert`."""

from pathlib import Path
from typing import Annotated

from tyro.conf import OmitArgPrefixes, Positional, arg

from rbve.cli import _console
from rbve.cli._formats import FormatName, FormatOptions, chosen


def command(
    src: Positional[Annotated[Path, arg(metavar="SRC")]],
    dst: Positional[Annotated[Path, arg(metavar="DST")]],
    /,
    formats: OmitArgPrefixes[FormatOptions] = FormatOptions(),  # noqa: B008
    columns: Path | None = None,
    format: FormatName = None,
    to: str | None = None,
    overwrite: bool = False,
) -> None:
    """Bring data in, or out: from any format to the native store, npz, Parquet, CSV or Minari.

    SRC is a file, a folder, or a glob of files in quotes; a log in many files is one. DST is
    written as its suffix says (.npz, .parquet, .csv), else as a native store, which is what `rbve
    train` takes. Nothing appears at DST until all of it is there.

    For CSV and Parquet logs, one row per decision, say which column is what:

        rbve convert visits.csv visits --episode visit --action treatment --reward outcome

    Args:
        src: What to read.
        dst: What to write.
        columns: TOML file with the same choices, `episode = "visit"` and so on; flags go first.
        to: Format to write, if the suffix of DST does not say: minari, minari_arrow, ...
        overwrite: Replace what is at DST, which stays until the new data is whole.
    """
    from rbve.audit.verdict import counted
    from rbve.data.convert import convert as run
    from rbve.data.manifest import MANIFEST, read_manifest

    choices = chosen(src, format, formats, columns)
    with _console.bar(f"reading {src}", None, "") as bar:
        notes = run(src, dst, format, to, choices, overwrite, bar.reach)
    _console.show_notes(notes)
    if not (dst / MANIFEST).is_file():
        _console.say(f"{dst}{f': {dst.stat().st_size:,} bytes' if dst.is_file() else ''}")
        return
    held = read_manifest(dst)
    decisions, actions = held["rows"] - held["episodes"], held["actions"]
    names = ", ".join(actions[:8]) + (", …" if len(actions) > 8 else "")
    counts = f"{counted(held['episodes'], 'episode')}, {counted(decisions, 'decision')}"
    _console.say(f"{dst}: {counts}, {counted(len(actions), 'action')} ({names})")
