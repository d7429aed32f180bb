"""What a user says about a log: which column is what, and how values are read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

from rbve.data.features import Missing
from rbve.data.logs.roles import LogColumns

_Ends = Literal["terminated", "truncated", "each"]
_EXAMPLE = datetime(2024, 5, 31, 14, 30, tzinfo=UTC)


@dataclass(frozen=True)
class LogOptions(LogColumns):
    """Columns by name. Left out, a column of the option's own name is taken where there is one.

    An empty name says that the log has no such column.
    """

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
