"""A folder for rbve.runtime: decisions with NumPy alone."""

from pathlib import Path
from typing import Any

import numpy as np

from rbve.exports._shipment import Shipment, check_equal
from rbve.files import replacing
from rbve.policy.core import Compiled
from rbve.runtime import folder
from rbve.runtime.folder import ARRAYS, DESCRIPTION
from rbve.runtime.outcome import weigh

SUFFIX = ""


def write(shipment: Shipment, path: Path) -> None:
    """Beside each other: `policy.npz` and `policy.json`. What was read again decides as the policy
    does, by JAX."""

    def check() -> None:
        strangers = [] if not path.is_dir() else [*path.iterdir()]
        if path.is_file() or {each.name for each in strangers} - {ARRAYS, DESCRIPTION}:
            raise ValueError(f"{path}: holds something else than a shipped policy; choose another")

    with replacing(path, check) as partial:
        partial.mkdir()
        folder.write(partial, shipment.decider())
        again, compiled = folder.load(partial), Compiled(shipment.policy)
        for sample in shipment.samples():
            state = {name: sample[name] for name in sample if name not in ("obs", "legal")}
            found, _ = again.step(sample["obs"], sample["legal"], state)
            seen, inside = again.encoded(sample["obs"])
            outputs = compiled(len(seen), **{**sample, "obs": seen})
            known: Any = {n: outputs[n] for n in ("q", "scores", "behaviour") if n in outputs}
            check_equal(weigh(np, known, sample["legal"], inside, shipment.rules), found, str(path))
