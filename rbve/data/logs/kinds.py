"""The types of a text file's columns, from what stands in all of their rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbve.data.logs.log import Report
from rbve.data.logs.moments import FORMATS, advice, fitting, moments, type_of
from rbve.data.logs.options import Options
from rbve.data.logs.roles import Roles

NUMBER = r"^[-+]?((\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|(?i:inf|infinity|nan))$"
BOOLS = pa.array(["true", "false"])
THOUSANDS = r"^[-+]?\d{1,3}([.,' \u00a0]\d{3})+([.,]\d+)?$"
TIMES = (pa.timestamp("us"), pa.timestamp("us", "UTC"))  # without and with a zone


class Found(NamedTuple):
    row: int
    text: str


@dataclass
class Seen:
    """What a column held so far."""

    decimal: str = "."  # the sign before decimals
    format: str | None = None  # all texts are times written so
    whole: bool = True  # all numbers are whole and fit 64 bits
    bools: bool = True  # all words are "true" or "false"
    swapped: bool = True  # all words are numbers with the other decimal sign
    times: tuple[pa.DataType, ...] = TIMES  # those that ISO 8601 would write all words of
    formats: tuple[str, ...] = FORMATS  # that would read all words, if ISO 8601 would not
    number: Found | None = None  # the first of them
    word: Found | None = None

    def add(self, column: pa.Array, first: int) -> None:
        texts = cleaned(column)
        if texts.null_count == len(texts):
            return
        if self.format is not None:
            self.add_times(texts, first)
            return
        numbers = pointed(texts, self.decimal)
        # Casts that fail are slow, so none is tried that failed before.
        self.whole = self.whole and self.word is None and castable(numbers, pa.int64())
        if self.whole or (self.word is None and castable(numbers, pa.float64())):
            if self.number is None:
                self.number = found(texts, pc.is_valid(texts), first)
            return
        words = pc.unique(texts).drop_null()
        numeric = pc.match_substring_regex(pointed(words, self.decimal), NUMBER)
        if self.number is None and pc.any(numeric).as_py():
            self.number = found(texts, pc.is_in(texts, words.filter(numeric)), first)
        words = words.filter(pc.invert(numeric))
        if not len(words):
            return
        if self.word is None:
            self.word = found(texts, pc.is_in(texts, words), first)
        self.bools &= bool(pc.all(pc.is_in(pc.utf8_lower(words), BOOLS)).as_py())
        other = pointed(words, "," if self.decimal == "." else ".")
        self.swapped = self.swapped and pc.all(pc.match_substring_regex(other, NUMBER)).as_py()
        self.times = tuple(kind for kind in self.times if castable(words, kind))
        if not self.times:
            self.formats = fitting(words, self.formats)

    def add_times(self, texts: pa.Array, first: int) -> None:
        if self.word is None:
            wrong = pc.and_(pc.is_valid(texts), pc.is_null(moments(texts, self.format or "")))
            if pc.any(wrong).as_py():
                self.word = found(texts, wrong, first)
                self.formats = fitting(pc.unique(texts).drop_null(), FORMATS)


def found(texts: pa.Array, matching: pa.Array, first: int) -> Found:
    row = int(np.argmax(matching.to_numpy(zero_copy_only=False)))
    return Found(first + row, texts[row].as_py())


def cleaned(column: pa.Array) -> pa.Array:
    """Without blanks around texts; missing where nothing is left, or a word that says so."""
    column = pc.ascii_trim_whitespace(column)
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)


def pointed(texts: pa.Array, decimal: str) -> pa.Array:
    """With a point before decimals, and a comma where a point was, which makes it no number."""
    if decimal == ".":
        return texts
    for old, new in ((".", "\0"), (",", "."), ("\0", ",")):
        texts = pc.replace_substring(texts, old, new)
    return texts


def castable(texts: pa.Array, kind: pa.DataType) -> bool:
    """A sample goes first: every text that is no such value costs time."""
    try:
        texts[:8].cast(kind)
        texts.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def cast(column: pa.Array, kind: pa.DataType, decimal: str, format: str | None) -> pa.Array:
    """Texts as the type settled on."""
    texts = cleaned(column)
    if kind == pa.string():
        return texts
    if kind == pa.bool_():
        return pc.equal(pc.utf8_lower(texts), "true")
    if kind in TIMES:
        return texts.cast(kind) if format is None else moments(texts, format)
    return pointed(texts, decimal).cast(kind)


class Settler:
    """The types of columns; what cannot be read as its role needs it is collected in `unread`."""

    def __init__(self, roles: Roles, options: Options, report: Report) -> None:
        self.roles, self.options, self.report = roles, options, report
        self.unread: list[str] = []
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
            return self.time(name, seen, number)
        if name in self.amounts:
            if seen.word is not None:
                self.refuse(name, seen.word, f"and needs a number; {self.amend(seen.word.text)}")
            return pa.float64()
        if seen.word is None:
            return number
        if not self.declared(name):
            if seen.number is not None:
                self.mixed(name, seen, seen.number)
            elif name not in self.roles.decisions and (seen.times or seen.formats):
                written = "" if seen.times else f" ({advice(seen.formats)})"
                self.refuse(
                    name,
                    seen.word,
                    f"a date, which is neither a quantity nor a category; pass --time {name} if it "
                    f"orders the rows{written}, or leave it out of --observation, or pass "
                    f"--categorical {name} if these are names",
                )
            elif seen.swapped and name not in self.roles.decisions:
                self.refuse(
                    name,
                    seen.word,
                    f"which is no number as it stands; {self.amend(seen.word.text)}, or "
                    f"--categorical {name} if these are names",
                )
        return pa.bool_() if seen.bools and seen.number is None else pa.string()

    def time(self, name: str, seen: Seen, number: pa.DataType) -> pa.DataType:
        format = self.options.time_format
        if format is not None:
            if seen.word is not None:
                other = f"; {advice(seen.formats)}" if seen.formats else "; correct either"
                self.refuse(name, seen.word, f"which is not a time as in '{format}'{other}")
            return type_of(format)
        if seen.word is None:
            return number
        if seen.number is None and seen.times:
            return seen.times[0]
        self.refuse(
            name,
            seen.word,
            "and needs a number, or a date as in 2024-05-31 14:00 in all rows; if these are times, "
            f"{advice(() if seen.times else seen.formats)}",
        )
        return number

    def declared(self, name: str) -> bool:
        """Whether the user said that the column holds names, numbers among them."""
        categorical = dict(
            zip(self.roles.next_observation, self.roles.observation, strict=False)
        ).get(name, name)
        return categorical in self.options.categorical or (
            bool(self.options.actions) and name in self.roles.decisions
        )

    def mixed(self, name: str, seen: Seen, number: Found) -> None:
        if seen.word is None:
            return
        remedy = (
            "declare the set with --actions"
            if name in self.roles.decisions
            else f"pass --categorical {name}"
        )
        self.refuse(
            name,
            seen.word,
            f"and a number ({number.text}) in {self.report.place(number.row)}; "
            f"{self.amend(seen.word.text)}, or, if these are names, {remedy}",
        )

    def refuse(self, name: str, at: Found, text: str) -> None:
        place = self.report.place(at.row)
        self.unread.append(f"{place}: column {name!r} holds {at.text[:40]!r}, {text}")

    def amend(self, text: str) -> str:
        """What would make a number of it."""
        decimal = self.options.decimal or "."
        other = "," if decimal == "." else "."
        number = re.match(NUMBER, pointed(pa.array([text]), other)[0].as_py())
        if re.match(THOUSANDS, text):
            export = "thousands separators are not read: export the file without them"
            if number:
                return f"pass --decimal {other} if {other!r} stands before decimals ({export})"
            return export
        return f"pass --decimal {other} to read it" if number else "correct it"
