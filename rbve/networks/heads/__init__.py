"""Heads: features (F, B) and a key to outputs (B, ...), a file each, or in an algorithm's own file.

A head's file holds an equinox Module of the same name (q.py: Q). Its constructor takes (features,
actions, key) and, by name, any of the algorithm's Options; called with features and a key it
returns a Head, or a dict of arrays (B, ...), of which those that are no fields of a Head come to
stand in `Head.extra`. `WITH_MEMORY` in the file names the head that takes its place behind a
memory. A head that samples may have a method `acting`, called in its place where the policy acts,
which draws the same numbers for every row.

An algorithm's HEAD is one of these, by name or as a class, or a tuple of them. The first gives what
a Head needs; each further one adds what is missing. A `Tower` puts a head on a torso of its own.
"""

import dataclasses
import inspect
from collections.abc import Iterable, Mapping
from typing import Any

import equinox as eqx

from rbve.registry import Registry
from rbve.types import Array, Head, Tower

_HEADS = Registry("head", __name__, __file__)
_TOWER = "tower:"


def listed_heads(head: Any) -> tuple[Any, ...]:
    """An algorithm's HEAD as a tuple of names, classes and Towers."""
    if head == "q_policy":  # the name that earlier versions had for it
        return ("q", Tower("policy"))
    return head if isinstance(head, tuple) else (head,)


def head_text(head: Any) -> str:
    """HEAD as it is written into files, such as "q" or "q+tower:policy"."""

    def text(each: Any) -> str:
        if isinstance(each, Tower):
            return _TOWER + text(each.head)
        return each if isinstance(each, str) else each.__name__

    return "+".join(map(text, listed_heads(head)))


def head_from_text(text: str) -> Any:
    """The HEAD that `head_text` wrote; ValueError where one is an algorithm's own class."""
    words = head_text(text).split("+")
    heads = [Tower(w.removeprefix(_TOWER)) if w.startswith(_TOWER) else w for w in words]
    for each in words:
        _class(each.removeprefix(_TOWER))
    return heads[0] if len(heads) == 1 else tuple(heads)


def make_head(
    head: Any, features: int, actions: int, key: Array, options: Any, memory: int = 0
) -> eqx.Module:
    """A head by name or by class, with those of the algorithm's Options that it takes."""
    make = _class(head, memory)
    takes = inspect.signature(make.__init__).parameters
    chosen = {k: v for k, v in dataclasses.asdict(options).items() if k in takes}
    return make(features, actions, key, **chosen)


def combined(outputs: Iterable[Head | Mapping[str, Array]]) -> Head:
    """One Head of what several heads returned; where two give the same, the first counts."""
    fields: dict[str, Any] = {}
    extra: dict[str, Array] = {}
    for output in outputs:
        named: dict[str, Any] = dict(output._asdict() if isinstance(output, Head) else output)
        extra = {**(named.pop("extra", None) or {}), **extra}
        for name, value in named.items():
            if value is not None:
                (fields if name in Head._fields else extra).setdefault(name, value)
    if "q" not in fields:
        raise ValueError("an algorithm's HEAD needs a head that returns q, a number per action")
    fields.setdefault("ranked", fields["q"])
    return Head(**fields, extra=extra or None)


def _class(head: Any, memory: int = 0) -> Any:
    if not isinstance(head, str):
        if not (inspect.isclass(head) and issubclass(head, eqx.Module)):
            raise ValueError(f"a head is a name or a class of equinox.Module; got {head!r}")
        return head
    module = _HEADS.load(head)
    if memory and hasattr(module, "WITH_MEMORY"):
        return _class(module.WITH_MEMORY)
    return getattr(module, head.title().replace("_", ""))
