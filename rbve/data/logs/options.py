"""Which column of a log is what, from flags or a small TOML."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from rbve.data.features import Missing
from rbve.registry import did_you_mean

Ends = Literal["terminated", "truncated", "each"]
EXAMPLE = datetime(2024, 5, 31, 14, 30, tzinfo=UTC)


@dataclass(frozen=True)
class Options:
    """Columns by name. Left out, a column of the option's own name is taken where there is one.

    An empty name says that the log has no such column.
    """

    episode: str | None = None  # column of episode ids
    # Column that rises within an episode; orders rows of episodes that do not stand together.
    time: str | None = None
    action: str | None = None  # column of decisions: ids or names; empty in a final row
    reward: str | None = None  # column of rewards, each in the row of its decision
    # Columns the decision saw: names, prefixes ("obs_*"), or one column of arrays. Default: every
    # column without another use.
    observation: tuple[str, ...] = ()
    terminated: str | None = None  # flag column: the episode truly ended with this decision
    truncated: str | None = None  # flag column: the record stops here, the episode went on
    # Allowed actions: a column of arrays of 0/1, or a prefix ("legal_*") with a column per action.
    legal: str | None = None
    propensity: str | None = None  # column: probability with which the logged action was chosen
    executed: str | None = None  # column: the action carried out, where it may differ
    # Columns of what came after the decision, in the order of --observation. Without episodes, each
    # row is then a transition of its own.
    next_observation: tuple[str, ...] = ()
    next_action: str | None = None  # column: the decision after this one, in lone transitions
    next_legal: str | None = None  # allowed actions after this decision, in lone transitions
    complete: str | None = None  # flag column: 0 marks a piece cut out of a longer episode
    episode_return: str | None = None  # column: sum of rewards of the whole episode
    categorical: tuple[str, ...] = ()  # columns of numbers that are codes, not quantities
    actions: tuple[str, ...] = ()  # the action set, in the order of its ids; default: what occurs
    # How episodes end in a log without end flags (default: terminated). each: every row is an
    # episode of one decision, as in a bandit's log.
    ends: Ends | None = None
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
        if self.ends not in (None, *get_args(Ends)):
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
            check_format(self.time_format)

    @property
    def sign(self) -> str | None:
        """The delimiter itself; None where none is given, or no single sign."""
        sign = {"tab": "\t", "\\t": "\t"}.get(self.delimiter or "", self.delimiter or "")
        return sign if len(sign) == 1 and sign.isascii() and sign not in '"\r\n\0' else None

    @property
    def unflagged_ends(self) -> Literal["terminated", "truncated"]:
        return "truncated" if self.ends == "truncated" else "terminated"


def check_format(text: str) -> None:
    """Refuse what no time can be read with."""
    try:
        datetime.strptime(EXAMPLE.strftime(text), text)
        fits = "%" in text.replace("%%", "")
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            "time_format must say how times are written, as in '%d.%m.%Y %H:%M' (day, month, year, "
            f"hour, minute); got {text!r}"
        )


def from_toml(path: str | Path) -> Options:
    """Options from a file of `option = "column"` or `option = ["column", ...]` lines."""
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:  # not UTF-8, not TOML
        raise ValueError(f"{path}: not a TOML file ({error})") from None
    known = {field.name: field.type for field in fields(Options)}
    given: dict[str, Any] = {}
    for name, value in content.items():
        if name not in known:
            raise ValueError(
                f"{path}: unknown option {name!r}.{did_you_mean(name, known)} Known: "
                f"{', '.join(known)}"
            )
        given[name] = listed(value) if "tuple" in str(known[name]) else value
        wanted, kind = wanted_of(str(known[name]))
        if type(given[name]) not in wanted:
            raise ValueError(f"{path}: option {name!r} takes {kind}; got {value!r}")
    try:
        return Options(**given)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def wanted_of(hint: str) -> tuple[tuple[type, ...], str]:
    """Types a field takes from a file, and their name."""
    if "tuple" in hint:
        return (tuple,), "a list of names"
    if hint in ("int", "float"):
        return ((int,) if hint == "int" else (int, float)), "a number"
    return (str,), "one name in quotes"


def listed(value: Any) -> Any:
    """A list of names as a tuple; one name alone may stand for a list of one."""
    values = value if isinstance(value, list) else [value]
    if all(type(each) in (str, int) for each in values):
        return tuple(map(str, values))
    return value
