"""Small pieces of HTML that sections share. Everything given is escaped here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    main: str = "",
    words: bool = False,
) -> str:
    """A table that scrolls in itself; the row named `main` is the one to look at.

    `words`: cells hold sentences, not numbers.
    """
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join(line(row, main) for row in rows)
    kind = ' class="words"' if words else ""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="Table: {escape(caption)}">'
        f"<table{kind}><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>\n"
    )


def line(row: Sequence[str], main: str) -> str:
    first, *rest = (escape(cell) for cell in row)
    cells = "".join(f"<td>{cell}</td>" for cell in rest)
    kind = ' class="main"' if main and row[0] == main else ""
    return f'<tr{kind}><th scope="row">{first}</th>{cells}</tr>\n'


def paragraph(text: str, kind: str = "") -> str:
    """What stands in `such quotes` is code."""
    named = f' class="{kind}"' if kind else ""
    marked = re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))
    return f"<p{named}>{marked}</p>\n"


def folded(summary: str, content: str, opened: bool = False) -> str:
    """`content` is HTML; as wide as the page."""
    state = ' open="open"' if opened else ""
    return (
        f'<details{state} style="max-width: none"><summary>{escape(summary)}</summary>\n'
        f"{content}</details>\n"
    )


def heading(text: str) -> str:
    return f"<h3>{escape(text)}</h3>\n"
