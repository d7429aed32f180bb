"""How far hidden reasons for the log's decisions could move the values of policies."""

import math

from rbve.off_policy.judge import OpeResult
from rbve.report.chart import Chart, Mark, Panel, Point, Series
from rbve.report.ope_words import BLUE, ORANGE, html_table
from rbve.report.page import Section


def confounding_section(result: OpeResult) -> list[Section]:
    judged = [each for each in result.judgements if each.confounding and each.best]
    if not judged:
        return []
    panels = []
    for each in judged:
        sides = (("highest", [b.high for b in each.confounding]),
                 ("lowest", [b.low for b in each.confounding]))  # fmt: skip
        series = tuple(
            Series(name, BLUE if name == "lowest" else ORANGE, tuple(
                Point(bounds.odds, value)
                for bounds, value in zip(each.confounding, values, strict=True)
            ))
            for name, values in sides
        )  # fmt: skip
        panels.append(Panel(each.policy, series, (Mark(result.behaviour, "behaviour"),)))
    chart = Chart(
        "hidden-confounding", "Value under hidden confounding",
        "Highest and lowest self-normalised value if reasons that the log does not hold change the "
        "odds of actions by up to Λ. Sampling error is not in it.",
        "lines", "Λ", "value", tuple(panels),
    )  # fmt: skip
    rows = [(each.policy, "none does" if each.breakdown is None or not math.isfinite(each.breakdown)
             else f"{each.breakdown:.2f}") for each in judged]  # fmt: skip
    heads = ("policy", "odds Λ at which it may be no different from the behaviour")
    return [Section("confounding", "What the log may not show", html_table(heads, rows), (chart,))]
