"""Weights & Biases: a run of the same name; WANDB_MODE=offline keeps it in OUT/wandb.

`wandb sync OUT/wandb/offline-*` sends offline runs later. WANDB_PROJECT names the project, else it
is rbve. A run that goes on keeps its id; steps that are there already are not sent twice.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rbve.rows import Run


def require() -> None:
    try:
        import wandb  # noqa: F401 - whether it is there
    except ImportError:
        raise ImportError('Weights & Biases needs a package: pip install "rbve[wandb]"') from None


def opened(out: Path, run: Run) -> "_Logged":
    import wandb

    try:
        begun = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "rbve"),
            id=run.job,
            name=run.job,
            group=run.group or None,
            config={"spec": run.spec, "facts": run.facts},
            dir=str(out),
            resume="allow",
            reinit="create_new",  # several runs train at a time
        )
    except wandb.Error as error:
        words = " ".join(str(error).split()).rstrip(".")
        raise ValueError(
            f"Weights & Biases: {words}; or set WANDB_MODE=offline, which keeps runs in "
            f"{out / 'wandb'}. The same command goes on from the last checkpoint"
        ) from None
    return _Logged(begun)


class _Logged:
    def __init__(self, run: Any) -> None:
        self._run = run

    def add(self, step: int, figures: Mapping[str, float]) -> None:
        if step >= self._run.step:
            self._run.log(dict(figures), step=step)

    def close(self) -> None:
        self._run.finish()
