"""Tests the card of a table's lock that a dead writer has left."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.support.small_table import SmallTable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Locator, Page

    from tests.dashboard.installation import Installation
    from tests.support.browser import Faults


@pytest.fixture
def lock(installation: Installation, page: Page, tmp_path: Path) -> Iterator[Path]:
    """A lock that has been held for three hours. The page of its table is open."""
    table = SmallTable(tmp_path / "locked")
    table.commit("001", {"p": {}})
    lock = table.base / ".hoodie" / "lock"
    lock.touch()
    three_hours_ago = time.time() - 3 * 3600
    os.utime(lock, (three_hours_ago, three_hours_ago))
    table_id = installation.post("/tables", {"base_path": str(table.base)})["id"]
    page.goto(f"{installation.url}/#/tables/{table_id}")
    yield lock
    page.goto("about:blank")  # The page would ask for a table that is gone.
    installation.api.delete(f"/tables/{table_id}").raise_for_status()


@pytest.fixture
def panel(page: Page) -> Locator:
    return page.get_by_role("region", name="The table's lock")


@pytest.mark.exhaustive
def test_the_lock_is_broken_with_a_reason(installation: Installation, page: Page, lock: Path, panel: Locator) -> None:
    expect(panel).to_contain_text("a writer that Hudi's lock file does not name")
    panel.get_by_label("Why its holder is dead").fill("Its machine was switched off.")
    panel.get_by_role("button", name="Break the lock").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("The lock has been held for 3 h")
    dialog.get_by_role("button", name="Break the lock").click()
    expect(panel).to_contain_text("The lock was broken")
    assert not lock.exists()
    newest = installation.api.get("/audit", params={"limit": 5}).json()["items"]
    assert any("Its machine was switched off." in str(each) for each in newest)


@pytest.mark.exhaustive
def test_a_lock_that_another_has_taken_meanwhile_is_kept_and_the_page_says_so(
    page: Page, faults: Faults, lock: Path, panel: Locator
) -> None:
    faults.allow("409")
    panel.get_by_label("Why its holder is dead").fill("It seemed so.")
    os.utime(lock)
    panel.get_by_role("button", name="Break the lock").click()
    page.get_by_role("dialog").get_by_role("button", name="Break the lock").click()
    expect(panel.locator(".problem")).to_contain_text("The lock has not been held for long enough")
    expect(panel.get_by_role("button", name="Break the lock")).to_have_count(0)
    assert lock.exists()
