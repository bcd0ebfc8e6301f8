"""Every page with every theme and size has no errors, no problems of accessibility, and no clipped content."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.dashboard.installation import ORDERS, Installation
from tests.support.browser import DESKTOP, PHONE, barriers, is_wider_than_the_window
from tests.support.forked_service import ended

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playwright.sync_api import Page

    from tests.dashboard.conftest import OpenPage
    from tests.support.browser import Faults, Theme

LOOKS: dict[str, tuple[Theme, tuple[int, int]]] = {
    "light": ("light", DESKTOP),
    "dark-phone": ("dark", PHONE),
    "dark": ("dark", DESKTOP),
    "light-phone": ("light", PHONE),
}
# The elements of the other pages are on these, too. Notifications are tested in `test_policies.py` with this look.
BY_PHONE = ("overview", "table", "timeline", "running job", "policies", "calendar")
# Tests of single pages look at these in the light, with more on them (`test_console.py`, `test_pages.py`,
# `test_policies.py`, `test_report_page.py`).
ALONE = {
    "overview",
    *("jobs of a table", "decisions", "writers", "timeline", "files"),
    *("report", "discover", "calendar", "policy of a pattern"),
}
# If this variable names a folder, the tests save a picture of each page with each theme and size there.
PICTURES = os.environ.get("GROUNDSKEEPER_TEST_PICTURES")


in_every_look = pytest.mark.parametrize(
    "look", [each if each == "light" else pytest.param(each, marks=pytest.mark.exhaustive) for each in LOOKS]
)


def test_a_page_is_accessible(new_page: OpenPage, installation: Installation) -> None:
    others = [each for each in installation.pages if each not in ALONE]
    assert len(others) == len(installation.pages) - len(ALONE)
    require_accessible_pages(new_page, installation, "light", others)


@pytest.mark.exhaustive
@pytest.mark.parametrize("look", LOOKS)
def test_a_page_is_accessible_with_every_theme_and_size(
    new_page: OpenPage, installation: Installation, look: str
) -> None:
    require_accessible_pages(new_page, installation, look, installation.pages)


def test_pages_of_each_kind_are_accessible_on_a_dark_phone(new_page: OpenPage, installation: Installation) -> None:
    require_accessible_pages(new_page, installation, "dark-phone", BY_PHONE)


def require_accessible_pages(new_page: OpenPage, installation: Installation, look: str, names: Iterable[str]) -> None:
    page = new_page(*LOOKS[look])
    for name in names:
        page.goto("about:blank")  # The awaited element might otherwise be one of the previous page.
        page.goto(installation.address(name))
        page.wait_for_selector("main h1, main h2")
        page.wait_for_selector("#pulse.live")
        save_picture(page, f"{name}-{look}")
        assert barriers(page) == [], name
        assert not is_wider_than_the_window(page), name


@in_every_look
def test_the_pages_about_problems_are_accessible(new_page: OpenPage, installation: Installation, look: str) -> None:
    page = new_page(*LOOKS[look])
    for path in ("problems", "problems/job-conflict"):
        page.goto(f"{installation.url}/{path}")
        save_picture(page, f"{path.replace('/', '-')}-{look}")
        assert barriers(page) == [], path
        assert not is_wider_than_the_window(page), path


@in_every_look
def test_the_page_of_a_table_that_cannot_be_read_is_accessible(
    new_page: OpenPage, faults_of: dict[Page, Faults], installation: Installation, look: str
) -> None:
    page = new_page(*LOOKS[look])
    faults_of[page].allow("4(04|22)")  # The table's files and lock do not exist.
    page.goto(f"{installation.url}/#/tables/{ORDERS}")
    page.wait_for_selector("main h1")
    page.wait_for_selector("#pulse.live")
    save_picture(page, f"unreadable-{look}")
    assert barriers(page) == []
    assert not is_wider_than_the_window(page)


@pytest.mark.exhaustive
def test_the_log_in_is_accessible(new_page: OpenPage, faults_of: dict[Page, Faults], tmp_path: Path) -> None:
    made = Installation(tmp_path)
    try:
        first = new_page()
        faults_of[first].allow("401")
        made.log_in(first, "admin")
        first.goto("about:blank")
        for look, (theme, size) in LOOKS.items():
            page = new_page(theme, size)
            faults_of[page].allow("401")
            page.goto(made.address("overview"))
            page.wait_for_selector("main input")
            save_picture(page, f"log-in-{look}")
            assert barriers(page) == []
            assert not is_wider_than_the_window(page)
            page.goto("about:blank")
        # A page that is open asks for another token once its own is revoked.
        faults_of[first].allow("ERR_")
        first.goto(made.address("overview"))
        first.wait_for_selector("#pulse.live")
        [token, *_] = ended("token", "list", cwd=tmp_path, env=os.environ).stdout.split()
        ended("token", "revoke", token, cwd=tmp_path, env=os.environ)
        expect(first.locator("main input[name=token]")).to_be_focused()
        expect(first.locator("main")).not_to_contain_text("trips")
        first.goto("about:blank")
    finally:
        made.close()


def save_picture(page: Page, name: str) -> None:
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name.replace(' ', '-')}.png", full_page=True)
