"""Times written in ways of their own: read by a format, and the formats that would read them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

DAYS = ("%d{0}%m{0}%Y", "%m{0}%d{0}%Y", "%Y{0}%m{0}%d", "%d{0}%m{0}%y", "%m{0}%d{0}%y")
DATES = (*(day.format(sign) for day in DAYS for sign in "./-"), "%d %b %Y", "%d-%b-%Y")
HOURS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p")
FORMATS = tuple(date + hour for date in DATES for hour in HOURS)
START = datetime(1970, 1, 1, tzinfo=UTC)


def type_of(format: str) -> pa.DataType:
    return pa.timestamp("us", "UTC" if "%z" in format else None)


def moments(texts: pa.Array, format: str) -> pa.Array:
    """Texts as times; missing where one is not written so.

    Arrow is fast, but takes the 31st of February for the 2nd of March and '24' for a year of four
    digits, and does not know %f. So what may be wrong is read again by Python.
    """
    kind = type_of(format)
    found = pc.strptime(texts, format=format, unit="us", error_is_null=True).cast(kind)
    plain = found.cast(pa.int64()).cast(pa.timestamp("us"))
    doubtful = pc.or_(pc.less_equal(pc.day(plain), 3), pc.less(pc.year(plain), 1000))
    doubtful = pc.and_(pc.is_valid(texts), doubtful.fill_null(True))
    again = pc.unique(texts.filter(doubtful))
    if not len(again):
        return found
    ticks = pa.array([read(text, format) for text in again.to_pylist()], pa.int64())
    read_again = ticks.take(pc.index_in(texts, again)).cast(pa.timestamp("us")).cast(kind)
    return pc.if_else(doubtful, read_again, found)


def read(text: str, format: str) -> int | None:
    """Microseconds since 1970."""
    try:
        moment = datetime.strptime(text, format)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = moment - START
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def fitting(texts: pa.Array, formats: Iterable[str]) -> tuple[str, ...]:
    """Those formats that all texts are written in; a sample goes first."""
    return tuple(
        format
        for format in formats
        if not moments(texts[:8], format).null_count and not moments(texts, format).null_count
    )


def advice(formats: tuple[str, ...]) -> str:
    """Which option would read times that all of these formats fit."""
    if not formats:
        return "say how it is written with --time-format, as in --time-format '%d.%m.%Y %H:%M'"
    options = [f"--time-format '{format}'" for format in formats[:2]]
    if len(options) == 1:
        return f"pass {options[0]}"
    first = ["the day" if f.startswith("%d") else "the month" for f in formats[:2]]
    return f"pass {options[0]} if {first[0]} comes first, {options[1]} if {first[1]} does"
