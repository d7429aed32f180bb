"""Figures of the one-step-improvement experiments: families of processes, margins, grid worlds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter

from rbve.paper.pages.theory_canvas import as_csv, finished, keyed, panels, series, wilson
from rbve.report.canvas import INK, MUTED, SIZE, style
from rbve.report.chart import Chart, Panel, Point, Series, minus
from rbve.report.labels import ramp
from rbve.report.page import Picture
from rbve.report.table import number
from rbve.rows import Run

HOLDS, FAILS = "#0072B2", "#D62410"
ACTIONS = {0: "left", 1: "right", 2: "up", 3: "down"}
ARROWS = ((-0.3, 0), (0.3, 0), (0, -0.3), (0, 0.3))  # of ACTIONS; rows go downwards
POLICIES = {"random": "random", "one step": "one greedy step", "optimal": "optimal"}
KINDS = {
    "chain": "Chain (lemma 2)",
    "grid": "Grid, its analogue in two dimensions",
    "end": "Reward at the end (lemma 1)",
}
LEFT = -1.3  # of names, in widths of the axes
COLUMNS = (("fail, of n", 1.37), ("fail for all ties", 1.85), ("margin", 2.25))
SHARES = {
    "reaches": ("one step reaches the goal", "#56B4E9", 0),
    "close": ("and has ≥ 95% of the optimal value", "#0072B2", 1),
    "optimal": ("and is optimal from the start", "#332288", 2),
}
# Families that are judged by size: slug, title, unit.
SIZED = {
    "chain": ("chain", "chain", "states of the chain"),
    "grid/corner": ("grid", "square grid", "cells of a side of the grid"),
}
LEAD_WORDS = (
    "Lead: smallest over states of [best Q of an optimal action − best Q of another], on the right "
    "as a share of the larger; Q of the uniform behaviour. Exact, one process per point, no "
    "randomness. Above 0 everywhere, so one greedy step is optimal; but it shrinks with the "
    "distance to the reward, so estimated values need not show it."
)


def families(runs: Sequence[Run]) -> Picture:
    """A row per family: share of processes where one greedy step is not optimal."""
    lines: list[str | Run] = []
    for kind, words in KINDS.items():
        own = [run for run in runs if run.spec["family"].split("/")[0] == kind]
        lines += [words, *sorted(own, key=family_order)]
    note = (
        "Values in rational numbers, without rounding. Dot: share of processes where one greedy "
        "step is not optimal for some way to break ties; bar: 95% Wilson interval, for families "
        "drawn at random; n: processes. Margin: smallest lead of an optimal action over all "
        "others, in values of the behaviour. Red: a premise is broken, or walls added."
    )
    with style():
        (axes,) = panels(1, width=2.5, height=0.235 * len(lines), gap=0)
        for row, line in enumerate(lines):
            if isinstance(line, str):
                place = axes.get_yaxis_transform()
                axes.text(LEFT, row, line, transform=place, fontweight="bold", va="center")
            else:
                family_row(axes, row, family(line))
        for text, at in COLUMNS:
            top = axes.get_yaxis_transform()
            axes.text(at, -0.9, text, transform=top, color=MUTED, ha="right")
        axes.set_yticks([])
        axes.set_ylim(len(lines) - 0.4, -0.6)
        axes.set_xlim(-0.02, 0.6)
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
        axes.set_xlabel("processes where it is not optimal")
        described = ("theory-improvement-families", "Where one greedy step is optimal", note)
        numbers = as_csv(Family._fields, [family(x) for x in lines if isinstance(x, Run)])
        return finished(axes, described, numbers, above=1.6, left=LEFT)


class Family(NamedTuple):
    family: str
    premise_broken: bool
    processes: int
    fail: int  # for some way to break ties
    fail_for_all_ties: int
    share: float
    low: float | None  # 95% interval, of families drawn at random
    high: float | None
    margin: float | None


def family(run: Run) -> Family:
    n = int(run.last("mdps") or 0)
    fails, always = (int(run.last(name) or 0) for name in ("violations", "violations/any"))
    low, high = wilson(fails, n) if "seed" in run.spec else (None, None)
    words = str(run.facts["family"])
    return Family(words, broken(run), n, fails, always, fails / n, low, high, run.last("margin"))


def family_order(run: Run) -> tuple[bool, str]:
    return broken(run), run.job


def broken(run: Run) -> bool:
    """Whether the family leaves the lemma's ground."""
    name = run.spec["family"]
    return bool(run.spec.get("broken")) or name == "chain/left-pays" or "walls" in name


