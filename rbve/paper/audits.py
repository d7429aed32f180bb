"""Audits of a study's recordings, small enough to keep beside its rows.

OUT/audits.json    recording, as a path below OUT -> verdict, findings, sizes, actions, returns
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rbve import schema
from rbve.data.manifest import MANIFEST, fingerprint, is_recorded
from rbve.files import read_json, write_json

FILE = "audits.json"
_FIELDS = ("verdict", "findings", "notes", "episodes", "transitions", "observation")

_NUMBERS = {"*": (float, None)}
_FINDING = dict.fromkeys(("level", "name", "seen", "why", "remedy"), str)
_AUDIT = {
    "fingerprint?": str,
    "verdict": str,
    "findings": [_FINDING],
    "notes": [str],
    **dict.fromkeys(("episodes", "transitions"), int),
    "observation": str,
    "executed_differs": (float, None),
    **dict.fromkeys(("actions", "length", "returns", "ends"), _NUMBERS),
}

Summary = dict[str, Any]


def write_audits(
    out: Path, on_progress: Callable[[str], None] = lambda recording: None
) -> dict[str, Summary]:
    """Audit every finished recording of the study; one that has not changed keeps its audit."""
    from rbve.audit import audit_path

    known = read_audits(out)
    found = {}
    for manifest in sorted((out / "data").glob(f"*/*/{MANIFEST}")):
        folder = manifest.parent
        if not is_recorded(folder):
            continue
        name, mark = folder.relative_to(out).as_posix(), fingerprint(folder)
        if known.get(name, {}).get("fingerprint") != mark:
            known[name] = {"fingerprint": mark, **summary(audit_path(folder).to_json())}
        found[name] = known[name]
        on_progress(name)
    write_json(out / FILE, found)
    return found


def summary(audit: Summary) -> Summary:
    """What a reader of results wants of an audit."""
    return {
        **{name: audit[name] for name in _FIELDS},
        "actions": {name: each["share"] for name, each in audit["actions"].items()},
        "executed_differs": audit["counts"]["executed_differs"],
        "length": audit["counts"]["length"],
        "returns": audit["counts"]["returns"],
        "ends": {"terminated": audit["terminated_episodes"], "at_limit": audit["ends"]["at_limit"]},
    }


def read_audits(out: Path) -> dict[str, Summary]:
    """Empty where none were written."""
    file = out / FILE
    if not file.is_file():
        return {}
    content = read_json(file)
    where = f"{file}: holds no audits; remove it and run `rbve reproduce` again"
    schema.check(content, {"*": _AUDIT}, where)
    return content
