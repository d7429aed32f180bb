"""Check every link inside a built site, without a network: its file, and its place in the file.

python tools/docs_links.py docs/_build/html
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The places that a page has, and what it leads to."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file
        self.places: set[str] = set()
        self.targets: list[tuple[int, str]] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.places.add(value)
            if name in ("href", "src") and value:
                self.targets.append((self.getpos()[0], value))


def broken(root: Path) -> list[str]:
    """A line for each link that leads nowhere."""
    root = root.resolve()
    pages = {file: Page(file) for file in sorted(root.rglob("*.html"))}
    if not pages:
        raise SystemExit(f"{root}: no pages; build them first with `make docs`")
    wrong = []
    for file, page in pages.items():
        for line, target in page.targets:
            if reason := _reason(file, target, pages, root):
                wrong.append(f"{file.relative_to(root)}:{line}: {target}: {reason}")
    return wrong


def _reason(file: Path, target: str, pages: dict[Path, Page], root: Path) -> str:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return ""
    place = unquote(parts.path)
    to = (file.parent / place).resolve() if place else file
    to = to / "index.html" if to.is_dir() else to
    if not to.is_file():
        return "no such file"
    if not to.is_relative_to(root):
        return "outside the site"
    if parts.fragment and to in pages and unquote(parts.fragment) not in pages[to].places:
        return "no such place in the page"
    return ""


def main() -> None:
    wrong = broken(Path(sys.argv[1]))
    print("\n".join(wrong) or "all links inside the site lead somewhere")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
