"""The overview and the page of a table can be used by keyboard alone, and stay small."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from service.db import schema
from service.db.engine import writing
from tests.dashboard.installation import ORDERS, TRIPS
from tests.support.browser import PHONE, barriers, is_wider_than_the_window

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.dashboard.conftest import OpenPage
    from tests.dashboard.installation import Installation
    from tests.support.browser import Theme

# The places of the first letters of the path in the heading.
_LETTERS = """
() => [0, 1, 2].map((at) => {
  const range = document.createRange();
  const text = document.querySelector("h1 .path").firstChild;
  range.setStart(text, at);
  range.setEnd(text, at + 1);
  return range.getBoundingClientRect().left;
})
"""


def test_tables_are_found_selected_and_paused_by_one_call_with_the_keyboard(
    page: Page, installation: Installation
) -> None:
    page.goto(f"{installation.url}/#/jobs")
    page.wait_for_selector("main h1")
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.press("Escape")
    names = page.locator(".matrix tbody .c-name a")
    expect(names).to_have_count(2)
    names.first.focus()
    page.keyboard.press("x")
    expect(page.get_by_role("group", name="Selected tables")).to_contain_text("1 selected")
    page.keyboard.press("ArrowDown")
    expect(names.last).to_be_focused()
    page.keyboard.press("x")
    bulk = page.get_by_role("group", name="Selected tables")
    expect(bulk).to_contain_text("2 selected")
    assert barriers(page) == []
    for action in ("Pause", "Resume"):
        if action == "Resume":
            page.get_by_label("Select all tables of this page").focus()
            page.keyboard.press("Space")
        bulk.get_by_role("button", name=action).focus()
        page.keyboard.press("Enter")
        page.locator("#confirm-yes").focus()
        page.keyboard.press("Enter")
        expect(bulk).to_contain_text("2 done")
        policies = [installation.api.get(f"/tables/{each}/policy").json()["policy"] for each in (ORDERS, TRIPS)]
        assert [each["paused"] for each in policies] == [action == "Pause"] * 2


def test_a_view_and_the_comfortable_rows_are_kept_by_the_browser(page: Page, installation: Installation) -> None:
    page.goto(f"{installation.url}/#/?q=trips&sort=ratio")
    page.get_by_role("button", name="Save this view").click()
    page.get_by_label("Name of the view").fill("mine")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Comfortable rows").click()
    page.goto("about:blank")
    page.goto(f"{installation.url}/")
    expect(page.locator(".matrix.comfortable tbody tr")).to_have_count(2)
    page.get_by_role("link", name="mine", exact=True).click()
    expect(page.locator(".matrix tbody tr")).to_have_count(1)
    assert page.url.endswith("#/?q=trips&sort=ratio")


_TWICE = """key => { for (const _ of [1, 2])
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })); }"""


def test_the_parts_of_a_table_are_tabs_with_one_stop_of_the_tab_key(page: Page, installation: Installation) -> None:
    page.goto(installation.address("table"))
    page.get_by_role("tab", name="Health").focus()
    for name in ("Jobs", "Policy", "Writers", "Timeline", "Files"):
        page.keyboard.press("ArrowRight")
        tab = page.get_by_role("tab", name=name)
        expect(tab).to_be_focused()
        expect(tab).to_have_attribute("aria-selected", "true")
        assert page.url.endswith(f"?tab={name.lower()}")
        expect(page.get_by_role("tabpanel", name=name)).to_be_visible()
        assert barriers(page) == []
        assert not is_wider_than_the_window(page)
    page.keyboard.press("Home")
    expect(page.get_by_role("region", name="Current state")).to_be_visible()
    # Keys that come before the page is drawn again count as well.
    page.evaluate(_TWICE, "ArrowRight")
    expect(page.get_by_role("tab", name="Policy")).to_be_focused()
    expect(page.get_by_role("tabpanel", name="Policy")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()


SCREENS = {"wide": (1440, 900), "narrow": (1024, 768), "phone": PHONE}


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.exhaustive)])
def test_three_hundred_tables_take_less_than_two_screens(
    new_page: OpenPage, installation: Installation, theme: Theme
) -> None:
    names = [f"many_{number:03}" for number in range(300)]
    installation.add(names)
    for name, (width, height) in SCREENS.items():
        shown = new_page(theme, (width, height))
        shown.goto(f"{installation.url}/")
        rows = shown.locator(".matrix tbody tr")
        expect(rows).to_have_count(50)
        heights = rows.evaluate_all("(rows) => rows.map((row) => row.offsetHeight)")
        assert max(heights) <= 32, name
        assert shown.evaluate("document.documentElement.scrollHeight") <= 2 * height, name
        # The menu is one line.
        assert shown.locator("header").evaluate("(each) => each.offsetHeight") < 64, name
        # Wide pages with fewer tables have the same elements, and are tested above and in `test_policies.py`.
        assert name != "phone" or barriers(shown) == []
        assert not is_wider_than_the_window(shown), name
        shown.goto("about:blank")
    installation.remove(names)


def test_links_without_room_are_below_more(new_page: OpenPage, installation: Installation) -> None:
    page = new_page("light", PHONE)
    page.goto(f"{installation.url}/")
    expect(page.get_by_role("link", name="Report")).to_be_hidden()
    page.get_by_text("More", exact=True).focus()
    page.keyboard.press("Enter")
    assert barriers(page) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Report")).to_be_hidden()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Report").click()
    expect(page.locator("h1")).to_have_text("Report")
    expect(page.get_by_role("link", name="Report")).to_be_hidden()
    page.set_viewport_size({"width": 1440, "height": 900})
    expect(page.get_by_text("More", exact=True)).to_be_hidden()
    expect(page.get_by_role("link", name="Report")).to_have_attribute("aria-current", "page")


def test_the_focus_stays_on_a_link_of_the_menu_while_the_window_changes(page: Page, installation: Installation) -> None:
    page.goto(f"{installation.url}/")
    report = page.get_by_role("link", name="Report")
    report.focus()
    # The menu is fitted again, which moves all links, as after the first answer of the service.
    page.set_viewport_size({"width": 1100, "height": 900})
    page.wait_for_function(
        "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
    )
    expect(report).to_be_focused()
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    expect(page.get_by_text("More", exact=True)).to_be_focused()


@pytest.mark.parametrize("name", ["x" * 255, "trips\u202etxt"], ids=["long", "turned"])
def test_no_name_widens_the_page_or_turns_its_neighbours_around(
    new_page: OpenPage, installation: Installation, name: str
) -> None:
    table = schema.tables
    with writing(installation.service.engine) as connection:
        connection.execute(table.update().where(table.c.id == TRIPS).values(name=name))
    try:
        page = new_page(size=PHONE)
        page.goto(installation.address("table"))
        expect(page.locator("h1")).to_contain_text(name)
        assert not is_wider_than_the_window(page)
        # The first letter of the path is left of the second one.
        assert page.evaluate(_LETTERS) == sorted(page.evaluate(_LETTERS))
        page.goto("about:blank")
    finally:
        with writing(installation.service.engine) as connection:
            connection.execute(table.update().where(table.c.id == TRIPS).values(name="trips"))


def test_tables_are_filtered_by_owner_and_tag(page: Page, installation: Installation) -> None:
    installation.api.patch(f"/tables/{TRIPS}", json={"owner": "shop", "tags": {"team": "eu"}}).raise_for_status()
    page.goto(f"{installation.url}/")
    page.get_by_label("Tag").fill("team=eu")
    page.keyboard.press("Enter")
    expect(page.locator(".matrix tbody tr")).to_have_count(1)
    page.get_by_label("Owner").fill("nobody")
    page.keyboard.press("Enter")
    expect(page.locator("#tables")).to_contain_text("No matching tables.")
    assert page.url.endswith("#/?tag=team%3Deu&owner=nobody")
    page.goto("about:blank")
    installation.api.patch(f"/tables/{TRIPS}", json={"owner": None, "tags": {}}).raise_for_status()
