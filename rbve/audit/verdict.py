"""Findings, and the verdict they add up to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rbve.data.source import Fault

Verdict = Literal["fine", "look", "stop"]

WORDS: dict[str, str] = {"fine": "fine", "look": "look at this", "stop": "do not train"}
# For scripts; 1 and 2 stay what shells and this program use for errors.
EXIT_CODES: dict[str, int] = {"fine": 0, "look": 3, "stop": 4}
_NAMED = 6  # columns or actions listed by name


@dataclass(frozen=True)
class Finding:
    name: str  # short, the same words each time
    seen: str  # numbers, and where
    why: str  # one clause
    remedy: str  # a command or an action
    level: Literal["look", "stop"] = "look"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def from_faults(faults: Sequence[Fault]) -> Iterable[Finding]:
    """What a reader met. It would refuse each of these, so none may train."""
    for kind in dict.fromkeys(fault.kind for fault in faults):
        same = [fault.text for fault in faults if fault.kind == kind]
        more = f" ({len(same) - 1:,} more like it)" if len(same) > 1 else ""
        yield Finding(
            kind,
            f"{same[0]}{more}",
            "the reader refuses such input, since it would train silently wrong",
            "change what the message says, then read the file again",
            level="stop",
        )
