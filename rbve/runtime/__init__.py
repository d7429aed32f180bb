"""Decisions of a shipped policy with NumPy alone: no JAX, nothing compiled.

    decider = rbve.runtime.load("shipped")
    decider.decide({"age": 61, "blood_pressure": 158, "ward": "B"})

`rbve export POLICY shipped` writes the folder that `load` reads.
"""

from rbve.runtime.decider import Decider, Decisions
from rbve.runtime.folder import load
from rbve.runtime.session import Session

__all__ = ["Decider", "Decisions", "Session", "load"]
