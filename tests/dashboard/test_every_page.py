"""Every page in every look: nothing fails on it, nothing hinders anybody, nothing is cut off."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import DESKTOP, PHONE, barriers, is_wider_than_the_window

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser import Theme
    from tests.dashboard.conftest import OpenPage
    from tests.dashboard.installation import Installation

LOOKS: dict[str, tuple[Theme, tuple[int, int]]] = {
    "light": ("light", DESKTOP),
    "dark-phone": ("dark", PHONE),
    "dark": ("dark", DESKTOP),
    "light-phone": ("light", PHONE),
}
_DEFAULT = ("light", "dark-phone")
# Set to a folder, it keeps a picture of each page in each look.
PICTURES = os.environ.get("GROUNDSKEEPER_TEST_PICTURES")


@pytest.mark.parametrize(
    "look", [each if each in _DEFAULT else pytest.param(each, marks=pytest.mark.exhaustive) for each in LOOKS]
)
def test_a_page_is_open_to_everybody_in_every_look(new_page: OpenPage, installation: Installation, look: str) -> None:
    page = new_page(*LOOKS[look])
    for name in installation.pages:
        page.goto("about:blank")  # Otherwise what is awaited may still be that of the page before.
        page.goto(installation.address(name))
        page.wait_for_selector("main h1, main h2")
        page.wait_for_selector("#pulse.live")
        keep(page, f"{name}-{look}")
        assert barriers(page) == [], name
        assert not is_wider_than_the_window(page), name


def keep(page: Page, name: str) -> None:
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name.replace(' ', '-')}.png", full_page=True)
