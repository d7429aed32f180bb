"""Algorithms, one file each. A file's presence is its registration; a path to a file works too.

An algorithm file holds

    HEAD       what the network has to say about a state: a head by name (q, dueling, ensemble,
               quantile, fixed_quantile, value, policy), a class of its own, or a tuple of these;
               a Tower puts one on a torso of its own (rbve/networks/heads)
    BOOTSTRAP  where targets come from: state, pair, return or none (rbve/data/transitions.py)
    Config     NamedTuple of numbers, which may differ between members of one sweep
    Options    frozen dataclass of choices, which fix the compiled program
    loss       (views, batch, config, options, td, key) -> one value per item, metrics

and, where the default does not serve,

    VALUES     False if the head's output is not a value (default True)
    scores     (head, legal, config, options) -> (B, A); argmax acts (default: Q)
    keep       (dataset) -> dataset; which episodes train (default: all)
    optimiser  (options) -> a function from the learning rate to an optax transformation of the
               network, or the name of a file in rbve/training/optimisers (default: adam)
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from rbve import registry

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Acting:
    """What acting needs of an algorithm."""

    name: str
    head: Any  # see HEAD above
    scores: Callable[..., Any]
    values: bool
    version: str  # hash of the source of a file outside the package, else empty


@dataclass(frozen=True)
class Algorithm(Acting):
    """An algorithm file with its defaults filled in."""

    bootstrap: str
    config: Any  # NamedTuple class
    options: Any  # dataclass
    loss: Callable[..., Any]
    keep: Callable[[Any], Any]
    optimiser: str | Callable[..., Any]


@dataclass(frozen=True)
class NoOptions:
    """For algorithms without choices."""


def names() -> list[str]:
    return registry.names(FOLDER)


def summary(name: str) -> str:
    return registry.summary(FOLDER, name)


def load(name: str) -> Algorithm:
    """By name, or by the path of a file ending in .py, which is executed.

    For names that a user gave. Those that stand in a file go to `built_in`.
    """
    return _from_file(name) if name.endswith(".py") else built_in(name)


def built_in(name: str) -> Algorithm:
    """One of `names()`, or a file here with a leading underscore, which is for this package's own
    use; nothing else is imported."""
    own = name.startswith("_") and name.isidentifier() and (FOLDER / f"{name}.py").is_file()
    if name not in names() and not own:
        raise registry.unknown("algorithm", name, names())
    return _from_module(name, importlib.import_module(f"rbve.algorithms.{name}"))


def version(path: Path) -> str:
    """Of an algorithm file: the hash of its source."""
    return registry.version(path)


def _from_file(name: str) -> Algorithm:
    module = registry.load_file(Path(name), "algorithm")
    return _from_module(name, module, version(Path(name)))


def _from_module(name: str, module: ModuleType, version: str = "") -> Algorithm:
    for needed in ("HEAD", "BOOTSTRAP", "Config", "loss"):
        if not hasattr(module, needed):
            raise ValueError(f"algorithm {name!r} lacks {needed}; see rbve/algorithms/__init__.py")
    return Algorithm(
        name=name,
        head=module.HEAD,
        scores=getattr(module, "scores", greedy),
        values=getattr(module, "VALUES", True),
        version=version,
        bootstrap=module.BOOTSTRAP,
        config=module.Config,
        options=getattr(module, "Options", NoOptions),
        loss=module.loss,
        keep=getattr(module, "keep", everything),
        optimiser=getattr(module, "optimiser", "adam"),
    )


def everything(dataset: Any) -> Any:
    """The default `keep`."""
    return dataset


def greedy(head: Any, legal: Any, config: Any, options: Any) -> Any:
    from rbve import ops

    return ops.mask(head.q, legal)


def scores_name(algorithm: Acting) -> str | None:
    """The name of its scores, greedy or that of the algorithm here that has them; else None."""
    if algorithm.scores is greedy:
        return "greedy"
    package, _, module = str(getattr(algorithm.scores, "__module__", "")).rpartition(".")
    known = package == __name__ and module in names()
    return module if known and built_in(module).scores is algorithm.scores else None


def scores_named(name: str) -> Callable[..., Any]:
    """The scores that `scores_name` told."""
    return greedy if name == "greedy" else built_in(name).scores
