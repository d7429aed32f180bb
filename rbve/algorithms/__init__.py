"""Algorithms, one file each. A file's presence is its registration; a path to a file works too.

An algorithm file holds

    HEAD       the network head it reads: q, ensemble, quantile, q_policy or policy
    BOOTSTRAP  where targets come from: state, pair, return or none (rbve/data/transitions.py)
    Config     NamedTuple of numbers, which may differ between members of one sweep
    Options    frozen dataclass of choices, which fix the compiled program
    loss       (views, batch, config, options, td, key) -> one value per item, metrics

and, where the default does not serve,

    VALUES     False if the head's output is not a value (default True)
    scores     (head, legal, config, options) -> (B, A); argmax acts (default: Q)
    keep       (dataset) -> dataset; which episodes train (default: all)
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from rbve import registry

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Algorithm:
    """An algorithm file with its defaults filled in."""

    name: str
    head: str
    bootstrap: str
    config: Any  # NamedTuple class
    options: Any  # dataclass
    loss: Callable[..., Any]
    scores: Callable[..., Any]
    values: bool
    keep: Callable[[Any], Any]


@dataclass(frozen=True)
class NoOptions:
    """For algorithms without choices."""


def names() -> list[str]:
    return registry.names(FOLDER)


def summary(name: str) -> str:
    return registry.summary(FOLDER, name)


def load(name: str) -> Algorithm:
    """By name, or by the path of a file ending in .py."""
    if name.endswith(".py"):
        module = load_file(Path(name))
    elif name in names():
        module = importlib.import_module(f"rbve.algorithms.{name}")
    else:
        raise registry.unknown("algorithm", name, names())
    return from_module(name, module)


def load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ValueError(f"{path}: no such algorithm file")
    spec = importlib.util.spec_from_file_location(f"rbve_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path}: cannot be imported as an algorithm file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up by name
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"{path}: cannot be imported: {type(error).__name__}: {error}") from error
    return module


def from_module(name: str, module: ModuleType) -> Algorithm:
    for needed in ("HEAD", "BOOTSTRAP", "Config", "loss"):
        if not hasattr(module, needed):
            raise ValueError(f"algorithm {name!r} lacks {needed}; see rbve/algorithms/__init__.py")
    return Algorithm(
        name=name,
        head=module.HEAD,
        bootstrap=module.BOOTSTRAP,
        config=module.Config,
        options=getattr(module, "Options", NoOptions),
        loss=module.loss,
        scores=getattr(module, "scores", greedy),
        values=getattr(module, "VALUES", True),
        keep=getattr(module, "keep", lambda dataset: dataset),
    )


def greedy(head: Any, legal: Any, config: Any, options: Any) -> Any:
    from rbve import ops

    return ops.mask(head.q, legal)
