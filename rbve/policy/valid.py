"""What a policy's file has to hold, whoever wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rbve import schema
from rbve.networks.torsos import TORSOS
from rbve.rows import FACTS, JOB
from rbve.schema import INT32, MAX_WIDTH

FIELDS = {
    "kind": str,
    "algorithm": str,
    "algorithm_version?": str,
    "head?": str,
    "values?": bool,
    "scores?": (str, None),
    "options": {"*": (str, bool, int, float, None)},
    "config": {"*": float},
    "obs_shape": [int],
    "actions": [str],
    "torso?": str,
    "hidden": [int],
    "memory?": int,
    "rescaled?": bool,
    "masked": bool,
    "info": {"job?": JOB, "facts?": FACTS, "step?": int, "diverged_at?": int},
    "features?": (list, None),
}


def check(path: Path, arrays: Mapping[str, np.ndarray], info: Mapping[str, Any]) -> None:
    if info.get("kind") != "policy" or "weights" not in arrays:
        raise ValueError(f"{path}: not a saved policy")
    schema.check(info, FIELDS, f"{path}: not a policy of this version")
    sizes = (
        *((size, INT32) for size in (*info["obs_shape"], len(info["actions"]))),
        *((size, MAX_WIDTH) for size in info["hidden"]),
        (info.get("memory", 0) + 1, MAX_WIDTH + 1),
    )
    if not all(1 <= size <= most for size, most in sizes):
        raise ValueError(f"{path}: damaged; its network has a layer of no possible size")
    if info.get("torso", "mlp") not in TORSOS:
        raise ValueError(f"{path}: damaged; torso must be one of {', '.join(TORSOS)}")
    if not np.isfinite(arrays["weights"]).all():
        raise ValueError(f"{path}: its weights are not all finite; train it again")
