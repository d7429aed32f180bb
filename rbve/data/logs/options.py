"""What a user says about a log: which column is what, how to read it; from flags or a TOML file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from rbve.data.features import Missing
from rbve.data.logs.roles import LogColumns
from rbve.registry import did_you_mean

_Ends = Literal["terminated", "truncated", "each"]
_EXAMPLE = datetime(2024, 5, 31, 14, 30, tzinfo=UTC)


@dataclass(frozen=True)
class LogOptions(LogColumns):
    """The columns of a log by role (LogColumns), and how their values are read."""

    categorical: tuple[str, ...] = ()  # columns of numbers that are codes, not quantities
    actions: tuple[str, ...] = ()  # the action set, in the order of its ids; default: what occurs
    # How episodes end in a log without end flags (default: terminated). each: every row is an
    # episode of one decision, as in a bandit's log.
    ends: _Ends | None = None
    # Of a CSV: what separates fields (a sign, or "tab"). Default: the one of , ; | and tab that the
    # header and the first rows agree on.
    delimiter: str | None = None
    decimal: str | None = None  # of a CSV: the sign before decimals, "." (default) or ","
    # Of a CSV: how --time is written, as in "%d.%m.%Y %H:%M". Default: numbers, or ISO 8601 as in
    # 2024-05-31 14:00.
    time_format: str | None = None
    # Empty cells of the observation, NA and NaN. error: refused. mean: a number counts as its
    # column's mean, a category as none of its levels. indicator: so, and the network is told by one
    # more input for each column with gaps. The policy does the same.
    missing: Missing = "error"
    # Categories in fewer rows than this become one, "(other)", and so do those a policy meets that
    # are not in the data. 0: none do, and a policy refuses them.
    rare: int = 0
    clip: float = 10.0  # deviations at which standardised numbers are cut; inf: they are not

    def __post_init__(self) -> None:
        if self.ends not in (None, *get_args(_Ends)):
            raise ValueError(f"ends must be 'terminated', 'truncated' or 'each'; got {self.ends!r}")
        if self.missing not in get_args(Missing):
            raise ValueError(
                f"missing must be 'error', 'mean' or 'indicator'; got {self.missing!r}"
            )
        if self.rare < 0:
            raise ValueError(f"rare must be 0 or a number of rows; got {self.rare}")
        if not self.clip > 0:
            raise ValueError(f"clip must be a positive number of deviations; got {self.clip}")
        if len(set(self.actions)) != len(self.actions):
            raise ValueError(f"actions must be different names; got {', '.join(self.actions)}")
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"decimal must be '.' or ','; got {self.decimal!r}")
        if self.delimiter is not None:
            if self.sign is None:
                raise ValueError(
                    "delimiter must be one sign such as ';', or 'tab', and neither a quote nor a "
                    f"line break; got {self.delimiter!r}"
                )
            if self.sign == self.decimal:
                raise ValueError(f"delimiter and decimal cannot both be {self.decimal!r}")
        if self.time_format is not None:
            _check_time_format(self.time_format)

    @property
    def sign(self) -> str | None:
        """The delimiter itself; None where none is named, or no single sign."""
        sign = {"tab": "\t", "\\t": "\t"}.get(self.delimiter or "", self.delimiter or "")
        return sign if len(sign) == 1 and sign.isascii() and sign not in '"\r\n\0' else None

    @property
    def unflagged_ends(self) -> Literal["terminated", "truncated"]:
        """What episodes without an end flag count as."""
        return "truncated" if self.ends == "truncated" else "terminated"


def _check_time_format(text: str) -> None:
    """Refuse what no time can be read with."""
    try:
        datetime.strptime(_EXAMPLE.strftime(text), text)
        fits = "%" in text.replace("%%", "")
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            "time_format must say how times are written, as in '%d.%m.%Y %H:%M' (day, month, year, "
            f"hour, minute); got {text!r}"
        )


def from_toml(path: str | Path) -> LogOptions:
    """Options from a file of `option = "column"` or `option = ["column", ...]` lines.

    Args:
        path: The TOML file.

    Returns:
        The options; what the file does not name has its default.

    Raises:
        ValueError: The file cannot be read, or names an unknown option or a value of a wrong type.
    """
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:  # not UTF-8, not TOML
        raise ValueError(f"{path}: not a TOML file ({error})") from None
    known = {field.name: str(field.type) for field in fields(LogOptions)}
    values: dict[str, Any] = {}
    for name, value in content.items():
        if name not in known:
            raise ValueError(
                f"{path}: unknown option {name!r}.{did_you_mean(name, known)} Known: "
                f"{', '.join(known)}"
            )
        values[name] = _listed(value) if "tuple" in known[name] else value
        types, kind = _types_of(known[name])
        if type(values[name]) not in types:
            raise ValueError(f"{path}: option {name!r} takes {kind}; got {value!r}")
    try:
        return LogOptions(**values)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _types_of(hint: str) -> tuple[tuple[type, ...], str]:
    """Types a field takes from a file, and their name."""
    if "tuple" in hint:
        return (tuple,), "a list of names"
    if hint in ("int", "float"):
        return ((int,) if hint == "int" else (int, float)), "a number"
    return (str,), "one name in quotes"


def _listed(value: Any) -> Any:
    """A list of names as a tuple; one name alone may stand for a list of one."""
    values = value if isinstance(value, list) else [value]
    if all(type(each) in (str, int) for each in values):
        return tuple(map(str, values))
    return value
