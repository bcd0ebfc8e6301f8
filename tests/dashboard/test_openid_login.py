"""Tests in a browser that a person logs in by a real OpenID provider, sees the role, and logs out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.integration.serving import Serving
from tests.support.browser import barriers
from tests.support.openid_provider import OpenIdProvider

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.support.browser import Faults


@pytest.fixture
def provider() -> Iterator[OpenIdProvider]:
    running = OpenIdProvider(ada=["lake-operators"])
    yield running
    running.stop()


def test_a_person_logs_in_sees_the_role_and_logs_out(
    page: Page, faults: Faults, provider: OpenIdProvider, tmp_path: Path
) -> None:
    # The pages of the provider ask for fonts from elsewhere, and the dashboard asks who calls.
    faults.allow(re.escape(provider.issuer))
    faults.allow("ERR_|401")
    page.route(re.compile(r"^(?!http://127[.])"), lambda route: route.abort())
    roles = {"lake-operators": "operator"}
    with Serving(tmp_path, AUTOMATIC="false", **provider.settings(roles)) as service:
        provider.start(service.url)
        page.goto(f"{service.url}/#/workers")
        button = page.get_by_role("button", name=f"Log in with 127.0.0.1:{provider.port}")
        expect(button).to_be_focused()
        assert barriers(page) == []
        page.keyboard.press("Enter")
        page.locator("[name=login]").fill("ada")
        page.locator("[name=password]").fill("any")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Continue").click()

        expect(page.locator("#who")).to_have_text("ada (operator)")
        assert page.url == f"{service.url}/#/workers", "the page that was asked for"
        assert page.evaluate("document.cookie") == "", "no script can read the cookie"
        expect(page.locator("#audit")).to_be_hidden()

        page.get_by_role("button", name="Log out").click()
        page.get_by_role("button", name="Yes, sign me out").click()
        expect(page.get_by_role("heading", name="Log in")).to_be_visible()
        assert page.url.startswith(f"{service.url}/")
