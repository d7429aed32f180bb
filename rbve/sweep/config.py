"""A Spec and the values to vary of it, as a TOML file with a table for each part.

steps = 20_000
algorithm = ["rbve", "bve"]    # several values: every combination is trained

[data]
path = "data/catch"

[view]
gamma = [0.9, 0.99]

[settings]
lam = 0.5
"""

import difflib
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin

from rbve.registry import did_you_mean
from rbve.schema import check_value
from rbve.spec import Spec, layout_of

_DERIVED = ("algorithm_version", "fingerprint", "replicate")  # of files, not of users


class SweepConfig(NamedTuple):
    """What to train: `base` with every combination of the values of `vary`."""

    base: Spec
    vary: dict[str, list[Any]]  # by flat names of fields, or names of settings

    def with_fields(
        self, fields: Mapping[str, Any], vary: Mapping[str, Sequence[Any]]
    ) -> "SweepConfig":
        """With these in the place of its own, whether one value or several."""
        kept = {k: v for k, v in self.vary.items() if k not in fields}
        kept |= {k: list(values) for k, values in vary.items()}
        return SweepConfig(self.base.varied(**fields), kept)


def field_names() -> list[str]:
    return [name for name in layout_of().part_of if name not in (*_DERIVED, "settings")]


def read_config(file: Path, start: SweepConfig) -> SweepConfig:
    """What the file says, over what `start` does; ValueError names the key that is wrong."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{file}: cannot be read as TOML: {error}") from None
    layout, fields, vary = layout_of(), dict[str, Any](), dict[str, list[Any]]()
    tables = [key for key, value in content.items() if isinstance(value, dict)]
    for key in content:
        if (key in tables) != (key in (*layout.parts, "settings")):
            raise _unknown(file, "", key)
    entries = [("", key, value) for key, value in content.items() if key not in tables]
    entries += [(table, *entry) for table in tables for entry in content[table].items()]
    for table, name, value in entries:
        if table == "settings":
            (vary if isinstance(value, list) else fields)[name] = value
            continue
        if name not in field_names() or layout.part_of[name] != table:
            raise _unknown(file, table, name)
        hint = layout.hints[name]
        listed = value if isinstance(value, list) else []
        one = get_origin(hint) is tuple and not any(isinstance(each, list) for each in listed)
        try:
            if isinstance(value, list) and not one:
                vary[name] = [check_value(name, hint, each) for each in value]
            else:
                fields[name] = check_value(name, hint, value)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{file}: {error}") from None
        if vary.get(name) == []:
            raise ValueError(f"{file}: {name} has no value")
    try:
        return start.with_fields(fields, vary)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None


def _unknown(file: Path, table: str, name: str) -> ValueError:
    part_of = layout_of().part_of
    places = {f"[{part}] {each}" if part else each: each for each, part in part_of.items()}
    places = {place: each for place, each in places.items() if each not in _DERIVED}
    places |= {f"[{part}]": part for part in (*layout_of().parts, "settings")}
    where = f"[{table}] {name}" if table else name
    near = difflib.get_close_matches(name, places.values(), n=1)
    place = next((place for place, each in places.items() if each in near), None)
    hint = f" Did you mean {place!r}?" if place else ""
    return ValueError(f"{file}: unknown key {where!r}.{hint}")


def write_config(config: SweepConfig, usual: Spec) -> str:
    """TOML that `read_config` reads back; what is as in `usual` stands there as a comment."""
    layout, own, known = layout_of(), config.base.flat(), usual.flat()
    lines: list[str] = []
    for part in ("", *layout.parts):
        lines += ["", f"[{part}]"] if part else []
        for name in field_names():
            if layout.part_of[name] != part:
                continue
            value = config.vary.get(name, own[name])
            if value is None and name == "env":
                value = "none"
            if value is None:
                lines.append(f"# {name} =")
            else:
                mark = "# " if name not in config.vary and own[name] == known[name] else ""
                lines.append(f"{mark}{name} = {json.dumps(value, ensure_ascii=False)}")
    settings = {**config.base.settings, **{k: v for k, v in config.vary.items() if k not in own}}
    lines += ["", "[settings]"]
    lines += [f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in settings.items()]
    return "\n".join(lines) + "\n"


def parse_values(words: Sequence[str], flag: str, fields: bool) -> dict[str, list[Any]]:
    """NAME=VALUE or NAME=VALUE,VALUE, of settings or of fields."""
    parsed: dict[str, list[Any]] = {}
    hints = layout_of().hints
    for item in words:
        name, equals, values = item.partition("=")
        if not equals or not name or not values:
            raise ValueError(f"{flag} takes NAME=VALUE or NAME=VALUE,VALUE; got {item!r}")
        if not fields:
            parsed[name] = [_number(value) for value in values.split(",")]
            continue
        name = name.replace("-", "_")
        if name not in field_names():
            hint = did_you_mean(name, field_names())
            raise ValueError(f"{flag}: no field {name!r}.{hint} Settings go to --set")
        parsed[name] = [_typed(name, hints[name], value) for value in values.split(",")]
    return parsed


def _typed(name: str, hint: Any, text: str) -> Any:
    """A word of the command line: 64x64 of a tuple, true of a choice, 0.9 of a number."""
    if get_origin(hint) is tuple:
        return check_value(name, hint, [_number(each) for each in text.split("x")])
    kinds = {hint, *get_args(hint)}
    if bool in kinds and text.lower() in ("true", "false"):
        return text.lower() == "true"
    return check_value(name, hint, _number(text) if kinds & {int, float} else text)


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
