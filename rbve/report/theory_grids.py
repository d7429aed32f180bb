"""Figures of the one-step-improvement experiments: families of processes, margins, grid worlds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from rbve.report.canvas import INK, MUTED, SIZE, Drawing, power, style
from rbve.report.labels import ramp
from rbve.report.table import number
from rbve.report.theory_canvas import GRID, head, keyed, legend, panels, save, wilson
from rbve.rows import Run

HOLDS, FAILS = "#0072B2", "#D62410"
ARROWS = ((-0.3, 0), (0.3, 0), (0, -0.3), (0, 0.3))  # left, right, up, down; rows go downwards
POLICIES = {"random": "random", "one step": "one greedy step", "optimal": "optimal"}
KINDS = {
    "chain": "Chain (lemma 2)",
    "grid": "Grid, its analogue in two dimensions",
    "end": "Reward at the end (lemma 1)",
}
LEFT = -1.3  # of names, in widths of the axes
COLUMNS = (("fail, of n", 1.37), ("fail for all ties", 1.85), ("margin", 2.25))
SHARES = {
    "reaches": ("one step reaches the goal", "#56B4E9", "-"),
    "close": ("and has ≥ 95% of the optimal value", "#0072B2", (0, (4, 1.5))),
    "optimal": ("and is optimal from the start", "#332288", (0, (1, 1.2))),
}


def draw_improvement(runs: Sequence[Run], prefix: str = "improvement") -> Drawing:
    """A row per family: share of processes where one greedy step is not optimal."""
    lines: list[str | Run] = []
    for kind, words in KINDS.items():
        own = [run for run in runs if run.spec["family"].split("/")[0] == kind]
        lines += [words, *sorted(own, key=family_order)]
    note = (
        "values in rational numbers, without rounding. Dot: share of processes where one greedy "
        "step is not optimal for some way to break ties; bar: 95% Wilson interval, for families "
        "drawn at random; n: processes. Margin: smallest lead of an optimal action over all "
        "others, in values of the behaviour. Red: a premise is broken, or walls added."
    )
    with style():
        figure, ((axes,),) = panels(1, 1, width=2.5, height=0.235 * len(lines), gap=(0, 0))
        for row, line in enumerate(lines):
            if isinstance(line, str):
                place = axes.get_yaxis_transform()
                axes.text(LEFT, row, line, transform=place, fontweight="bold", va="center")
            else:
                family_row(axes, row, line)
        for text, at in COLUMNS:
            top = axes.get_yaxis_transform()
            axes.text(at, -0.9, text, transform=top, color=MUTED, ha="right")
        axes.set_yticks([])
        axes.set_ylim(len(lines) - 0.4, -0.6)
        axes.set_xlim(-0.02, 0.6)
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
        axes.set_xlabel("processes where it is not optimal")
        head(axes, "Where one greedy step is optimal", note, above=1.6, left=LEFT)
        return save(figure, "improvement", "Where one greedy step is optimal", note, prefix)


def family_order(run: Run) -> tuple[bool, str]:
    return broken(run), run.job


def broken(run: Run) -> bool:
    """Whether the family leaves the lemma's ground."""
    name = run.spec["family"]
    return bool(run.spec.get("broken")) or name == "chain/left-pays" or "walls" in name


def colour(run: Run) -> str:
    return FAILS if broken(run) else HOLDS


def family_row(axes: Axes, row: int, run: Run) -> None:
    n = int(run.last("mdps") or 0)
    fails, always = (int(run.last(name) or 0) for name in ("violations", "violations/any"))
    margin = run.last("margin")
    across = axes.get_yaxis_transform()
    axes.hlines(row, 0, 1, transform=across, color="#e6e6e6", linewidth=0.8, zorder=0)
    if "seed" in run.spec:
        low, high = wilson(fails, n)
        axes.plot([low, high], [row, row], color=colour(run), linewidth=2, solid_capstyle="round")
    axes.plot(fails / n, row, "o", color=colour(run), markersize=6, clip_on=False, zorder=4)
    words = run.facts["family"]
    axes.text(-0.04, row, words, transform=across, color=colour(run), va="center", ha="right")
    texts = (f"{fails} of {n}", str(always), number(margin))
    for text, (_, at) in zip(texts, COLUMNS, strict=True):
        axes.text(at, row, text, transform=across, va="center", ha="right")


def draw_margins(runs: Sequence[Run], prefix: str = "margins") -> Drawing:
    """Smallest lead of the right action by size of the chain and the grid, a line per γ."""
    note = (
        "lead: smallest over states of [best Q of an optimal action − best Q of another], below as "
        "a share of the larger; Q of the uniform behaviour. Exact, one process per point, no "
        "randomness. Above 0 everywhere, so one greedy step is optimal; but it shrinks with the "
        "distance to the reward, so estimated values need not show it."
    )
    names = {"chain": ("chain", "states"), "grid/corner": ("square grid", "cells of a side")}
    gammas = next(run for run in runs if run.spec["family"] == "chain").spec["gammas"]
    with style():
        figure, grid = panels(2, 2, width=2.7, height=1.5, gap=(0.75, 0.25))
        for column, (family, (title, unit)) in enumerate(names.items()):
            run = next(run for run in runs if run.spec["family"] == family)
            for row, metric in enumerate(("margin", "margin/share")):
                margin_panel(grid[row][column], run, metric, gammas)
            grid[0][column].set_title(title, fontsize=SIZE, loc="left")
            grid[0][column].tick_params(labelbottom=False)
            grid[1][column].set_xlabel(unit)
        grid[0][0].set_ylabel("lead, absolute")
        grid[1][0].set_ylabel("lead, share")
        lines = [(f"{gamma:g}", shade(gamma, gammas), "-") for gamma in gammas]
        legend(grid[0][0], [("γ:", "white", "-"), *lines], above=1.9, tight=True)
        head(grid[0][0], "How clearly one greedy step is right", note, above=3.2)
        return save(figure, "margins", "How clearly one greedy step is right", note, prefix)


