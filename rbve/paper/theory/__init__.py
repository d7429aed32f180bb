"""The paper's appendix as experiments: each module asks one QUESTION and answers it by `run`.

run(scale="desk", seed=0) gives result rows; equal scale and seed give equal rows.
"""

from __future__ import annotations

SCALES = ("quick", "desk", "paper")


def check_scale(scale: str) -> str:
    """The scale to run at: everything here is small, so "paper" is "desk"."""
    if scale not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}; got {scale!r}")
    return "quick" if scale == "quick" else "desk"
