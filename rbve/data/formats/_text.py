"""Columns of a text file: what stands in all of their rows, and the types that follow from it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbve.data.logs.roles import Kind, LogOptions, Roles
from rbve.data.source import Report

_NUMBER = r"^[-+]?((\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|(?i:inf|infinity|nan))$"
_BOOLS = pa.array(["true", "false"])
_TIMES = (pa.timestamp("us"), pa.timestamp("us", "UTC"))  # without and with a zone
_DAYS = ("%d{0}%m{0}%Y", "%m{0}%d{0}%Y", "%Y{0}%m{0}%d", "%d{0}%m{0}%y", "%m{0}%d{0}%y")
_DATES = (*(day.format(sign) for day in _DAYS for sign in "./-"), "%d %b %Y", "%d-%b-%Y")
_HOURS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p")
_FORMATS = tuple(date + hour for date in _DATES for hour in _HOURS)
_THOUSANDS = r"^[-+]?\d{1,3}([.,' \u00a0]\d{3})+([.,]\d+)?$"


class _Cell(NamedTuple):
    row: int
    text: str


@dataclass
class TextColumn:
    """What a column of texts held so far, and the types that could read all of it."""

    decimal: str = "."  # the sign before decimals
    format: str | None = None  # all texts are times written so
    whole: bool = True  # all numbers are whole and fit 64 bits
    bools: bool = True  # all words are "true" or "false"
    plus: bool = False  # some numbers have a sign "+"
    swapped: bool = True  # all words are numbers with the other decimal sign
    times: tuple[pa.DataType, ...] = _TIMES  # those that ISO 8601 would write all words of
    formats: tuple[str, ...] = _FORMATS  # that would read all words, if ISO 8601 would not
    number: _Cell | None = None  # the first of them
    word: _Cell | None = None

    def add(self, texts: pa.Array, first: int) -> pa.Array | None:
        """The block of cleaned texts from row `first` on as numbers, None once that fails."""
        if self.format is not None:
            wrong = pc.and_(pc.is_valid(texts), pc.is_null(times(texts, self.format)))
            if self.word is None and pc.any(wrong).as_py():
                self.word = _first(texts, wrong, first)
                self.formats = _fitting(pc.unique(texts).drop_null(), _FORMATS)
            return None
        if self.word is None:
            # Casts that fail are slow, so none is tried that failed before.
            numbers = _pointed(texts, self.decimal)
            values = _numbers(numbers, pa.int64()) if self.whole else None
            self.whole = values is not None
            values = _numbers(numbers, pa.float64()) if values is None else values
            if values is not None:
                if self.number is None and texts.null_count < len(texts):
                    self.number = _first(texts, pc.is_valid(texts), first)
                return values
        if self._add_words(texts, first):
            return None
        self.plus = True
        return self.cast(texts, pa.float64()) if self.word is None else None

    def _add_words(self, texts: pa.Array, first: int) -> bool:
        """Whether there is one, and not only numbers that Arrow does not read."""
        words = pc.unique(texts).drop_null()
        numeric = pc.match_substring_regex(_pointed(words, self.decimal), _NUMBER)
        if self.number is None and pc.any(numeric).as_py():
            self.number = _first(texts, pc.is_in(texts, words.filter(numeric)), first)
        words = words.filter(pc.invert(numeric))
        if not len(words):
            return False
        if self.word is None:
            self.word = _first(texts, pc.is_in(texts, words), first)
        self.bools &= pc.all(pc.is_in(pc.utf8_lower(words), _BOOLS)).as_py()
        other = _pointed(words, "," if self.decimal == "." else ".")
        self.swapped = self.swapped and pc.all(pc.match_substring_regex(other, _NUMBER)).as_py()
        self.times = tuple(kind for kind in self.times if _numbers(words, kind) is not None)
        if not self.times:
            self.formats = _fitting(words, self.formats)
        return True

    def cast(self, texts: pa.Array, kind: pa.DataType | None) -> pa.Array:
        """Cleaned texts as the type settled on, if there is one."""
        if kind is None or kind == pa.string():
            return texts
        if kind == pa.bool_():
            return pc.equal(pc.utf8_lower(texts), "true")
        if kind in _TIMES:
            return texts.cast(kind) if self.format is None else times(texts, self.format)
        numbers = _pointed(texts, self.decimal)
        numbers = pc.replace_substring_regex(numbers, r"^\+", "") if self.plus else numbers
        return numbers.cast(kind)


def _first(texts: pa.Array, matching: pa.Array, first: int) -> _Cell:
    row = int(np.argmax(matching.to_numpy(zero_copy_only=False)))
    return _Cell(first + row, texts[row].as_py())


def cleaned(column: pa.Array) -> pa.Array:
    """Without blanks around texts; missing where nothing is left, or a word that says so."""
    column = pc.ascii_trim_whitespace(column)
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)


def _pointed(texts: pa.Array, decimal: str) -> pa.Array:
    """With a point before decimals, and a comma where a point was, which makes it no number."""
    if decimal == ".":
        return texts
    for old, new in ((".", "\0"), (",", "."), ("\0", ",")):
        texts = pc.replace_substring(texts, old, new)
    return texts


def _numbers(texts: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Texts as values, None where one is none. A sample goes first: failures cost time."""
    try:
        texts[:8].cast(kind)
        return texts.cast(kind)
    except pa.ArrowInvalid:
        return None


def _time_type(format: str) -> pa.DataType:
    return pa.timestamp("us", "UTC" if "%z" in format else None)