def family_row(axes: Axes, row: int, own: Family) -> None:
    colour = FAILS if own.premise_broken else HOLDS
    across = axes.get_yaxis_transform()
    axes.hlines(row, 0, 1, transform=across, color="#e6e6e6", linewidth=0.8, zorder=0)
    if own.low is not None and own.high is not None:
        axes.plot(
            [own.low, own.high], [row, row], color=colour, linewidth=2, solid_capstyle="round"
        )
    axes.plot(own.share, row, "o", color=colour, markersize=6, clip_on=False, zorder=4)
    axes.text(-0.04, row, own.family, transform=across, color=colour, va="center", ha="right")
    counted = f"{own.fail:,} of {own.processes:,}"
    texts = (counted, f"{own.fail_for_all_ties:,}", number(own.margin))
    for text, (_, at) in zip(texts, COLUMNS, strict=True):
        axes.text(at, row, text, transform=across, va="center", ha="right")


def margins(runs: Sequence[Run]) -> tuple[Chart, ...]:
    """Smallest lead of the right action by size of the chain and of the grid, a line per γ."""
    known = {run.spec["family"]: run for run in runs}
    return tuple(
        Chart(
            name=f"theory-improvement-{slug}",
            title=f"How clearly one greedy step is right: {title}",
            note=f"{LEAD_WORDS} γ: discount.",
            kind="lines",
            x_label=unit,
            y_label="lead of the right action",
            panels=tuple(
                Panel(words, leads(known[family], metric))
                for metric, words in (("margin", "absolute"), ("margin/share", "as a share"))
            ),
            y_scale="log",
        )
        for family, (slug, title, unit) in SIZED.items()
        if family in known
    )


def leads(run: Run, metric: str) -> tuple[Series, ...]:
    gammas = run.spec["gammas"]
    return tuple(
        Series(
            f"γ = {gamma:g}",
            ramp(sorted(gammas).index(gamma) / max(1, len(gammas) - 1)),
            tuple(Point(*pair) for pair in series(run, f"{metric}/gamma={gamma:g}")),
        )
        for gamma in gammas
    )


def policies(runs: Sequence[Run]) -> Picture:
    """Three panels: values as colours, the policy as arrows."""
    own = {run.spec["policy"]: run for run in runs if "policy" in run.spec}
    grids = {name: table(run, "value/") for name, run in own.items()}
    first = own["random"]
    scale = Normalize(min(g.min() for g in grids.values()), max(g.max() for g in grids.values()))
    below = own["one step"].last("below_optimal")
    worst = own["one step"].last("worst/share")
    note = (
        f"Our own layout; start upper left, γ = {first.spec['gamma']:g}; a step into T pays "
        f"{signed(first.spec['trap'])}, into G {first.spec['goal']:+g} and ends. Colour: exact "
        f"value of the policy shown. Framed: the {below:.0f} of {grids['random'].size - 1} cells "
        f"where one step is below optimal (at worst by {worst:.0%}). No randomness: n = 1 layout."
    )
    with style():
        row = panels(3, width=2.35, height=2.35 * 6 / 9, gap=0.2)
        for axes, (name, words) in zip(row, POLICIES.items(), strict=True):
            world_panel(axes, own[name], grids[name], scale)
            start, mean = (number(own[name].last(metric), 2) for metric in ("start", "mean"))
            axes.set_title(words, fontsize=SIZE, loc="left", fontweight="bold")
            axes.set_xlabel(f"start {start}, mean of cells {mean}", color=INK)
        frame_losses(row[1], grids["optimal"] - grids["one step"])
        colour_scale(row[-1], scale)
        described = ("theory-gridworld-policies", "Random, one greedy step, optimal", note)
        return finished(row[0], described, cell_numbers(own), above=1.6)


