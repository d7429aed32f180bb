"""How figures look: Vega configuration for white paper, and for light and dark pages."""

from __future__ import annotations

from typing import Any

# In order of preference; what draws the files beside a page carries the first.
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
SIZE = 12  # pixels, all labels
LETTER = 0.53 * SIZE  # mean width of one
DASHES = ((1, 0), (6, 2.5), (2.5, 2.5), (7, 2.5, 2, 2.5))
INK, MUTED, GRID, CARD = "#1d1d1f", "#5c5c61", "#ececef", "#ffffff"
DARK = {INK: "#ececef", MUTED: "#a8a8b0", GRID: "#303036", CARD: "#1f1f23"}


def config(dark: bool = False, page: bool = False) -> dict[str, Any]:
    """Vega-Lite's `config`. On a page its card is the background and HTML the legend."""
    ink, muted, grid, card = (DARK[each] if dark else each for each in (INK, MUTED, GRID, CARD))
    label = {"labelColor": muted, "titleColor": muted, "titleFontWeight": "normal"}
    sizes = {"labelFontSize": SIZE, "titleFontSize": SIZE}
    return {
        "background": "transparent" if page else card,
        "font": FONT,
        "padding": 2 if page else 12,
        "aria": False,  # the figure is described as a whole, its numbers stand in a table
        "view": {"stroke": None},
        "axis": {
            **label,
            **sizes,
            "gridColor": grid,
            "domainColor": muted,
            "domainOpacity": 0.6,
            "tickColor": muted,
            "tickOpacity": 0.6,
            "tickSize": 4,
            "labelOverlap": "greedy",
        },
        "axisY": {"titlePadding": 8},
        "title": {
            "anchor": "start",
            "frame": "group",
            "color": ink,
            "subtitleColor": muted,
            "fontSize": SIZE,
            "subtitleFontSize": SIZE,
            "subtitlePadding": 5,
        },
        "legend": {**label, **sizes, "labelColor": ink, "labelLimit": 400},
        "text": {"color": muted, "fontSize": SIZE},
        "rule": {"color": muted},
    }