def times(texts: pa.Array, format: str) -> pa.Array:
    """Texts as times; missing where one is not written so.

    Arrow is fast, but takes the 31st of February for the 2nd of March and '24' for a year of four
    digits, and does not know %f. So what may be wrong is read again by Python.
    """
    kind = _time_type(format)
    values = pc.strptime(texts, format=format, unit="us", error_is_null=True).cast(kind)
    plain = values.cast(pa.int64()).cast(pa.timestamp("us"))
    doubtful = pc.or_(pc.less_equal(pc.day(plain), 3), pc.less(pc.year(plain), 1000))
    doubtful = pc.and_(pc.is_valid(texts), doubtful.fill_null(True))
    again = pc.unique(texts.filter(doubtful))
    if not len(again):
        return values
    read_again = pa.array([_parsed(text, format) for text in again.to_pylist()], kind)
    return pc.if_else(doubtful, read_again.take(pc.index_in(texts, again)), values)


def _parsed(text: str, format: str) -> datetime | None:
    try:
        return datetime.strptime(text, format)
    except ValueError:
        return None


def _fitting(texts: pa.Array, formats: Iterable[str]) -> tuple[str, ...]:
    """Those formats that all texts are written in; a sample goes first."""
    for some in (texts[:8], texts):
        formats = [format for format in formats if not times(some, format).null_count]
    return tuple(formats)


def _advice(formats: tuple[str, ...]) -> str:
    """Which option would read times that all of these formats fit."""
    if not formats:
        return "say how it is written with --time-format, as in --time-format '%d.%m.%Y %H:%M'"
    options = [f"--time-format '{format}'" for format in formats[:2]]
    if len(options) == 1:
        return f"pass {options[0]}"
    first = ["the day" if f.startswith("%d") else "the month" for f in formats[:2]]
    return f"pass {options[0]} if {first[0]} comes first, {options[1]} if {first[1]} does"


def settled_types(
    texts: dict[str, TextColumn], roles: Roles, options: LogOptions, report: Report
) -> dict[str, pa.DataType]:
    """Of the columns in use, by what they hold and what their roles need."""
    # A column in two roles is what the first of these kinds needs.
    kinds: tuple[Kind, ...] = ("id", "flag", "mask", "time", "amount", "decision")
    kind_of = {column: kind for kind in reversed(kinds) for _, column in roles.of_kind(kind)}
    declared_as = dict(zip(roles["next_observation"], roles["observation"], strict=False))
    types: dict[str, pa.DataType] = {}
    problems: list[str] = []
    for name in roles.in_use:
        kind, column = kind_of.get(name), texts[name]
        # Whether the user said that the column holds names, numbers among them.
        named = declared_as.get(name, name) in options.categorical
        named = named or bool(options.actions and kind == "decision")
        types[name], problem = _type_of(name, column, kind, named, report)
        if problem and column.word is not None:
            place, text = report.place(column.word.row), column.word.text[:40]
            problems.append(f"{place}: column {name!r} holds {text!r}, {problem}")
    if problems:
        report.unreadable("mixed types", "; ".join(problems))
    report.stop()
    return types


def _type_of(
    name: str, column: TextColumn, kind: Kind | None, named: bool, report: Report
) -> tuple[pa.DataType, str]:
    """(the type, what to say of the column's first word if it does not suit)."""
    number, word = pa.int64() if column.whole else pa.float64(), column.word
    if kind == "id":
        return number if column.whole and word is None else pa.string(), ""
    if kind in ("flag", "mask"):
        return pa.string(), ""  # told apart word by word
    if column.format is not None:
        other = _advice(column.formats) if column.formats else "correct either"
        return (
            _time_type(column.format),
            f"which is not a time as in '{column.format}'; {other}",
        )
    if word is None:
        return pa.float64() if kind == "amount" else number, ""
    amend = _amend(word.text, column.decimal)
    if kind == "amount":
        return pa.float64(), f"and needs a number; {amend}"
    if kind == "time":
        if column.number is None and column.times:
            return column.times[0], ""
        advice = _advice(() if column.times else column.formats)
        needs = "and needs a number, or a date as in 2024-05-31 14:00 in all rows"
        return number, f"{needs}; if these are times, {advice}"
    problem, categorical = "", f"--categorical {name}"
    # Words that may be a slip, or numbers or dates of another spelling.
    if not named and column.number is not None:
        at = f"and a number ({column.number.text}) in {report.place(column.number.row)}"
        names = "declare the set with --actions" if kind == "decision" else f"pass {categorical}"
        problem = f"{at}; {amend}, or, if these are names, {names}"
    elif named or kind == "decision":
        pass
    elif column.times or column.formats:
        written = "" if column.times else f" ({_advice(column.formats)})"
        problem = (
            f"a date, which is neither a quantity nor a category; pass --time {name} if it "
            f"orders the rows{written}, or leave it out of --observation, or pass "
            f"{categorical} if these are names"
        )
    elif column.swapped:
        problem = f"which is no number as it stands; {amend}, or {categorical} if these are names"
    return pa.bool_() if column.bools and column.number is None else pa.string(), problem


def _amend(text: str, decimal: str) -> str:
    """What would make a number of it."""
    other = "," if decimal == "." else "."
    number = re.match(_NUMBER, _pointed(pa.array([text]), other)[0].as_py())
    if not re.match(_THOUSANDS, text):
        return f"pass --decimal {other} to read it" if number else "correct it"
    export = "thousands separators are not read: export the file without them"
    decimals = f"pass --decimal {other} if {other!r} stands before decimals ({export})"
    return decimals if number else export
