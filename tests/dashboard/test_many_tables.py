"""Measures the overview of a thousand tables: the time to the first row, and the calls of an open page."""

from __future__ import annotations

import os
import statistics
import time
from datetime import timedelta
from typing import TYPE_CHECKING

import httpx
import pytest
import sqlalchemy as sa

from service.db import migrate
from service.db.engine import open_engine, writing
from service.model.clock import utc_now
from tests.integration.control_plane.conftest import FakeClock
from tests.integration.control_plane.test_problems_of_many import ill
from tests.integration.serving import Serving

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.dashboard.conftest import OpenPage

TABLES = int(os.environ.get("GROUNDSKEEPER_TEST_TABLES", "1000"))
_VISITS = 15
# The time since the navigation began at which the first row was on the page, and the calls of the API until then.
_FIRST_ROW = """
const calls = [];
const really = window.fetch;
window.fetch = (path, ...more) => {
  calls.push(new URL(path).pathname);
  return really(path, ...more);
};
window.firstRow = new Promise((resolve) => {
  new MutationObserver((_, observer) => {
    if (!document.querySelector(".matrix tbody tr")) return;
    observer.disconnect();
    requestAnimationFrame(() => resolve([performance.now(), [...calls]]));
  }).observe(document, { childList: true, subtree: true });
});
"""


def fill(database: str) -> None:
    """Fills the database before the service starts, so that it has nothing to poll."""
    engine = open_engine(database)
    migrate.upgrade(engine)
    ill(engine, FakeClock(utc_now() - timedelta(hours=1)), range(TABLES))
    with writing(engine) as connection:
        connection.execute(sa.text("UPDATE watches SET next_poll_at = '2100-01-01', looked_at = '2026-01-01'"))
    engine.dispose()


def visit(page: Page, url: str) -> tuple[float, list[str]]:
    """Returns the milliseconds to the first row, and the calls of the API until then."""
    page.add_init_script(_FIRST_ROW)
    page.goto(f"{url}/", wait_until="commit")
    return first_row(page)


def first_row(page: Page) -> tuple[float, list[str]]:
    # Asking again and again would slow the page down.
    milliseconds, calls = page.evaluate("window.firstRow")
    return milliseconds, calls


@pytest.mark.exhaustive
def test_a_thousand_tables_are_shown_at_once_and_an_idle_page_asks_for_nothing(
    new_page: OpenPage, tmp_path: Path
) -> None:
    fill(f"sqlite:///{tmp_path}/groundskeeper.db")
    # All the problems are new, and it would take an hour to announce them, some hundred at a time.
    with Serving(tmp_path, AUTOMATIC="false", PROBLEM_SECONDS="600") as service:
        began = utc_now()
        httpx.get(f"{service.url}/v1/overview", timeout=60).raise_for_status()
        cold = (utc_now() - began).total_seconds()
        times = []
        for _ in range(_VISITS):
            fresh = new_page()
            files: list[str] = []
            fresh.on("request", lambda each, files=files: files.append(each.url) if "/v1/" not in each.url else None)
            milliseconds, calls = visit(fresh, service.url)
            times.append(milliseconds)
            # The page opens the stream of events after the overview, which says where the stream begins.
            assert (sorted(calls[:2]), calls[2:]) == (["/v1/overview", "/v1/session"], ["/v1/events"])
            # The page, its script, its style sheet, and the icon for the page and for the tab.
            assert len(files) <= 5
            fresh.close()
            # The end of this page and the service's computations after the call must not count for the next visit.
            time.sleep(2)
        again = new_page()
        visit(again, service.url)
        warm = []
        for _ in range(_VISITS):
            again.reload(wait_until="commit")
            warm.append(first_row(again)[0])
        again.close()
        page = new_page()
        visit(page, service.url)
        # The page asks again for some seconds for problems that are being computed.
        page.wait_for_timeout(20_000)
        idle: list[str] = []
        page.on("request", lambda each: idle.append(each.url))
        page.wait_for_timeout(60_000)
        cached = statistics.median(warm)
        # The first answer after a start has no counts yet, because problems are counted in the background.
        counts = httpx.get(f"{service.url}/v1/overview", timeout=60).json()["problems"]["counts"]
        assert sum(counts.values()) >= TABLES
        print(
            f"{TABLES} tables with {sum(counts.values())} problems: first row after {statistics.median(times):.0f} ms"
            f" (median of {_VISITS} with an empty cache, {min(times):.0f} to {max(times):.0f}), {cached:.0f} ms with"
            f" cached files; {len(calls)} calls of the API, {len(files)} files; first call after the start"
            f" {cold * 1000:.0f} ms; idle: {len(idle)} requests a minute"
        )
        page.close()
        assert idle == []
        assert statistics.median(times) < 600
