import csv
import io
import re
import xml.etree.ElementTree as ElementTree

import pytest

from rbve import rows
from rbve.paper._pages.theory import divergence, gridworld, improvement, page_of, pictures, wilson
from rbve.paper.theory import keyed, numbered
from rbve.report import figure
from rbve.report.chart import Chart
from rbve.rows import Row, RowFile, Run

FIGURES = {
    "divergence": ("divergence-values",),
    "extrapolation": ("extrapolation-fits", "extrapolation-shares", "extrapolation-errors"),
    "improvement": ("improvement-families", "improvement-chain", "improvement-grid"),
    "gridworld": ("gridworld-policies", "gridworld-layouts"),
}
SAYS_N = r"n = \d+|n: processes|one process per point"


@pytest.mark.parametrize("experiment", FIGURES)
def test_figures_are_drawn_from_rows_on_disk(experiment, request, tmp_path):
    runs = list(request.getfixturevalue(f"{experiment}_runs").values())
    for run in runs:
        assert run.spec["experiment"] == experiment
        folder = tmp_path / run.job
        folder.mkdir(parents=True)
        file = RowFile(folder, run.job, run.spec, run.facts)
        file.keep(0)
        file.append(run.rows)
    read = rows.find([tmp_path])
    drawn = pictures(experiment, read)
    assert tuple(drawn) == FIGURES[experiment]
    assert all(png.startswith(b"\x89PNG") for png in drawn.values())
    figures = page_of(experiment).figures(read)
    assert figures == page_of(experiment).figures(runs)
    for each in figures:
        assert re.search(SAYS_N, each.note)
        if isinstance(each, Chart):
            assert all(series.points for panel in each.panels for series in panel.series)
        else:
            # The page says title and note beside it; a file stands alone.
            assert each.title in text_of(each)
            assert len(table(each)) > 3


def text_of(drawn: figure.Figure) -> str:
    return " ".join(ElementTree.fromstring(figure.svg(drawn)).itertext())


def table(drawn: figure.Figure) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(figure.as_csv(drawn))))


def test_families_say_how_many_fail(improvement_runs):
    families = improvement.families(list(improvement_runs.values()))
    text = text_of(families)
    assert "0 of 171" in text
    assert "chain, uniform behaviour" in text
    told = {line["family"]: line for line in table(families)}
    assert len(told) == len(improvement_runs)
    for run in improvement_runs.values():
        fail, count = (run.last(name) for name in ("violations", "mdps"))
        assert f"{fail:,.0f} of {count:,.0f}" in text
        line = told[run.facts["family"]]
        assert (float(line["fail"]), float(line["processes"])) == (fail, count)
        assert float(line["share"]) == fail / count


def test_margins_are_those_of_the_rows(improvement_runs):
    chain, grid = improvement.margins(list(improvement_runs.values()))
    assert [panel.title for panel in chain.panels] == ["absolute", "as a share"]
    run = improvement_runs["improvement/chain"]
    line = chain.panels[0].series[-1]
    metric = f"margin/gamma={line.name.removeprefix('γ = ')}"
    assert [p[:2] for p in line.points] == [
        (row.step, row.value) for row in run.rows if row.metric == metric
    ]
    assert grid.x_label != chain.x_label


def test_grid_world_says_its_values(gridworld_runs):
    policies = gridworld.policies(list(gridworld_runs.values()))
    text = text_of(policies)
    assert "start −8.79" in text
    assert "start 33.83" in text
    assert "start 34.69" in text
    assert "17 of 53 cells" in policies.note
    assert sum(row["framed"] for row in policies.rows) == 17
    first = next(line for line in table(policies) if line["policy"] == "optimal")
    assert (first["row"], first["column"], first["cell"]) == ("0", "0", "S")
    assert round(float(first["value"]), 2) == 34.69


def test_layouts_have_their_intervals(gridworld_runs):
    (chart,) = gridworld.layouts(list(gridworld_runs.values()))
    point = chart.panels[0].series[0].points[0]
    assert point.x == "−0.1"
    assert (point.low, point.high) == pytest.approx(wilson(point.y * point.n, point.n))
    assert gridworld.layouts([]) == []


def test_divergence_says_what_bounded_means(divergence_runs):
    (chart,) = divergence.figures(list(divergence_runs.values()))
    assert "n = 5 draws" in chart.note
    assert "from w = 2 it prefers a1" in chart.note


def test_a_line_that_escapes_ends_at_the_top(divergence_runs):
    (chart,) = divergence.figures(list(divergence_runs.values()))
    panels = {panel.title: {s.name: s.points for s in panel.series} for panel in chart.panels}
    assert len(panels) == 12
    lines = panels["SGD, first layer fixed"]
    assert lines["Q-learning"][-1].y == divergence.TOP
    assert lines["Q-learning"][-2].y < divergence.TOP
    assert {point.y for point in lines["BVE as logged"]} == {1.0}
    drawn = panels["SGD, one transition per update"]["Q-learning"][3]
    assert (drawn.n, drawn.low is None) == (5, False)


def test_wilson_by_hand():
    # No hit in n: the upper end is z² / (n + z²).
    assert wilson(0, 10) == pytest.approx((0, 3.841459 / 13.841459))
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert wilson(10, 10) == pytest.approx((1 - 3.841459 / 13.841459, 1))
    assert wilson(0, 0) == (0, 1)


def test_keyed_values():
    run = Run("j", {}, {}, [Row(0, "a/1", 5.0, 1), Row(0, "a/b/2", 6.0, 1), Row(0, "c/1", 7.0, 1)])
    assert keyed(run, "a/") == {"1": 5.0, "b/2": 6.0}
    assert numbered(run, "a/") == {"1": 5.0}
