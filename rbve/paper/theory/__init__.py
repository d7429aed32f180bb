"""The paper's appendix as experiments: each module asks one QUESTION and answers it by `run`.

run(scale="desk", seed=0) gives result rows; equal scale and seed give equal rows.
"""

from rbve.rows import Run

_SCALES = ("quick", "desk", "paper")


def check_scale(scale: str) -> str:
    """The scale to run at: everything here is small, so "paper" is "desk"."""
    if scale not in _SCALES:
        raise ValueError(f"scale must be one of {', '.join(_SCALES)}; got {scale!r}")
    return "quick" if scale == "quick" else "desk"


def keyed(run: Run, prefix: str) -> dict[str, float]:
    """Values by what follows the prefix in their metric."""
    return {
        row.metric[len(prefix) :]: row.value for row in run.rows if row.metric.startswith(prefix)
    }


def numbered(run: Run, prefix: str) -> dict[str, float]:
    """Values whose metric is the prefix and a number: one per random problem."""
    return {key: value for key, value in keyed(run, prefix).items() if key.isdigit()}
