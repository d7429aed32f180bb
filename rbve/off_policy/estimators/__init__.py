"""Estimators of a policy's value, one file each. A file's presence is its registration.

A file holds `ESTIMATOR`, an Estimator, and

    estimate(case)    (E,) influence values from an OpeCase: their mean is the estimate, and their
                      spread over episodes makes the interval (rbve/off_policy/intervals.py)
"""

from dataclasses import dataclass
from types import ModuleType

from rbve import registry
from rbve.off_policy.log import DecisionLog

_FILES = registry.Registry("estimator", __name__, __file__)


@dataclass(frozen=True)
class Estimator:
    """The words of an estimator, and what it needs."""

    label: str
    one_step_label: str = ""  # as the literature on bandits calls it; "" = the same
    weights: bool = False  # multiplies by π / μ
    values: bool = False  # reads a fitted Q̂
    unheld: bool = False  # nothing makes up for weights that do not average 1
    steps: str = "any"  # "one": only logs of one-step episodes; "several": only others
    interval: bool = True  # its spread over episodes tells how far it may be off, all of it
    order: int = 50

    def name_on(self, log: DecisionLog) -> str:
        """As the literature on logs of this kind calls it."""
        return self.one_step_label if log.one_step and self.one_step_label else self.label

    def suits(self, log: DecisionLog) -> bool:
        return self.steps == "any" or (self.steps == "one") == log.one_step


def names() -> list[str]:
    return sorted(_FILES.names(), key=lambda name: (load(name).ESTIMATOR.order, name))


def summary(name: str) -> str:
    return _FILES.summary(name)


def load(name: str) -> ModuleType:
    return _FILES.load(name)


def suited(log: DecisionLog) -> list[str]:
    """Those that mean something on a log."""
    return [name for name in names() if load(name).ESTIMATOR.suits(log)]
