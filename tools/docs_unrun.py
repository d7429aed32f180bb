"""Pages whose data could not be fetched: their cells as plain code, with the reason."""

from __future__ import annotations

import re
from pathlib import Path

# `needs: NAME` in the lines before a page: data that tools/docs_data.py fetches.
_NEEDS = re.compile(r"\A---\n.*?^needs: (\w+)$.*?^---\n", re.DOTALL | re.MULTILINE)
_CELL, _HIDDEN = "```{code-cell}\n", ":tags: [remove-cell]"


def unrun(page: str, fetched: Path) -> str:
    """The page as it is, unless what it needs is missing from the folder of fetched data."""
    needs = _NEEDS.match(page)
    reason = fetched / f"{needs[1]}.reason" if needs else None
    if needs is None or reason is None or not reason.exists():
        return page
    title, _, rest = page[needs.end() :].partition(f"\n\n{_CELL}{_HIDDEN}")
    warning = f":::{{warning}}\nNot run: {reason.read_text(encoding='utf-8')}\n:::\n"
    text = f"{title}\n\n{warning}{rest.partition('```')[2]}"
    text = re.sub(rf"({re.escape(_CELL)}):tags: .*\n", r"\1", text)
    text = re.sub(rf"{re.escape(_CELL)}%%sh[ 0-9]*\n", "```bash\n", text)
    return text.replace(_CELL, "```python\n")
