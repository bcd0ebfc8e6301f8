"""The card of a table's lock: a lock that cannot be broken any more by the time somebody tries."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.small_table import SmallTable

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.browser import Faults
    from tests.dashboard.installation import Installation


@pytest.mark.exhaustive
def test_a_lock_that_another_has_taken_meanwhile_is_kept_and_the_page_says_so(
    page: Page, faults: Faults, installation: Installation, tmp_path: Path
) -> None:
    faults.allow("409")
    table = SmallTable(tmp_path / "taken")
    table.commit("001", {"p": {}})
    lock = table.base / ".hoodie" / "lock"
    lock.touch()
    three_hours_ago = time.time() - 3 * 3600
    os.utime(lock, (three_hours_ago, three_hours_ago))
    table_id = installation.post("/tables", {"base_path": str(table.base)})["id"]
    page.goto(f"{installation.url}/#/tables/{table_id}")
    desk = page.get_by_role("region", name="The table's lock")
    desk.get_by_label("Why its holder is dead").fill("It seemed so.")
    os.utime(lock)
    desk.get_by_role("button", name="Break the lock").click()
    page.get_by_role("dialog").get_by_role("button", name="Break the lock").click()
    expect(desk.locator(".problem")).to_contain_text("The lock has not been held for long enough")
    expect(desk.get_by_role("button", name="Break the lock")).to_have_count(0)
    assert lock.exists()
    page.goto("about:blank")
    installation.api.delete(f"/tables/{table_id}").raise_for_status()
