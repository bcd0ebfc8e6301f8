"""Pages of a real browser on a real service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.dashboard.installation import Installation
from tests.support import browser as chromium
from tests.support.browser import DESKTOP, Faults, new_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

    from tests.support.browser import Theme

    OpenPage = Callable[..., Page]


@pytest.fixture(scope="package")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Starts one service for the folder. Tests leave the tables and the running job behind as they were."""
    made = Installation(tmp_path_factory.mktemp("dashboard"))
    yield made
    made.close()


@pytest.fixture
def browser() -> Browser:
    if chromium.CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine to open the dashboard with")
    return chromium.shared()


@pytest.fixture
def faults_of(browser: Browser) -> Iterator[dict[Page, Faults]]:
    """Collects the faults of each page. A fault that a test has not allowed fails it."""
    every: dict[Page, Faults] = {}
    yield every
    assert [fault for faults in every.values() for fault in faults.unexpected()] == []


@pytest.fixture
def new_page(browser: Browser, faults_of: dict[Page, Faults]) -> Iterator[OpenPage]:
    """Opens an empty page with a theme and a size; each has cookies of its own."""
    contexts = []

    def open_page(theme: Theme = "light", size: tuple[int, int] = DESKTOP) -> Page:
        context = new_context(browser, theme, size)
        contexts.append(context)
        page = context.new_page()
        faults_of[page] = Faults(page)
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture
def page(new_page: OpenPage) -> Page:
    return new_page()


@pytest.fixture
def faults(page: Page, faults_of: dict[Page, Faults]) -> Faults:
    """Returns the faults of `page`."""
    return faults_of[page]
