"""Tables of measurements for the site, from results/figures: every number there was run."""

from __future__ import annotations

import csv
import functools
import math
from pathlib import Path

from rbve.report.labels import METHODS

FIGURES = Path(__file__).parents[1] / "results" / "figures"
STUDIES = {
    "bsuite": "bsuite, 10% of the episodes, 100,000 updates, 5 datasets",
    "minatar": "MinAtar, in Atari's place, 10,000 updates of batch 32, 4 datasets",
    "memory": "levels with memory, 5,000 updates of 8 sequences, 4 datasets",
    "boxing": "Boxing from a scripted player's frames, 10,000 updates, 1 recording",
}
# With memory the same losses have other names.
ALSO = {"dqn": ("R2D2",), "rdqn": ("R-R2D2",)}
# Where settings are compared one by one.
PROBLEMS = (
    "catch · 10% of episodes",
    "cartpole · 10% of episodes",
    "cartpole · 1% of episodes",
    "mountain_car · 10% of episodes",
)
_OTHER_CHOICE = "best setting of all, the paper's way"


@functools.cache
def rows(file: str) -> list[dict[str, str]]:
    with open(FIGURES / file, encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def algorithm(name: str) -> str:
    """Scores of a method in each study, and what its settings did; empty if it has none."""
    return "\n".join(filter(None, [scores(name), by_setting(name)]))


def scores(name: str) -> str:
    label = METHODS[name][0] if name in METHODS else name
    labels = (label, *ALSO.get(name, ()))
    lines = []
    for study, words in STUDIES.items():
        for row in rows(f"{study}-scores.csv"):
            own = row["x"].split(",")[0].split(" (")[0] in labels
            if own and row["series"] != _OTHER_CHOICE:
                lines.append((words, row["x"], row["panel"], interval(row)))
    if not lines:
        return ""
    head = "| study | shown as | data | score |\n|---|---|---|--:|\n"
    before = (
        "Normalised score: 0 a random policy, 100 the online agent's best snapshot; mean over "
        "datasets [95% Student interval].\n\n"
    )
    return before + head + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def interval(row: dict[str, str]) -> str:
    centre = f"{float(row['y']):.0f}".replace("-", "−")
    if not row["low"]:
        return centre
    low, high = (f"{float(row[end]):.0f}".replace("-", "−") for end in ("low", "high"))
    return f"{centre} [{low}, {high}]"


def by_setting(name: str) -> str:
    lines = []
    for problem in PROBLEMS:
        for row in rows("summary.csv"):
            if row["problem"] == problem and row["algorithm"] == name and row["kind"] == "method":
                lines.append((problem, setting(row["method"]), row["runs"], row["diverged"],
                              number(row["normalised_return_mean"]),
                              number(row["overestimation_median"]),
                              number(row["value_error_mean"])))  # fmt: skip
    if not lines:
        return ""
    heads = ("data", "setting", "runs", "diverged", "score", "over-estimation (median)",
             "value error")  # fmt: skip
    before = (
        "\nEach setting alone, mean over runs (of over-estimation, the mean of max(Q − G, 0)² over "
        "visited states, the median, since one run can dwarf the rest):\n\n"
    )
    marks = "|---|---|--:|--:|--:|--:|--:|\n"
    return f"{before}| {' | '.join(heads)} |\n{marks}" + "".join(
        f"| {' | '.join(line)} |\n" for line in lines
    )


def setting(method: str) -> str:
    """What follows the name, without what is the default everywhere."""
    usual = ("filter=exponential", "form=hinge2", "bounded=false", "β=0.5", "ν=0.05")
    label = max((each for each, _ in METHODS.values() if method.startswith(each)), key=len)
    words = method.removeprefix(label).split()
    return " ".join(each for each in words if each not in usual) or "the default"


def number(text: str) -> str:
    if not text or not math.isfinite(float(text)):
        return "–"
    value = float(text)
    shown = f"{value:.1e}" if abs(value) >= 1e5 else f"{value:,.0f}" if abs(value) >= 100 else (
        f"{value:.1f}" if abs(value) >= 1 else f"{value:.2f}")  # fmt: skip
    return shown.replace("-", "−")