def shade(gamma: float, gammas: Sequence[float]) -> str:
    return ramp(sorted(gammas).index(gamma) / (len(gammas) - 1))


def margin_panel(axes: Axes, run: Run, metric: str, gammas: Sequence[float]) -> None:
    for gamma in run.spec["gammas"]:
        name = f"{metric}/gamma={gamma:g}"
        points = [(row.step, row.value) for row in run.rows if row.metric == name]
        axes.plot(*zip(*points, strict=True), color=shade(gamma, gammas), linewidth=1.6)
    axes.set_yscale("log")
    if metric == "margin/share":
        axes.set_ylim(1e-3, 1)
    low = math.floor(math.log10(axes.get_ylim()[0]))
    step = math.ceil(-low / 5)
    axes.yaxis.set_major_locator(FixedLocator([10.0**k for k in range(0, low - 1, -step)]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: power(value)))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.grid(axis="y", color=GRID, linewidth=0.7)


def draw_gridworld(runs: Sequence[Run], prefix: str = "gridworld") -> Drawing:
    """Three panels: values as colours, the policy as arrows."""
    own = {run.spec["policy"]: run for run in runs if "policy" in run.spec}
    grids = {name: table(run, "value/") for name, run in own.items()}
    first = own["random"]
    scale = Normalize(min(g.min() for g in grids.values()), max(g.max() for g in grids.values()))
    below = own["one step"].last("below_optimal")
    worst = own["one step"].last("worst/share")
    note = (
        f"our own layout; start upper left, γ = {first.spec['gamma']:g}; a step into T pays "
        f"{first.spec['trap']:g}, into G {first.spec['goal']:+g} and ends. Colour: exact value of "
        f"the policy shown. Framed: the {below:.0f} of {grids['random'].size - 1} cells where one "
        f"step is below optimal (at worst by {worst:.0%}). No randomness: n = 1 layout."
    )
    with style():
        figure, (row,) = panels(1, 3, width=2.35, height=2.35 * 6 / 9, gap=(0.2, 0))
        for axes, (name, words) in zip(row, POLICIES.items(), strict=True):
            world_panel(axes, own[name], grids[name], scale)
            start, mean = own[name].last("start"), own[name].last("mean")
            axes.set_title(words, fontsize=SIZE, loc="left", fontweight="bold")
            axes.set_xlabel(f"start {start:.2f}, mean of cells {mean:.2f}", color=INK)
        frame_losses(row[1], grids["optimal"] - grids["one step"])
        colour_scale(figure, row[-1], scale)
        head(row[0], "Random, one greedy step, optimal", note, above=1.6)
        return save(figure, "gridworld", "Random, one greedy step, optimal", note, prefix)


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


def colour_scale(figure: Figure, axes: Axes, scale: Normalize) -> None:
    place = axes.get_position()
    beside = figure.add_axes((place.x1 + 0.012, place.y0, 0.012, place.height))
    bar = figure.colorbar(ScalarMappable(scale, "viridis"), cax=beside)
    bar.set_label("value")
    bar.outline.set_visible(False)


def draw_layouts(runs: Sequence[Run], prefix: str = "layouts") -> Drawing:
    """How often random layouts show the pattern, by what a trap costs."""
    own = [run for run in runs if "layouts" in run.spec]
    own.sort(key=lambda run: -run.spec["trap"])
    sizes = sorted({row.n for run in own for row in run.rows})
    count = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    note = (
        f"n = {count} random layouts per cost, a trap in {own[0].spec['trap_share']:.0%} of cells, "
        "among those whose optimal policy reaches the goal; bar: 95% Wilson interval. Where it "
        "does not reach the goal, one greedy step hides from traps and collects nothing."
    )
    with style():
        figure, ((axes,),) = panels(1, 1, width=6.3, height=2.4, gap=(0, 0))
        for k, (metric, (_, shade, dash)) in enumerate(SHARES.items()):
            places = np.arange(len(own)) + 0.05 * (k - 1)
            found = [next(row for row in run.rows if row.metric == metric) for run in own]
            for x, row in zip(places, found, strict=True):
                axes.vlines(x, *wilson(row.value * row.n, row.n), color=shade, linewidth=1.8)
            values = [row.value for row in found]
            axes.plot(places, values, color=shade, linestyle=dash, marker="o", markersize=4)
        axes.xaxis.set_major_locator(FixedLocator(range(len(own))))
        axes.set_xticklabels([f"{run.spec['trap']:g}" for run in own])
        axes.set_xlabel(f"reward of a trap (the goal pays {own[0].spec['goal']:+g})")
        axes.set_ylabel("share of layouts")
        axes.set_ylim(-0.02, 1.02)
        axes.grid(axis="y", color=GRID, linewidth=0.7)
        legend(axes, list(SHARES.values()), above=0.4)
        head(axes, "How often one greedy step is close to optimal", note, above=1.8)
        return save(figure, "layouts", "How often one step is close to optimal", note, prefix)
