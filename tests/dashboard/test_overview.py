"""Tests the tables of the overview in a browser: search, filter, order and page are in the address."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.dashboard.installation import DRY_RUNS, Installation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page


@pytest.fixture(scope="module", autouse=True)
def archives(installation: Installation) -> Iterator[None]:
    """Adds 60 more tables."""
    names = [f"archive_{number:02}" for number in range(60)]
    installation.add(names)
    yield
    installation.remove(names)


@pytest.fixture
def new(tmp_path: Path) -> Iterator[Installation]:
    """Starts a service of its own, whose dry runs are among the last jobs that a row shows."""
    made = Installation(tmp_path)
    yield made
    made.close()


def names(page: Page) -> list[str]:
    return page.locator(".matrix tbody strong").all_inner_texts()


def test_a_table_is_found_and_the_address_keeps_the_search(page: Page, installation: Installation) -> None:
    page.goto(f"{installation.url}/")
    page.wait_for_selector(".matrix tbody tr")
    page.get_by_label("Name or path").fill("TRIP")
    expect(page.locator(".matrix tbody tr")).to_have_count(1)
    assert names(page) == ["trips"]
    assert page.url.endswith("/#/?q=TRIP")
    expect(page.locator("#spoken")).to_contain_text("1 matching table")
    page.reload()
    expect(page.locator(".matrix tbody tr")).to_have_count(1)
    assert page.get_by_label("Name or path").input_value() == "TRIP"
    page.get_by_label("Name or path").fill("nothing has this name")
    expect(page.locator("#tables")).to_contain_text("No matching tables.")


def test_filter_order_and_page_go_back_and_forth_with_the_browser(page: Page, installation: Installation) -> None:
    page.goto(f"{installation.url}/#/?q=archive&sort=name")
    expect(page.locator(".matrix tbody tr")).to_have_count(50)
    assert names(page)[0] == "archive_00"
    page.get_by_role("link", name="Next page").click()
    expect(page.locator(".matrix tbody tr")).to_have_count(10)
    assert names(page)[0] == "archive_50"
    expect(page.locator("#tables")).to_be_focused()
    page.go_back()
    expect(page.locator(".matrix tbody tr")).to_have_count(50)
    page.goto(f"{installation.url}/")
    page.get_by_label("Health").select_option("critical")
    expect(page.locator(".matrix tbody tr")).to_have_count(1)
    assert names(page) == ["<b>orders</b>"]
    assert "health=critical" in page.url
    page.go_back()
    expect(page.locator(".matrix tbody tr")).to_have_count(50)
    assert page.get_by_label("Health").input_value() == ""
    page.get_by_label("Sort by").select_option("backlog")
    expect(page.locator(".matrix tbody strong").first).to_have_text("trips")


def test_the_last_jobs_are_one_stop_of_the_tab_key_and_have_descriptions(
    page: Page, installation: Installation
) -> None:
    page.goto(f"{installation.url}/#/?q=orders")
    page.wait_for_selector(".matrix .field-of")
    fields = page.locator(".matrix .field-of")
    stops = [each.get_attribute("tabindex") for each in fields.all()]
    assert stops == ["0", *["-1"] * (len(stops) - 1)]
    assert len(stops) >= 2
    fields.first.focus()
    for _ in stops[1:]:
        page.keyboard.press("ArrowRight")
    expect(fields.last).to_be_focused()
    label = fields.last.get_attribute("aria-label")
    assert label is not None
    assert label.startswith("Clustering, failed, ")
    assert label.endswith("The table has no such column")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/#/jobs/{installation.jobs['failed']}")


def test_a_dry_run_that_found_nothing_to_start_is_not_green(page: Page, new: Installation) -> None:
    page.goto(f"{new.url}/#/?q=trips")
    fields = {name: page.locator(f".matrix a[href='#/jobs/{new.jobs[name]}']") for name in DRY_RUNS}
    spoken = {
        "ready": re.compile(r"^Bucket expansion, dry run, succeeded, "),
        "refused": re.compile(r"^Bucket expansion, dry run, refused, "),
        "idle": re.compile(r"^Cleaning, dry run, nothing to do, "),
    }
    for name, words in spoken.items():
        expect(fields[name]).to_have_attribute("aria-label", words)
    colours = {name: each.evaluate("each => getComputedStyle(each).backgroundColor") for name, each in fields.items()}
    assert len(set(colours.values())) == 3
    page.get_by_text("Letters and colours").click()
    legend = {
        words: page.locator(".legend .field-of", has_text=words).evaluate(
            "each => getComputedStyle(each).backgroundColor"
        )
        for words in ("succeeded", "refused", "nothing to do")
    }
    assert list(legend.values()) == [colours["ready"], colours["refused"], colours["idle"]]
    page.goto("about:blank")


def test_the_time_zone_is_shown_and_a_figure_leads_to_its_tables(page: Page, installation: Installation) -> None:
    page.goto(f"{installation.url}/")
    page.wait_for_selector(".matrix tbody tr")
    expect(page.locator("footer")).to_contain_text("Europe/Berlin (GMT+01:00)")
    page.locator(".figures a", has_text="critical").click()
    expect(page.locator("#tables h2")).to_contain_text("of 62")
    assert names(page) == ["<b>orders</b>"]
