"""The flags of formats, for the commands that read any of them."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

from tyro import conf

from rbve.data import formats

_conf: Any = conf  # whose marks take types made at run time
_FORMATS = "; ".join(f"{name}: {formats.summary(name)}" for name in formats.names())
_FORMAT = f"Format of the data, if it cannot be told. {_FORMATS}."
FormatName = Annotated[str | None, conf.arg(help=_FORMAT, metavar="FORMAT")]


def flags() -> type:
    """A dataclass with the Options of every format, one group for formats that share them.

    A flag that several have stands with the first; its value goes to the format that reads.
    """
    sharing: dict[type, list[str]] = {}
    for name, kind in formats.option_kinds().items():
        sharing.setdefault(kind, []).append(name)
    taken: set[str] = set()
    groups: list[tuple[str, Any, Any]] = []
    for kind, names in sharing.items():
        fields = dataclasses.fields(kind)
        hidden: list[Any] = [
            (field.name, _conf.Suppress[_conf.Fixed[Any]], field)
            for field in fields
            if field.name in taken
        ]
        if len(hidden) < len(fields):
            group = dataclasses.make_dataclass(kind.__name__, hidden, bases=(kind,), frozen=True)
            group = group if hidden else kind
            default = dataclasses.field(default_factory=group)
            groups.append(("_and_".join(names), _conf.OmitArgPrefixes[group], default))
        taken |= {field.name for field in fields}
    return dataclasses.make_dataclass("FormatOptions", groups, frozen=True)


FormatOptions: Any = flags()


def chosen(path: Path, format: str | None, options: Any, toml: Path | None) -> dict[str, Any]:
    """Choices for the data at `path`: flags and, where they are silent, those of a TOML file."""
    groups = [getattr(options, field.name) for field in dataclasses.fields(options)]
    made = {name: value for group in groups for name, value in formats.choices(group).items()}
    if toml is None:
        return made
    name = format or formats.recognise(path)
    kind = formats.option_kinds().get(name)
    if kind is None:
        raise ValueError(f"{name} data takes no options; leave --columns out")
    return {**formats.choices(formats.from_toml(toml, kind)), **made}
