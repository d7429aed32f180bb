"""An audit of data in a file, read so that faults are listed instead of refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rbve.audit import Audit, audit
from rbve.data import formats
from rbve.data.dataset import Dataset
from rbve.data.source import Fault

_MOST_FAULTS = 1000  # kept; one bad column can hold millions


def audit_path(
    path: Path,
    format: str | None = None,
    options: Any = None,
    gamma: float = 0.99,
    beta: float = 0.5,
) -> Audit:
    """Audit data of any format. A native store is mapped, and all of its checksums are checked."""
    if (format or formats.recognise(path)) == "native":
        return audit(formats.load(path, "native", options), gamma, beta)
    faults: list[Fault] = []

    def note(fault: Fault) -> None:
        if len(faults) < _MOST_FAULTS:
            faults.append(fault)

    source = formats.read(path, format, options, note)
    parts = list(source.parts)
    if not parts:
        first = f" ({faults[0].text})" if faults else ""
        raise ValueError(f"{path}: no episode could be read{first}")
    return audit(Dataset.join(parts), gamma, beta, faults, source.notes)
