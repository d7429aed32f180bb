"""What Vega draws of a figure: its scene graph, view by view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import vl_convert

from rbve.report.figure import VERSION, Figure, whole

Item = dict[str, Any]


class Scene:
    """One view: its marks by type, its axis labels, all its texts."""

    def __init__(self, group: Item) -> None:
        self.width, self.height = group["width"], group["height"]
        self.group = group
        self.axes: dict[str, list[tuple[float, str]]] = {"x": [], "y": []}
        for mark, item in walk({"marktype": "group", "items": [group]}):
            if mark.get("role") == "axis-label":
                below = item.get("baseline") == "top"
                place = item["x"] if below else item["y"]
                self.axes["x" if below else "y"].append((place, lines(item)))

    def marks(self, kind: str, colour: str = "", points: bool | None = None) -> list[Item]:
        """`points`: whether the layer is one that is told of."""
        return [
            item
            for mark, item in walk({"marktype": "group", "items": [self.group]})
            if (mark["marktype"], mark.get("role")) == (kind, "mark")
            and colour.lower() in ("", *(str(item.get(k)).lower() for k in ("stroke", "fill")))
            and points in (None, str(mark.get("name")).startswith("points"))
        ]

    def texts(self) -> list[str]:
        pairs = walk({"marktype": "group", "items": [self.group]})
        return [lines(item) for mark, item in pairs if mark["marktype"] == "text"]

    def value(self, axis: str, place: float) -> float:
        """Of a linear axis, by its labels."""
        known = [(at, float(text.replace("−", "-"))) for at, text in self.axes[axis]]
        return float(np.polyval(np.polyfit(*zip(*known, strict=True), 1), place))


def walk(mark: Item) -> Iterator[tuple[Item, Item]]:
    for item in mark.get("items", []):
        if mark["marktype"] == "group":
            for inner in item.get("items", []):
                yield from walk(inner)
        else:
            yield mark, item


def lines(item: Item) -> str:
    text = item.get("text", "")
    return " ".join(text) if isinstance(text, list) else str(text)


def scene(figure: Figure) -> tuple[list[Scene], list[str]]:
    """Its views, and all texts of the picture."""
    root = vl_convert.vegalite_to_scenegraph(whole(figure), vl_version=VERSION)["scenegraph"]
    found: list[Scene] = []

    def search(mark: Item) -> None:
        for item in mark.get("items", []) if mark["marktype"] == "group" else []:
            if str(mark.get("name")).startswith("concat"):
                found.append(Scene(item))
            else:
                for inner in item.get("items", []):
                    search(inner)

    search(root)
    texts = [lines(item) for mark, item in walk(root) if mark["marktype"] == "text"]
    return found, texts
