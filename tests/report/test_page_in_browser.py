import subprocess

import numpy as np
import pytest
from matplotlib.image import imread
from support.browser import BROWSER, QUIET, needs_browser

from rbve.report import write_report
from rbve.rows import Row, RowFile

pytestmark = needs_browser


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    facts = {"env": "catch", "behaviour_return": 0.6, "best_return": 1.0, "random_return": -0.6}
    for algorithm, level in (("rbve", 0.9), ("dqn", 0.1)):
        for seed in range(3):
            spec = {"algorithm": algorithm, "env": "catch"}
            job = {"data": {"path": f"data/catch-seed{seed}"}, "spec": spec, "seed": seed}
            place = folder / "runs" / f"{algorithm}{seed}"
            place.mkdir(parents=True)
            file = RowFile(place, f"{algorithm}-{seed}", job, facts)
            file.keep(0)
            value = level + 0.03 * seed
            file.append([Row(step, "return", value * step / 500, 10) for step in (100, 300, 500)])
            file.append([Row(500, "final/return", value, 50)])
            file.append([Row(500, "final/overestimation", 10.0 * (algorithm == "dqn"), 50)])
    return write_report([folder / "runs"], folder / "page")


def browse(page, tmp_path, *options):
    command = [BROWSER, *QUIET, f"--user-data-dir={tmp_path / 'profile'}", *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def test_charts_are_in_the_document(page, tmp_path):
    document = browse(page, tmp_path, "--dump-dom")
    assert document.count("<svg") == 3
    for title in ("Learning curves", "Final returns", "Over-estimation error"):
        assert f"<title>{title}: catch</title>" in document
    assert "Best mean return: R-BVE 0.93" in document


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screenshot(page, tmp_path, scheme):
    # Blink's preferredColorScheme: 0 is dark, 1 is light.
    setting = f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"
    file = tmp_path / "page.png"
    browse(page, tmp_path, setting, "--window-size=1200,1600", f"--screenshot={file}")
    pixels = imread(file)[..., :3]
    assert pixels.shape[:2] == (1600, 1200)
    background = pixels[5, 5]
    assert (background.mean() > 0.9) == (scheme == "light")
    assert 0.01 < (np.abs(pixels - background).max(axis=-1) > 0.2).mean() < 0.9
    # R-BVE's red, which the figures carry in both schemes on their white cards.
    red = np.abs(pixels - np.array([0xD6, 0x24, 0x10]) / 255).max(axis=-1) < 0.04
    assert red.sum() > 100
