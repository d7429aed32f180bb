"""Chromium without a screen, and without a word to the network."""

from __future__ import annotations

import shutil

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]

needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="needs Chromium: apt-get install chromium"
)
