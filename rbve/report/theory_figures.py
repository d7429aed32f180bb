"""Figures of the theory experiments (rbve/theory), from their rows alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from rbve.report import statistics
from rbve.report.canvas import INK, SIZE, Drawing, power, style
from rbve.report.labels import METHODS
from rbve.report.theory_canvas import (
    GRID,
    Panel,
    head,
    keyed,
    legend,
    names_below,
    panels,
    save,
    series,
    share_scales,
    wilson,
)
from rbve.report.theory_grids import (
    draw_gridworld,
    draw_improvement,
    draw_layouts,
    draw_margins,
)
from rbve.rows import Run

OPTIMISERS = {"sgd": "SGD", "momentum": "momentum", "rmsprop": "RMSProp", "adam": "Adam"}
TOP = 1e4  # of the axis of values
Q_COLOUR, BVE_COLOUR = METHODS["dqn"][1], METHODS["bve"][1]
# Name, colour, dashes, width of a line by (method, end).
LINES = {
    ("q", "logged"): ("Q-learning", Q_COLOUR, "-", 3.0),
    ("bve", "bootstrap"): ("BVE bootstrapping at s3", "#882255", (0, (3, 2)), 1.6),
    ("bve", "logged"): ("BVE as logged", BVE_COLOUR, "-", 2.2),
    ("bve", "terminal"): ("BVE, s3 taken as the end", "#777777", (0, (1, 1.2)), 1.6),
}
MARKS = [("observed action", INK, "o"), ("unobserved action", Q_COLOUR, ".")]
MARKS += [("picked by the maximum", "#D62410", "*")]
FITS = {"mlp": ("network", Q_COLOUR), "cubic": ("cubic", "#AA4499")}


def draw_divergence(runs: Sequence[Run], prefix: str = "divergence") -> Drawing:
    """Q(s2, a2) over updates: a column per optimiser, a row per way to learn."""
    plain = [run for run in runs if run.spec["w"] == 1 and run.spec["factor"] == 1]
    ways = {
        "first layer fixed": [r for r in plain if way(r) == ("fixed", "all")],
        "first layer learned": [r for r in plain if way(r) == ("learned", "all")],
        "one transition\nper update": [r for r in plain if way(r) == ("fixed", "one")],
    }
    seeds = len({run.spec["seed"] for run in ways["one transition\nper update"]})
    note = (
        "value learned for (s2, a2), whose true value is 0, from w = 1; axis cut at 10⁴. Upper two "
        "rows: no randomness. "
        f"Lowest row: mean of n = {seeds} draws, band: 95% bootstrap interval. Bootstrapping at "
        "s3, where the log holds no action, makes BVE escape like Q-learning (lines coincide)."
        + bounded_words(runs)
    )
    with style():
        figure, grid = panels(3, 4, width=1.45, height=1.15, gap=(0.16, 0.2))
        for row, (name, members) in zip(grid, ways.items(), strict=True):
            for axes, optimiser in zip(row, OPTIMISERS, strict=True):
                escapes(axes, [run for run in members if run.spec["optimiser"] == optimiser])
            row[0].set_ylabel(name, color=INK)
        for axes, label in zip(grid[0], OPTIMISERS.values(), strict=True):
            axes.set_title(label, fontsize=SIZE, loc="left")
        for axes in grid[-1]:
            axes.set_xlabel("updates")
        share_scales(grid)
        names = [(name, colour, dash) for name, colour, dash, _ in LINES.values()]
        legend(grid[0][0], names, above=1.9)
        head(grid[0][0], "Escaping to infinity on three transitions", note, above=3.2)
        return save(figure, "divergence", "Escaping to infinity", note, prefix)


def bounded_words(runs: Sequence[Run]) -> str:
    """Bounded is not correct: what BVE prefers in s1 from another start."""
    found = next((r for r in runs if r.spec["method"] == "bve" and r.spec["w"] != 1), None)
    if found is None or found.last("greedy/s1") == 0:
        return ""
    return (
        " BVE as logged keeps the value it starts from: bounded, not correct "
        f"(from w = {found.spec['w']:g} it prefers a1 to the optimal a0)."
    )


def way(run: Run) -> tuple[str, str]:
    return run.spec["first_layer"], run.spec["batch"]


def escapes(axes: Axes, runs: Sequence[Run]) -> None:
    for (method, end), (_, colour, dash, width) in LINES.items():
        own = [r for r in runs if (r.spec["method"], r.spec["end"]) == (method, end)]
        by_step: dict[int, list[float]] = {}
        for run in own:
            for step, value in series(run, "q/s2/a2"):
                by_step.setdefault(step, []).append(value)
        steps = sorted(by_step)
        found = [statistics.estimate(np.clip(by_step[step], -TOP, 10 * TOP)) for step in steps]
        axes.plot(
            [max(step, 0.8) for step in steps],
            [each.mean for each in found],
            color=colour,
            linestyle=dash,
            linewidth=width,
        )
        if len(own) > 1:
            bounds = np.array([interval(each) for each in found]).T
            axes.fill_between(steps, *bounds, color=colour, alpha=0.3, linewidth=0)
    axes.set_xscale("log")
    axes.set_xlim(0.8, 5000)
    axes.xaxis.set_major_locator(FixedLocator([1, 10, 100, 1000]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: power(value)))
    axes.set_yscale("symlog", linthresh=1.0, linscale=0.6)
    axes.set_ylim(-0.9, TOP)
    axes.yaxis.set_major_locator(FixedLocator([0, 1, 10, 100, 1000, 10000]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: power(value)))
    axes.grid(axis="y", color=GRID, linewidth=0.7)


def interval(found: statistics.Estimate) -> tuple[float, float]:
    """A lone value is its own interval."""
    if found.low is None or found.high is None:
        return found.mean, found.mean
    return found.low, found.high


def draw_extrapolation(runs: Sequence[Run], prefix: str = "extrapolation") -> Drawing:
    """Above: the first fits as they came; below: shares and errors by observed actions."""
    shown = next(
        run for run in runs if run.spec["approximator"] == "mlp" and keyed(run, "example/0/q/")
    )
    n = runs[0].spec["seeds"][1]
    note = (
        f"above: network fitted to {shown.spec['observed']} of {shown.spec['actions']} actions, "
        "the first three random states as they came; red line: error at the maximum; dotted: true "
        f"maximum. Below: n = {n} random states each; bars: 95% intervals (shares: Wilson; means: "
        "bootstrap). σ: deviation of Q over the actions."
    )
    with style():
        figure, (above, below) = panels(2, (3, 2), width=6.6, height=1.9, gap=(0.3, 0.95))
        for index, axes in enumerate(above):
            fit_panel(axes, shown, index)
        above[0].set_ylabel("value, σ")
        share_scales([above])
        share_panel(below[0], runs)
        error_panel(below[1], runs)
        labels = [("true Q", INK, "-"), ("fitted", Q_COLOUR, "-")]
        legend(above[0], labels, marks=MARKS, above=0.6)
        head(above[0], "Over-estimation from extrapolation", note, above=2.0)
        return save(figure, "extrapolation", "Over-estimation from extrapolation", note, prefix)


def fit_panel(axes: Axes, run: Run, index: int) -> None:
    a, q, fit, seen = (
        np.array(list(keyed(run, f"example/{index}/{name}/").values()))
        for name in ("a", "q", "fit", "observed")
    )
    axes.plot(a, q, color=INK, linewidth=1.2)
    axes.plot(a, fit, color=Q_COLOUR, linewidth=1.8)
    axes.plot(a[seen == 0], fit[seen == 0], ".", color=Q_COLOUR, markersize=3.5)
    axes.plot(a[seen == 1], q[seen == 1], "o", color=INK, markersize=5, zorder=4)
    best = int(fit.argmax())
    axes.plot([a[best], a[best]], [q[best], fit[best]], color="#D62410", linewidth=1.6)
    axes.plot(a[best], fit[best], "*", color="#D62410", markersize=12, zorder=3)
    axes.axhline(q.max(), color="#9a9a9a", linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
    axes.set_xlabel("action")
    axes.set_xticks([-1, 0, 1])
    axes.margins(y=0.12)


def share_panel(axes: Axes, runs: Sequence[Run]) -> None:
    marks: list[Panel] = []
    for name, (label, colour) in FITS.items():
        for metric, words, dash in (
            ("exceeds", "at all", "-"),
            ("exceeds/clearly", "by > 0.1 σ", (0, (3, 1.5))),
        ):
            points = by_observed(runs, name, metric)
            found = [(x, float(np.mean(v)), *wilson(sum(v), len(v))) for x, v in points]
            marks.append(Panel(f"{label}, {words}", colour, dash, found))
    with_bars(axes, marks)
    axes.set_ylim(0, 1)
    axes.set_title("unobserved maximum above the true one", fontsize=SIZE, loc="left")
    axes.set_ylabel("share of states")


def error_panel(axes: Axes, runs: Sequence[Run]) -> None:
    marks: list[Panel] = []
    for name, (label, colour) in FITS.items():
        for metric, words, dash in (
            ("chosen_error", "at the maximum", "-"),
            ("unchosen_error", "all unobserved", (0, (3, 1.5))),
        ):
            points = by_observed(runs, name, metric)
            means = [(x, statistics.estimate(values)) for x, values in points]
            found = [(x, each.mean, *interval(each)) for x, each in means]
            marks.append(Panel(f"{label}, {words}", colour, dash, found))
    axes.axhline(0, color="#9a9a9a", linewidth=0.9, zorder=1)
    with_bars(axes, marks)
    axes.set_yscale("symlog", linthresh=1.0, linscale=1.0)
    axes.set_ylim(-1.2, 14)
    axes.yaxis.set_major_locator(FixedLocator([-1, -0.5, 0, 0.5, 1, 3, 10]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_title("mean error, fitted − true", fontsize=SIZE, loc="left")
    axes.set_ylabel("σ, log scale above 1")


def by_observed(runs: Sequence[Run], name: str, metric: str) -> list[tuple[int, list[float]]]:
    """(observed actions, one value per state)."""
    own = [run for run in runs if run.spec["approximator"] == name]
    own.sort(key=lambda run: run.spec["observed"])
    return [
        (run.spec["observed"], list(keyed(run, f"{metric}/", numbers=True).values())) for run in own
    ]


def with_bars(axes: Axes, lines: Sequence[Panel]) -> None:
    """Lines with intervals over a logarithmic number of observed actions; names in the panel."""
    for k, line in enumerate(lines):
        shift = 1.02 ** (k - (len(lines) - 1) / 2)
        x, y, low, high = (np.array(column) for column in zip(*line.points, strict=True))
        axes.vlines(x * shift, low, high, color=line.colour, linewidth=1.4, alpha=0.75)
        axes.plot(
            x * shift,
            y,
            color=line.colour,
            linestyle=line.dash,
            linewidth=1.6,
            marker="o",
            markersize=3.5,
            label=line.name,
        )
    ticks = sorted({x for line in lines for x, *_ in line.points})
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("observed actions")
    axes.grid(axis="y", color=GRID, linewidth=0.7)
    names_below(axes)


# By experiment, in the order to show them.
FIGURES: dict[str, tuple[Callable[[Sequence[Run]], Drawing], ...]] = {
    "divergence": (draw_divergence,),
    "extrapolation": (draw_extrapolation,),
    "improvement": (draw_improvement, draw_margins),
    "gridworld": (draw_gridworld, draw_layouts),
}


def draw(experiment: str, runs: Sequence[Run]) -> list[Drawing]:
    """All figures of a theory experiment; ids in them start with the figure's kind."""
    return [figure(runs) for figure in FIGURES[experiment]]