def cell_numbers(own: Mapping[str, Run]) -> bytes:
    rows = [
        (name, r, c, run.spec["layout"][r][c], value, ACTIONS.get(int(actions[r, c]), ""))
        for name in POLICIES
        for run, actions in [(own[name], table(own[name], "action/"))]
        for (r, c), value in np.ndenumerate(table(run, "value/"))
    ]
    return as_csv(("policy", "row", "column", "cell", "value", "action"), rows)


def table(run: Run, start: str) -> np.ndarray:
    cells = {tuple(map(int, key.split("/"))): v for key, v in keyed(run, start).items()}
    shape = tuple(max(cell[k] for cell in cells) + 1 for k in (0, 1))
    found = np.zeros(shape)
    for cell, value in cells.items():
        found[cell] = value
    return found


def world_panel(axes: Axes, run: Run, values: np.ndarray, scale: Normalize) -> None:
    shades = colormaps["viridis"]
    axes.imshow(values, cmap=shades, norm=scale, aspect="auto")
    actions = table(run, "action/").astype(int)
    for (r, c), value in np.ndenumerate(values):
        sign = run.spec["layout"][r][c]
        goal = sign == "G"
        ink = "white" if scale(value) < 0.6 and not goal else INK
        if goal:
            axes.add_patch(Rectangle((c - 0.5, r - 0.5), 1, 1, facecolor="white", edgecolor=INK))
        if sign != ".":
            axes.text(c - 0.4, r - 0.28, sign, color=ink, fontsize=SIZE - 2.5, va="center")
        if actions[r, c] >= 0:
            dx, dy = ARROWS[actions[r, c]]
            axes.annotate(
                "",
                (c + 0.05 + dx, r + 0.05 + dy),
                (c + 0.05 - dx, r + 0.05 - dy),
                arrowprops={"arrowstyle": "->", "color": ink, "lw": 1, "shrinkA": 0, "shrinkB": 0},
            )
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)


def frame_losses(axes: Axes, loss: np.ndarray) -> None:
    for (r, c), value in np.ndenumerate(loss):
        if value > 1e-9:
            box = Rectangle((c - 0.46, r - 0.46), 0.92, 0.92, fill=False, edgecolor=FAILS, lw=1.3)
            axes.add_patch(box)


def colour_scale(axes: Axes, scale: Normalize) -> None:
    figure: Any = axes.figure
    place = axes.get_position()
    beside = figure.add_axes((place.x1 + 0.012, place.y0, 0.012, place.height))
    bar = figure.colorbar(ScalarMappable(scale, "viridis"), cax=beside)
    bar.set_label("value")
    bar.outline.set_visible(False)


def layouts(runs: Sequence[Run]) -> tuple[Chart, ...]:
    """How often random layouts show the pattern, by what a trap costs."""
    own = [run for run in runs if "layouts" in run.spec]
    if not own:
        return ()
    own.sort(key=lambda run: -run.spec["trap"])
    sizes = sorted({row.n for run in own for row in run.rows})
    count = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    note = (
        f"n = {count} random layouts per cost, a trap in {own[0].spec['trap_share']:.0%} of cells, "
        "among those whose optimal policy reaches the goal; bar: 95% Wilson interval. Where it "
        "does not reach the goal, one greedy step hides from traps and collects nothing."
    )
    chart = Chart(
        name="theory-gridworld-layouts",
        title="How often one greedy step is close to optimal",
        note=note,
        kind="lines",
        x_label=f"reward of a trap (the goal pays {own[0].spec['goal']:+g})",
        y_label="share of layouts",
        panels=(Panel("", tuple(shares(own, metric) for metric in SHARES)),),
        x_scale="category",
    )
    return (chart,)


def shares(runs: Sequence[Run], metric: str) -> Series:
    name, colour, dash = SHARES[metric]
    found = [(run, row) for run in runs for row in run.rows if row.metric == metric]
    return Series(
        name,
        colour,
        tuple(
            Point(signed(run.spec["trap"]), r.value, *wilson(r.value * r.n, r.n), r.n)
            for run, r in found
        ),
        dash=dash,
    )


def signed(value: float) -> str:
    return minus(f"{value:g}")
