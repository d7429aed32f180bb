"""The page as a browser draws it: light, dark, and on a phone."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from support.browser import BROWSER, QUIET, needs_browser

from rbve.audit import audit
from rbve.data import Dataset
from rbve.report.audit_page import write

BARS = {"light": (0x3B, 0x6E, 0xA5), "dark": (0x6E, 0xA3, 0xDC)}

pytestmark = needs_browser


@pytest.fixture(scope="module")
def page(walk_log: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    action = np.where(walk_log.action == 2, 1, walk_log.action).astype(np.int32)
    found = audit(replace(walk_log, action=action))
    return write(found, tmp_path_factory.mktemp("page") / "audit.html", "walk")


def browse(page: Path, tmp_path: Path, *options: str) -> str:
    command = [
        str(BROWSER), *QUIET, f"--user-data-dir={tmp_path / 'profile'}", *options, page.as_uri()
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screenshot(page: Path, tmp_path: Path, scheme: str) -> None:
    # Blink's preferredColorScheme: 0 is dark, 1 is light.
    setting = f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"
    file = tmp_path / "page.png"
    browse(page, tmp_path, setting, "--window-size=1200,2000", f"--screenshot={file}")
    pixels = imread(file)[..., :3]
    background = pixels[5, 5]
    assert (background.mean() > 0.9) == (scheme == "light")
    bars = np.abs(pixels - np.array(BARS[scheme]) / 255).max(axis=-1) < 0.03
    assert bars.sum() > 5000


def test_a_phone_scrolls_down_only(page: Path, tmp_path: Path) -> None:
    """In a frame 390 pixels wide nothing reaches beyond, but what scrolls by itself."""
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<iframe id="f" width="390" height="800" srcdoc="{escaped(page)}"></iframe>'
        "<script>onload = () => { const root = document.getElementById('f').contentDocument."
        "documentElement; document.title = root.scrollWidth + ' of ' + root.clientWidth; };"
        "</script>"
    )
    document = browse(frame, tmp_path, "--dump-dom", "--virtual-time-budget=3000")
    wide, held = document.split("<title>")[1].split("</title>")[0].split(" of ")
    assert int(wide) == int(held) <= 390


def escaped(page: Path) -> str:
    return page.read_text().replace("&", "&amp;").replace('"', "&quot;")
