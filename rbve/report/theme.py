"""How figures look: Vega configuration for white paper, and for light and dark pages."""

from typing import Any

# In order of preference. What draws pictures takes the first there is, and another for a whole
# line that holds a sign the font lacks (V̂, log₁₀), so the first has them all.
_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
_PICTURE_FONT = f"DejaVu Sans, {_FONT}"
SIZE, PICTURE_SIZE = 12, 11  # pixels, all labels
LETTER = 6.6  # mean width of one, in a picture
DASHES = ((1, 0), (6, 2.5), (2.5, 2.5), (7, 2.5, 2, 2.5))
INK, MUTED, GRID, CARD = "#1d1d1f", "#5c5c61", "#ececef", "#ffffff"
DARK = {INK: "#ececef", MUTED: "#a8a8b0", GRID: "#303036", CARD: "#1f1f23"}


def config(dark: bool = False, page: bool = False) -> dict[str, Any]:
    """Vega-Lite's `config`. On a page its card is the background and HTML the legend."""
    ink, muted, grid, card = (DARK[each] if dark else each for each in (INK, MUTED, GRID, CARD))
    size, font = (SIZE, _FONT) if page else (PICTURE_SIZE, _PICTURE_FONT)
    label = {"labelColor": muted, "titleColor": muted, "titleFontWeight": "normal"}
    sizes = {"labelFontSize": size, "titleFontSize": size}
    return {
        "background": "transparent" if page else card,
        "font": font,
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
            "fontSize": size,
            "subtitleFontSize": size,
            "subtitlePadding": 5,
        },
        "legend": {**label, **sizes, "labelColor": ink, "labelLimit": 400},
        "text": {"color": muted, "fontSize": size},
        "rule": {"color": muted},
    }
