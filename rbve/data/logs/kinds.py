"""The types of a text file's columns, from what stands in all of their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbve.data.logs.log import Report
from rbve.data.logs.options import Options
from rbve.data.logs.roles import Roles

# Unquoted in a file, they say that a value is missing.
NULLS = ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "-nan", "NULL", "null"]
NUMBER = r"^[-+]?((\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|(?i:inf|infinity|nan))$"
BOOLS = pa.array(["true", "false"])
TIMES = (pa.timestamp("us"), pa.timestamp("us", "UTC"))  # without and with a zone


class Found(NamedTuple):
    row: int
    text: str


@dataclass
class Seen:
    """What a column held so far."""

    whole: bool = True  # all numbers are whole and fit 64 bits
    bools: bool = True  # all words are "true" or "false"
    times: tuple[pa.DataType, ...] = TIMES  # those that ISO 8601 would write all words of
    number: Found | None = None  # the first of them
    word: Found | None = None

    def add(self, column: pa.Array, first: int) -> None:
        texts = cleaned(column)
        if texts.null_count == len(texts):
            return
        # Casts that fail are slow, so none is tried that failed before.
        self.whole = self.whole and self.word is None and castable(texts, pa.int64())
        if self.whole or (self.word is None and castable(texts, pa.float64())):
            if self.number is None:
                self.number = found(texts, pc.is_valid(texts), first)
            return
        words = pc.unique(texts).drop_null()
        numeric = pc.match_substring_regex(words, NUMBER)
        if self.number is None and pc.any(numeric).as_py():
            self.number = found(texts, pc.is_in(texts, words.filter(numeric)), first)
        words = words.filter(pc.invert(numeric))
        if self.word is None:
            self.word = found(texts, pc.is_in(texts, words), first)
        self.bools &= bool(pc.all(pc.is_in(pc.utf8_lower(words), BOOLS)).as_py())
        self.times = tuple(kind for kind in self.times if castable(words, kind))


def found(texts: pa.Array, matching: pa.Array, first: int) -> Found:
    row = int(np.argmax(matching.to_numpy(zero_copy_only=False)))
    return Found(first + row, texts[row].as_py())


def cleaned(column: pa.Array) -> pa.Array:
    """Without blanks around texts; missing where nothing is left, or a word that says so."""
    column = pc.ascii_trim_whitespace(column)
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)


def castable(texts: pa.Array, kind: pa.DataType) -> bool:
    """A sample goes first: every text that is no such value costs time."""
    try:
        texts[:8].cast(kind)
        texts.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Texts as the type settled on; what is no such value counts as missing."""
    texts = cleaned(column)
    if kind == pa.string():
        return texts
    if kind == pa.bool_():
        return pc.equal(pc.utf8_lower(texts), "true")
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        pass
    if kind in TIMES:
        return pa.nulls(len(texts), kind)
    plain = pc.match_substring_regex(texts, NUMBER)
    return pc.if_else(plain, texts, pa.scalar(None, pa.string())).cast(kind)


class Settler:
    def __init__(self, roles: Roles, options: Options, report: Report) -> None:
        self.roles, self.options, self.report = roles, options, report
        self.flags = {
            *(roles.terminated, roles.truncated, roles.complete),
            *(roles.legal + roles.next_legal),
        }
        self.amounts = {roles.reward, roles.propensity, roles.episode_return}

    def type(self, name: str, seen: Seen) -> pa.DataType:
        """Roles come first: a column may have to be a number whatever it holds."""
        number = pa.int64() if seen.whole else pa.float64()
        if name == self.roles.episode:
            return number if seen.whole and seen.word is None else pa.string()
        if name in self.flags:
            return pa.string()  # told apart word by word
        if name == self.roles.time:
            if seen.number is None and seen.word is not None and seen.times:
                return seen.times[0]
            return self.amount(name, seen, number, "a number, or a date as in 2024-05-31 14:00")
        if name in self.amounts:
            return self.amount(name, seen, pa.float64(), "a number")
        if seen.word is None:
            return number
        if seen.number is not None and not self.declared(name):
            self.mixed(name, seen)
        return pa.bool_() if seen.bools and seen.number is None else pa.string()

    def declared(self, name: str) -> bool:
        """Whether the user said that the column holds names, numbers among them."""
        categorical = dict(
            zip(self.roles.next_observation, self.roles.observation, strict=False)
        ).get(name, name)
        return categorical in self.options.categorical or (
            bool(self.options.actions) and name in self.roles.decisions
        )

    def amount(self, name: str, seen: Seen, kind: pa.DataType, needed: str) -> pa.DataType:
        if seen.word is not None:
            self.report.row(
                "mixed types",
                seen.word.row,
                f"column {name!r} holds {seen.word.text[:40]!r}, and needs {needed}"
                f"{decimal_comma(seen.word.text)}",
            )
        return kind

    def mixed(self, name: str, seen: Seen) -> None:
        if seen.word is None or seen.number is None:
            return
        remedy = (
            "declare the set with --actions"
            if name in self.roles.decisions
            else f"pass --categorical {name}"
        )
        self.report.row(
            "mixed types",
            seen.word.row,
            f"column {name!r} holds {seen.word.text[:40]!r}, and a number "
            f"({seen.number.text}) in {self.report.place(seen.number.row)}; correct it, or, if "
            f"these are names, {remedy}{decimal_comma(seen.word.text)}",
        )


def decimal_comma(text: str) -> str:
    if text.count(",") == 1 and text.replace(",", "").lstrip("+-").isdigit():
        return " (decimals need a point, not a comma)"
    return ""
