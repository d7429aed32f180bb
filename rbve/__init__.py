"""rbve: learn decisions from logged data when actions are discrete and nobody may experiment."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "Dataset", "Episode", "Policy", "convert", "evaluate", "export", "inspect", "load",
    "load_policy", "ope", "predict", "record", "results", "select", "train", "tune", "write_report",
]  # fmt: skip

_PLACES = {name: "data" for name in ("Dataset", "Episode", "load")}
_PLACES |= {name: "decisions" for name in ("ope", "select", "tune")}
_PLACES |= {name: "deciding" for name in ("load_policy", "predict")}
_PLACES |= {"export": "shipping", "results": "tidy"}

if TYPE_CHECKING:
    from rbve.api import Policy, convert, evaluate, inspect, record, train, write_report
    from rbve.data import Dataset, Episode, load
    from rbve.deciding import load_policy, predict
    from rbve.decisions import ope, select, tune
    from rbve.shipping import export
    from rbve.tidy import results


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    # Lazy, so that `rbve --help` need not wait for JAX, nor whoever only reads data.
    if name in __all__:
        place = _PLACES.get(name, "api")
        return getattr(importlib.import_module(f"rbve.{place}"), name)
    raise AttributeError(f"module 'rbve' has no attribute {name!r}")
