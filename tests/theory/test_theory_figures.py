import re
import xml.etree.ElementTree as ElementTree

import pytest

from rbve import rows
from rbve.report import theory_figures, theory_grids
from rbve.report.theory_canvas import keyed, wilson
from rbve.rows import Row, RowFile, Run

FIGURES = {
    "divergence": ("divergence",),
    "extrapolation": ("extrapolation",),
    "improvement": ("improvement", "margins"),
    "gridworld": ("gridworld", "layouts"),
}


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
    drawings = theory_figures.draw(experiment, rows.find([tmp_path]))
    assert tuple(drawing.kind for drawing in drawings) == FIGURES[experiment]
    for drawing, again in zip(drawings, theory_figures.draw(experiment, runs), strict=True):
        assert drawing.png.startswith(b"\x89PNG")
        ElementTree.fromstring(drawing.svg)
        assert f'id="{drawing.kind}-' in drawing.svg
        assert re.search(r"n = \d+|n: processes|one process per point", drawing.description)
        assert again.svg == drawing.svg


def text_of(drawing) -> str:
    return " ".join(ElementTree.fromstring(drawing.svg).itertext())


def test_families_say_how_many_fail(improvement_runs):
    text = text_of(theory_grids.draw_improvement(list(improvement_runs.values())))
    assert "0 of 171" in text
    assert "chain, uniform behaviour" in text
    for run in improvement_runs.values():
        assert f"{run.last('violations'):.0f} of {run.last('mdps'):.0f}" in text


def test_grid_world_says_its_values(gridworld_runs):
    drawing = theory_grids.draw_gridworld(list(gridworld_runs.values()))
    text = text_of(drawing)
    assert "start -8.79" in text
    assert "start 33.83" in text
    assert "start 34.69" in text
    assert "17 of 53 cells" in drawing.description


def test_divergence_says_what_bounded_means(divergence_runs):
    drawing = theory_figures.draw_divergence(list(divergence_runs.values()))
    assert "n = 5 draws" in drawing.description
    assert "from w = 2 it prefers a1" in drawing.description


def test_wilson_by_hand():
    # No hit in n: the upper end is z² / (n + z²).
    assert wilson(0, 10) == pytest.approx((0, 3.841459 / 13.841459))
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert wilson(10, 10) == pytest.approx((1 - 3.841459 / 13.841459, 1))
    assert wilson(0, 0) == (0, 1)


def test_keyed_values():
    run = Run("j", {}, {}, [Row(0, "a/1", 5.0, 1), Row(0, "a/b/2", 6.0, 1), Row(0, "c/1", 7.0, 1)])
    assert keyed(run, "a/") == {"1": 5.0, "b/2": 6.0}
    assert keyed(run, "a/", numbers=True) == {"1": 5.0}
