"""The page as a browser draws it: light, dark, and on a phone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.browser import Tab, needs_browser
from support.images import pixels

from rbve.audit import audit
from rbve.data import Dataset
from rbve.report.audit_page import write

pytestmark = needs_browser


@pytest.fixture(scope="module")
def page(walk_log: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    action = np.where(walk_log.action == 2, 1, walk_log.action).astype(np.int32)
    found = audit(replace(walk_log, action=action))
    return write(found, tmp_path_factory.mktemp("page") / "audit.html", "walk")


def contrast(first: np.ndarray, second: np.ndarray) -> float:
    """As WCAG counts it."""

    def luminance(colour: np.ndarray) -> float:
        share = np.asarray(colour) / 255
        linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screenshot(browser: Tab, page: Path, scheme: str) -> None:
    browser.open(page, 1200, 2000, dark=scheme == "dark")
    assert browser.errors == []
    image = pixels(browser.screenshot()).astype(int)
    background = image[5, 5]
    assert (background.mean() > 230) == (scheme == "light")
    fill = browser.run("getComputedStyle(document.querySelector('#actions .mark-rect path')).fill")
    bar = np.array([int(part) for part in fill[4:-1].split(",")])
    assert (np.abs(image - bar).max(axis=-1) < 8).sum() > 5000
    assert contrast(bar, background) > 4
    assert browser.requests == [page.as_uri()]


def test_a_phone_scrolls_down_only(browser: Tab, page: Path) -> None:
    """Nothing reaches beyond 390 pixels, but what scrolls by itself."""
    browser.open(page, 390, 800)
    wide, held = browser.run("[document.documentElement.scrollWidth, innerWidth]")
    assert wide == held == 390


def test_hover_tells_an_action(browser: Tab, page: Path) -> None:
    browser.open(page)
    browser.hover("#actions .mark-rect path")
    first = browser.texts("#actions .tip > *")
    assert first[0].startswith("action: ")
    assert first[1].startswith("decisions: ")
