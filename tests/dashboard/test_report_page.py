"""Tests the page of the report in a browser: its period and groups are in the address, and the keyboard is enough."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from jobs.contract import JobKind
from service.db import schema
from service.db.engine import writing
from service.model.clock import utc_now
from service.queue import attempt_figures
from service.queue.attempt_figures import Figures
from service.reports.fleet_samples import SLOT
from tests.dashboard.installation import ORDERS
from tests.dashboard.test_every_page import save_picture
from tests.support.browser import barriers, is_wider_than_the_window

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.dashboard.conftest import OpenPage
    from tests.dashboard.installation import Installation
    from tests.support.browser import Faults, Theme


@pytest.fixture(scope="module", autouse=True)
def busy_week(installation: Installation) -> None:
    """Adds the figures of a week in which much was done, and the samples of its last day."""
    now = utc_now()
    with writing(installation.service.engine) as connection:
        for number in range(40):
            table, at = (f"tbl_{number % 6}", now - timedelta(days=6, hours=-number))
            freed = Figures(1, number % 5 == 0, 900.0 * number, 1800.0 * number, number << 30, 12)
            attempt_figures.add(connection, table, JobKind.CLEANING, freed, at)
            merged = Figures(1, 0, 600.0, 1200.0, log_files=80, log_bytes=5 << 30)
            attempt_figures.add(connection, ORDERS, JobKind.COMPACTION, merged, at)
        slot = int(now.timestamp() // SLOT.total_seconds())
        rows = [
            {
                "slot": slot - number,
                "at": now - number * SLOT,
                "tables": 2,
                "log_bytes": (number * 7 % 60) << 30,
                "queued": number % 9,
                "running": number % 3,
                "slots": 2,
                "succeeded": 1000 - 2 * number,
                "failed": 300 - number // 2 - (number % 2 == 0),
                "cancelled": 0,
                "freed_bytes": (300 - number) << 31,
            }
            for number in range(1, 280)
        ]
        # The service itself may have taken a sample.
        connection.execute(schema.fleet_samples.delete())
        connection.execute(schema.fleet_samples.insert(), rows)


def test_the_report_is_reached_from_the_header_and_read_with_the_keyboard(
    page: Page, installation: Installation
) -> None:
    page.goto(f"{installation.url}/")
    page.get_by_role("link", name="Report").focus()
    page.keyboard.press("Enter")
    totals = page.get_by_role("region", name="In all")
    expect(totals).to_contain_text("GiB in")
    expect(totals).to_contain_text("GB-hours")
    expect(totals).to_contain_text("Cost")
    table = page.get_by_role("table", name="By table")
    expect(table.locator("tbody tr").first).to_contain_text("h")
    expect(table).to_contain_text("trips")
    expect(table).to_contain_text("tbl_5 (not registered any more)")
    page.locator("select[name=by]").focus()
    page.keyboard.press("End")
    kinds = page.get_by_role("table", name="By kind")
    expect(kinds).to_contain_text("Cleaning")
    assert "by=kind" in page.url
    page.get_by_label("Bars show").select_option("freed_bytes")
    expect(page.get_by_role("img", name="Cleaning: ")).to_have_attribute("aria-label", "Cleaning: 780 GiB")
    page.locator("input[name=owner]").fill("nobody")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="By kind")).to_contain_text("Nothing ran in this period.")
    page.go_back()
    expect(kinds).to_contain_text("Compaction")


def test_a_period_is_chosen_by_name_or_by_its_days(page: Page, installation: Installation) -> None:
    page.goto(f"{installation.url}/#/report")
    page.locator("select[name=period]").select_option("own")
    page.locator("input[name=since]").fill("2020-01-01")
    page.locator("input[name=until]").fill("2020-02-01")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("1 Jan 2020, 00:00:00 to 1 Feb 2020, 00:00:00")
    expect(page.get_by_role("region", name="Trend of all tables")).to_contain_text("No sample was taken")
    page.reload()
    expect(page.locator("input[name=since]")).to_have_value("2020-01-01")
    page.locator("select[name=period]").select_option("month")
    expect(page.locator("input[name=since]")).to_have_count(0)
    assert "since" not in page.url
    # A link in a message has moments instead of days.
    page.goto(
        f"{installation.url}/#/report?since=2020-01-06T07%3A00%3A00%2B00%3A00&until=2020-01-13T07%3A00%3A00%2B00%3A00"
    )
    expect(page.locator("main")).to_contain_text("6 Jan 2020, 08:00:00 to 13 Jan 2020, 08:00:00")


def test_an_invalid_period_is_refused_with_a_message(page: Page, installation: Installation, faults: Faults) -> None:
    faults.allow("422")
    page.goto(f"{installation.url}/#/report?since=2020-02-01&until=2020-01-01")
    expect(page.locator("main .problem")).to_contain_text("must be before `until`")
    page.locator("input[name=until]").fill("2020-03-01")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("main .problem")).to_have_count(0)
    expect(page.get_by_role("region", name="In all")).to_be_visible()


@pytest.mark.parametrize(
    ("theme", "width"),
    [
        ("light", 1440),
        ("dark", 390),
        *(
            pytest.param(theme, width, marks=pytest.mark.exhaustive)
            for theme in ("light", "dark")
            for width in (390, 1024, 1440)
        ),
    ],
)
def test_the_report_fits_every_window(new_page: OpenPage, installation: Installation, theme: Theme, width: int) -> None:
    page = new_page(theme, (width, 900))
    page.goto(f"{installation.url}/#/report")
    trend = page.get_by_role("region", name="Trend of all tables")
    expect(trend.get_by_role("img")).to_have_count(5)
    trend.get_by_text("As a table").click()
    expect(page.get_by_role("table", name="Trend of all tables")).to_be_visible()
    assert barriers(page) == []
    trend.get_by_text("As a table").click()
    save_picture(page, f"report-{theme}-{width}")
    assert not is_wider_than_the_window(page)


def test_only_the_report_is_printed(page: Page, installation: Installation) -> None:
    page.goto(f"{installation.url}/#/report")
    expect(page.get_by_role("table", name="By table")).to_be_visible()
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.get_by_role("table", name="By table")).to_be_visible()
    for hidden in ("header", "footer", ".filters"):
        expect(page.locator(hidden).first).to_be_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    save_picture(page, "report-print")
