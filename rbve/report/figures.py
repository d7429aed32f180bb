"""Figures of one problem: learning curves, final returns, over-estimation error.

Drawn on Figure objects with the Agg and SVG back ends; pyplot and its global state stay out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from rbve.report import statistics
from rbve.report.canvas import (
    INK,
    LINE,
    MUTED,
    SIZE,
    Drawing,
    canvas,
    finish,
    label_ends,
    label_marks,
    power,
    style,
    thousands,
    title,
)
from rbve.report.labels import SHORT_REFERENCES
from rbve.report.summary import Method, Problem
from rbve.report.table import number, return_places

DASHES = ("-", (0, (5, 1.5)), (0, (2, 1.2)), (0, (6, 1.5, 1.5, 1.5)))


def draw(problem: Problem, prefix: str) -> list[Drawing]:
    """The figures the problem has data for."""
    drawings = []
    with style():
        if any(method.curve for method in problem.methods):
            drawings.append(curves(problem, f"{prefix}-curves"))
        if problem.ranked:
            drawings.append(final_returns(problem, f"{prefix}-returns"))
        if any(method.estimates["overestimation"].n for method in problem.methods):
            drawings.append(overestimation(problem, f"{prefix}-overestimation"))
    return drawings


def curves(problem: Problem, prefix: str) -> Drawing:
    methods = [method for method in problem.methods if method.curve]
    shown = {
        name: value for name, value in problem.references.items() if name != "reference_return"
    }
    figure, axes = canvas(max(3.3, LINE * (len(methods) + len(shown) + 1)))
    for name in shown:
        axes.axhline(shown[name], color="#9a9a9a", linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
    for method in sorted(methods, key=lambda method: method.emphasised):
        draw_curve(axes, method)
    axes.set_xlabel("updates")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: thousands(value)))
    axes.set_xlim(0, max(step for method in methods for step, _ in method.curve))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axes.grid(axis="y", color="#ececec", linewidth=0.7)
    with_n = not uniform(methods)
    ends = [
        (method.curve[-1][1].mean, named(method, with_n), method.colour, method.emphasised)
        for method in methods
    ]
    ends += [(value, SHORT_REFERENCES[name], MUTED, False) for name, value in shown.items()]
    label_ends(axes, ends)
    note = f"mean return of {count(methods)}; band: 95% bootstrap interval"
    if any(method.diverged for method in methods):
        note += "; ×: a run diverged there, its last return stands"
    title(figure, axes, "Learning curves", problem, note)
    return finish(figure, "curves", "Learning curves", problem, note, prefix)


def draw_curve(axes: Axes, method: Method) -> None:
    steps = [step for step, _ in method.curve]
    found = [estimate for _, estimate in method.curve]
    lows = [each.mean if each.low is None else each.low for each in found]
    highs = [each.mean if each.high is None else each.high for each in found]
    front = 4 if method.emphasised else 3
    axes.fill_between(steps, lows, highs, color=method.colour, alpha=0.13, linewidth=0)
    axes.plot(
        steps,
        [each.mean for each in found],
        color=method.colour,
        linewidth=2.6 if method.emphasised else 1.5,
        linestyle=DASHES[method.dash % len(DASHES)],
        marker="o" if len(steps) == 1 else "",
        zorder=front,
        solid_capstyle="round",
    )
    for run in method.runs:
        ended = run.last("diverged_at")
        if ended is not None:
            nearest = min(method.curve, key=lambda point: abs(point[0] - ended))
            axes.plot(
                nearest[0], nearest[1].mean, "x", color=method.colour, zorder=5, clip_on=False
            )


def final_returns(problem: Problem, prefix: str) -> Drawing:
    methods = problem.methods
    figure, axes = canvas(rows_height(methods))
    places = return_places(problem)
    marks, outside = marks_in_reach(problem)
    for value, _ in marks:
        axes.axvline(value, color="#9a9a9a", linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
    for row, method in enumerate(methods):
        found = method.estimates["return"]
        members(axes, row, method, "return")
        if found.n:
            if found.low is not None and found.high is not None:
                axes.plot(
                    [found.low, found.high],
                    [row, row],
                    color=method.colour,
                    linewidth=3 if method.emphasised else 2,
                    solid_capstyle="round",
                )
            axes.plot(found.mean, row, "o", color=method.colour, markersize=7, zorder=4)
        at_right(axes, row, number(found.mean, places), method)
    method_rows(axes, methods)
    heading_at_right(axes, "mean")
    axes.set_xlabel("final return")
    axes.margins(x=0.04)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    top = label_marks(axes, marks)
    note = f"dot: mean of {count(methods)}; bar: 95% bootstrap interval; faint: single runs"
    if outside:
        words = (f"{name} {number(value, places)}" for value, name in outside)
        note += f"; off the axis: {', '.join(words)}"
    title(figure, axes, "Final returns", problem, note, above=top)
    return finish(figure, "returns", "Final returns", problem, note, prefix)


def marks_in_reach(
    problem: Problem,
) -> tuple[list[tuple[float, str]], list[tuple[float, str]]]:
    """Reference returns to draw, and those so far off that they would squeeze the rest."""
    values = statistics.finite(v for m in problem.methods for v in m.finals("return"))
    reach = 2 * max(np.ptp(values), 1e-9 + 0.05 * np.abs(values).max())
    marks = sorted((value, SHORT_REFERENCES[name]) for name, value in problem.references.items())
    near = [m for m in marks if values.min() - reach <= m[0] <= values.max() + reach]
    return near, [m for m in marks if m not in near]


def overestimation(problem: Problem, prefix: str) -> Drawing:
    methods = [m for m in problem.methods if any(v is not None for v in m.finals("overestimation"))]
    figure, axes = canvas(rows_height(methods))
    values = [v for m in methods for v in m.finals("overestimation") if v is not None]
    ticks = symlog(axes, [v for v in values if math.isfinite(v)])
    for row, method in enumerate(methods):
        members(axes, row, method, "overestimation")
        found = method.estimates["overestimation"]
        if found.n:
            axes.plot(found.median, row, "D", color=method.colour, markersize=6, zorder=4)
        at_right(axes, row, number(found.median), method)
    method_rows(axes, methods)
    heading_at_right(axes, "median")
    axes.set_xlabel("over-estimation error, mean of max(Q − G, 0)² (log scale, 0 at the left)")
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: power(value)))
    note = f"diamond: median of {count(methods)}; faint: single runs"
    if not all(math.isfinite(value) for value in values):
        note += "; ×: not finite"
    title(figure, axes, "Over-estimation error", problem, note)
    return finish(figure, "overestimation", "Over-estimation error", problem, note, prefix)


def symlog(axes: Axes, values: Sequence[float]) -> list[float]:
    """A log axis that starts at 0; returns at most eight ticks."""
    positive = [value for value in values if value > 0] or [1.0]
    top = math.ceil(math.log10(max(positive)) + 1e-9)
    bottom = max(math.floor(math.log10(min(positive))), top - 12)
    bottom = min(bottom, top - 1)
    axes.set_xscale("symlog", linthresh=10.0**bottom, linscale=0.5)
    axes.set_xlim(-0.1 * 10.0**bottom, 10.0**top * 1.2)
    step = math.ceil((top - bottom) / 7)
    return [0.0, *(10.0**k for k in range(top, bottom - 1, -step))]


def members(axes: Axes, row: int, method: Method, measure: str) -> None:
    """Single runs as faint dots, a little above and below the line so that equals stay apart."""
    finals = method.finals(measure)
    offsets = np.linspace(-0.16, 0.16, len(finals)) if len(finals) > 1 else [0.0]
    for value, offset in zip(finals, offsets, strict=True):
        if value is not None and math.isfinite(value):
            axes.plot(
                value,
                row + offset,
                "o",
                color=method.colour,
                alpha=0.38,
                markersize=4.5,
                markeredgewidth=0,
                zorder=2,
            )
        elif value is not None:
            place = axes.get_yaxis_transform()
            axes.plot(0.985, row + offset, "x", color=method.colour, transform=place, markersize=5)


def method_rows(axes: Axes, methods: Sequence[Method]) -> None:
    with_n = not uniform(methods)
    axes.set_yticks(range(len(methods)), [named(method, with_n) for method in methods])
    for label, method in zip(axes.get_yticklabels(), methods, strict=True):
        label.set(color=method.colour if method.emphasised else INK)
        label.set_fontweight("bold" if method.emphasised else "normal")
    axes.set_ylim(len(methods) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    across = axes.get_yaxis_transform()
    rows = range(len(methods))
    axes.hlines(rows, 0, 1, transform=across, color="#e6e6e6", linewidth=0.8, zorder=0)


def heading_at_right(axes: Axes, text: str) -> None:
    place = axes.get_yaxis_transform()
    axes.text(1.02, -0.72, text, transform=place, fontsize=SIZE - 1, color=MUTED)


def at_right(axes: Axes, row: int, text: str, method: Method) -> None:
    axes.text(
        1.02,
        row,
        text,
        transform=axes.get_yaxis_transform(),
        va="center",
        fontweight="bold" if method.emphasised else "normal",
    )


def rows_height(methods: Sequence[Method]) -> float:
    return max(1.0, 0.3 * len(methods) + 0.15)


def named(method: Method, with_n: bool) -> str:
    return f"{method.name} (n={method.n})" if with_n else method.name


def uniform(methods: Sequence[Method]) -> bool:
    return len({method.n for method in methods}) == 1


def count(methods: Sequence[Method]) -> str:
    sizes = sorted({method.n for method in methods})
    if len(sizes) == 1:
        return f"n = {sizes[0]} run{'s' if sizes[0] > 1 else ''} per method"
    return f"n = {sizes[0]} to {sizes[-1]} runs per method"
