"""A browser for the tests of a file, started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.browser import Tab


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    tab = Tab(tmp_path_factory.mktemp("profile"))
    yield tab
    tab.close()
