"""Tests the pages of policies, the calendar and notifications, and actions on selected tables, mostly by keyboard."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.dashboard.installation import ORDERS, TRIPS
from tests.integration.receiver import Receiver
from tests.support.browser import PHONE, barriers, is_wider_than_the_window

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page, Route

    from tests.dashboard.conftest import OpenPage
    from tests.dashboard.installation import Installation
    from tests.support.browser import Faults

PATTERN = "tri*"
# Each failure that the page has shown, although only for a moment.
_FAILURES = """
window.failures = [];
new MutationObserver(() => {
  const banner = document.getElementById("banner");
  if (banner && !banner.hidden) failures.push(banner.textContent);
}).observe(document, { attributes: true, childList: true, subtree: true });
"""


@pytest.fixture
def pattern(page: Page, installation: Installation) -> Iterator[str]:
    """Sets the policy of a pattern, and returns its address."""
    installation.api.put(f"/policies/{PATTERN}", json={"compaction": {"commits": 8}}).raise_for_status()
    yield f"{installation.url}/#/policies/{PATTERN}"
    # An open page would ask for the policy while it is being deleted.
    page.goto("about:blank")
    installation.api.delete(f"/policies/{PATTERN}")


def test_policies_are_listed_with_units_and_times_and_the_tables_that_they_decide_for(
    page: Page, installation: Installation, pattern: str
) -> None:
    page.goto(f"{installation.url}/#/policies")
    rows = page.get_by_role("table", name="Policies of patterns").get_by_role("row")
    assert pattern
    expect(rows.filter(has_text=PATTERN)).to_contain_text("Compaction: commits 8")
    expect(rows.filter(has_text=PATTERN)).to_contain_text("1 trips")
    expect(rows.filter(has_text="night_*")).to_contain_text("Fri, Sat 22:00 to 04:30")
    expect(rows.filter(has_text="night_*")).to_contain_text("max bucket bytes 2 GiB")
    expect(rows.filter(has_text="night_*")).to_contain_text("no table")
    page.get_by_role("textbox", name="Pattern").fill("tag:team=shop")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("tag:team=shop")
    expect(page.locator("main")).to_contain_text("no policy yet")


def test_an_edit_is_previewed_and_then_saved_with_the_keyboard(
    page: Page, installation: Installation, pattern: str
) -> None:
    page.goto(pattern)
    compaction = page.locator("details[data-key=compaction]")
    expect(compaction).to_have_attribute("open", "")
    expect(compaction).to_contain_text("1 to 1,000,000; default: 5")
    page.get_by_label("Commits (compaction.commits)").focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("3")
    page.get_by_label("Seconds (compaction.seconds)").focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("90 min")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Add a window").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Start of window 1").fill("21:00")
    # The buttons of the long form stay in the window.
    page.evaluate("scrollTo(0, 0)")
    expect(page.get_by_role("button", name="Preview 3 changes")).to_be_in_viewport()
    page.get_by_role("button", name="Preview 3 changes").focus()
    page.keyboard.press("Enter")
    preview = page.get_by_role("region", name="Effect of the edit")
    expect(preview).to_contain_text("1 table would have another policy")
    expect(preview).to_contain_text("every day 21:00 to 04:00")
    assert installation.api.get(f"/policies/{PATTERN}").json()["settings"] == {"compaction": {"commits": 8}}
    assert barriers(page) == []
    assert not is_wider_than_the_window(page)
    # A simulation that takes longer than the rest of the test would find the policy deleted.
    expect(page.get_by_role("region", name="What the new policy would have done in the last 14 days")).to_contain_text(
        "instead of"
    )
    expect(preview.get_by_role("button", name="Save the policy")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="Saved")).to_be_visible()
    assert installation.api.get(f"/policies/{PATTERN}").json()["settings"] == {
        "compaction": {"commits": 3, "seconds": 5400},
        "windows": [{"start": "21:00", "end": "04:00", "days": []}],
    }
    page.get_by_role("button", name="Delete this policy").click()
    page.get_by_role("button", name="Delete the policy").click()
    expect(page.get_by_role("status").filter(has_text="Deleted")).to_be_visible()
    assert installation.api.get(f"/policies/{PATTERN}").status_code == 404


def test_a_policy_that_is_deleted_while_its_page_loads_is_shown_as_missing(
    page: Page, faults: Faults, installation: Installation, pattern: str
) -> None:
    faults.allow("404")

    def deleted(route: Route) -> None:
        installation.api.delete(f"/policies/{PATTERN}")
        route.continue_()

    # The page has listed the policies, and asks for this one.
    page.route("**/v1/policies/*", deleted, times=1)
    page.add_init_script(_FAILURES)
    page.goto(pattern)
    expect(page.locator("main")).to_contain_text("no policy yet")
    assert page.evaluate("failures") == []


def test_an_edit_is_tried_on_the_commits_of_the_past(page: Page, installation: Installation, pattern: str) -> None:
    page.goto(pattern)
    page.get_by_label("Commits (compaction.commits)").fill("2")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Preview the change").click()
    simulation = page.get_by_role("region", name="What the new policy would have done in the last 14 days")
    expect(simulation).to_contain_text("instead of", timeout=30_000)
    expect(simulation.get_by_role("img", name="Cost of a read")).to_be_visible()
    expect(simulation.locator(".line.before")).to_have_count(2)
    expect(simulation.get_by_role("table", name="Both policies")).to_contain_text("Present policy")
    assert barriers(page) == []
    [table] = [each for each in installation.api.get("/tables").json()["items"] if each["name"].startswith("trips")]
    page.goto(f"{installation.url}/#/tables/{table['id']}/policy")
    page.locator("details[data-key=compaction] > summary").click()
    page.get_by_label("Commits (compaction.commits)").fill("3")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Try it on the past").click()
    expect(simulation).to_contain_text("instead of", timeout=30_000)


def test_a_shadow_is_started_listed_compared_and_becomes_the_policy(
    page: Page, installation: Installation, pattern: str
) -> None:
    page.goto(pattern)
    page.get_by_label("Commits (compaction.commits)").fill("20")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Preview the change").click()
    page.get_by_role("button", name="Try it as a shadow, without starting jobs").click()
    shadow = page.get_by_role("region", name="Shadow", exact=True)
    expect(shadow).to_contain_text("starts no jobs")
    expect(shadow).to_contain_text("Compaction: commits 20")
    assert installation.api.get(f"/policies/{PATTERN}").json()["settings"] == {"compaction": {"commits": 8}}
    shadow.get_by_role("button", name="Compare").click()
    compared = page.get_by_role("region", name="Shadow and policy since the shadow began")
    # Nothing has been committed since the shadow was started.
    expect(compared).to_contain_text("No commits of 1 table are known in this period", timeout=30_000)
    assert barriers(page) == []

    page.goto(f"{installation.url}/#/policies")
    listed = page.get_by_role("table", name="Shadows of policies").get_by_role("row").filter(has_text=PATTERN)
    expect(listed).to_contain_text("Compaction: commits 20")
    listed.get_by_role("link", name=PATTERN).click()
    shadow.get_by_role("button", name="Make it the policy").click()
    expect(shadow).to_have_count(0)
    assert installation.api.get(f"/policies/{PATTERN}").json()["settings"] == {"compaction": {"commits": 20}}
    assert installation.api.get("/policy-shadows").json()["items"] == []


def test_a_conflict_is_shown_and_keeps_the_edits_of_both_sides(
    page: Page, faults: Faults, installation: Installation, pattern: str
) -> None:
    faults.allow("412")
    page.goto(pattern)
    commits = page.get_by_label("Commits (compaction.commits)")
    commits.fill("4")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Preview the change").click()
    save = page.get_by_role("button", name="Save the policy")
    expect(save).to_be_visible()
    other = {"compaction": {"commits": 8}, "priority": 7}
    installation.api.put(f"/policies/{PATTERN}", json=other).raise_for_status()
    save.click()
    expect(page.locator("main .problem.bad")).to_contain_text("changed")
    page.get_by_role("button", name="Show the present policy with my changes").click()
    expect(page.get_by_label("Priority (priority)")).to_have_value("7")
    expect(commits).to_have_value("4")
    page.get_by_role("button", name="Preview the change").click()
    save.click()
    expect(page.get_by_role("status").filter(has_text="Saved")).to_be_visible()
    saved = installation.api.get(f"/policies/{PATTERN}").json()["settings"]
    assert saved == {"compaction": {"commits": 4}, "priority": 7}


def test_the_calendar_draws_windows_and_freezes_and_sets_one(
    page: Page, installation: Installation, pattern: str
) -> None:
    night = {"windows": [{"start": "22:00", "end": "04:30"}], "time_zone": "Europe/Berlin"}
    installation.api.put(f"/policies/{PATTERN}", json=night).raise_for_status()
    page.goto(f"{installation.url}/#/calendar?week=2026-03-25")
    assert pattern
    # The week in which clocks in Berlin go forward.
    drawn = page.get_by_role("img", name=f"pattern {PATTERN}, 1 table: every day 22:00 to 04:30, Europe/Berlin")
    expect(drawn.locator(".open")).to_have_count(8)
    expect(page.get_by_role("region", name="23 Mar 2026 to 29 Mar 2026")).to_contain_text("Times of ")
    page.get_by_role("textbox", name="Name").fill("spring")
    page.get_by_label("Starts at").fill("2026-03-24T08:00")
    page.get_by_label("Ends at").fill("2026-03-26T20:00")
    page.get_by_role("textbox", name="Tables").fill("tri*, orders")
    page.get_by_role("textbox", name="Reason").fill("the move")
    page.get_by_role("button", name="Set the freeze").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("img", name="Freeze spring, 1 table: the move").locator(".frozen")).to_have_count(1)
    page.locator("[data-key=week] summary", has_text="As a table").click()
    expect(page.get_by_role("table", name="Freezes and windows of the week")).to_contain_text("Freeze spring")
    assert barriers(page) == []
    assert not is_wider_than_the_window(page)
    page.get_by_role("button", name="Edit spring").click()
    expect(page.get_by_role("region", name="Edit the freeze spring")).to_be_visible()
    page.get_by_role("textbox", name="Reason").fill("the second move")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("table", name="Freezes", exact=True)).to_contain_text("the second move")
    assert installation.api.get("/freezes/spring").json()["tables"] == ["tri*", "orders"]
    page.get_by_role("button", name="Delete spring").click()
    page.locator("#confirm-yes").click()
    expect(page.get_by_role("img", name="Freeze spring")).to_have_count(0)
    assert installation.api.get("/freezes/spring").status_code == 404


def test_a_notification_is_added_tested_snoozed_changed_and_removed(
    new_page: OpenPage, installation: Installation
) -> None:
    page = new_page("dark", PHONE)
    with Receiver() as receiver:
        page.goto(f"{installation.url}/#/notifications")
        page.get_by_role("textbox", name="Name").fill("night-shift")
        page.get_by_label("Target").select_option("webhook")
        page.get_by_role("button", name="Fill in its target").click()
        page.get_by_label("Url").fill(receiver.url)
        page.get_by_label("Least severity").select_option("critical")
        page.get_by_role("textbox", name="Tables").fill("none*")
        page.get_by_role("button", name="Add a window").click()
        page.get_by_label("End of window 1").fill("06:00")
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.get_by_role("status").filter(has_text="signed with this secret")).to_be_visible()
        page.get_by_role("button", name="Send a test message").click()
        expect(page.get_by_role("status").filter(has_text="Test message")).to_contain_text("HTTP 200")
        assert receiver.received[0].event["data"]["message"]["state"] == "test"
        assert barriers(page) == []
        assert not is_wider_than_the_window(page)
        page.get_by_role("textbox", name="Reason").fill("the move")
        page.get_by_role("button", name="Snooze").click()
        expect(page.get_by_role("region", name="State")).to_contain_text("the move")
        page.get_by_role("button", name="Wake it").click()
        expect(page.get_by_role("region", name="State")).not_to_contain_text("snoozed")
        page.get_by_label("When to send a report of the last week").check()
        page.get_by_role("spinbutton", name="Hour", exact=True).fill("7")
        page.get_by_label("Most per hour").fill("7")
        page.keyboard.press("Tab")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_role("status").filter(has_text="Saved")).to_be_visible()
        kept = installation.api.get("/notifications/night-shift").json()
        assert (kept["most_per_hour"], kept["events"]) == (7, ["opened", "resolved", "failed"])
        assert kept["report"] == {"day": "mon", "hour": 7}
        assert kept["quiet_hours"] == [{"start": "22:00", "end": "06:00", "days": []}]
        page.get_by_role("button", name="Remove", exact=True).first.click()
        page.locator("#confirm-yes").click()
        expect(page.locator("h1")).to_have_text("Notifications")
        assert installation.api.get("/notifications/night-shift").status_code == 404


def test_selected_tables_get_settings_and_an_owner(page: Page, installation: Installation) -> None:
    before = installation.api.get(f"/tables/{ORDERS}/policy").json()["policy"]
    page.goto(installation.address("overview"))
    page.get_by_label("Select all tables of this page").check()
    bulk = page.get_by_role("group", name="Selected tables")
    bulk.get_by_role("button", name="Set policy").focus()
    page.keyboard.press("Enter")
    bulk.get_by_label("Setting").select_option("compaction.seconds")
    value = bulk.get_by_label("Value of Compaction.seconds")
    value.fill("2 h")
    page.keyboard.press("Tab")
    bulk.get_by_role("button", name="Add", exact=True).focus()
    page.keyboard.press("Enter")
    bulk.get_by_label("Setting").select_option("cleaning.commits")
    bulk.get_by_label("Value of Cleaning.commits").fill("7")
    page.keyboard.press("Enter")
    calls = []
    page.on("request", lambda each: calls.append(each.url) if each.method == "POST" else None)
    bulk.get_by_role("button", name="Apply").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#confirm-text")).to_contain_text("compaction.seconds: 2 h; cleaning.commits: 7")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(bulk).to_contain_text("2 done")
    assert barriers(page) == []
    for each in (ORDERS, TRIPS):
        found = installation.api.get(f"/tables/{each}/policy").json()["policy"]
        assert (found["compaction"]["seconds"], found["cleaning"]["commits"]) == (7200, 7)
    assert len(calls) == 1
    page.get_by_label("Select all tables of this page").check()
    bulk.get_by_role("button", name="Set policy").click()
    for name in ("compaction.seconds", "cleaning.commits"):
        bulk.get_by_label("Setting").select_option(name)
        bulk.get_by_role("button", name="Leave to patterns and defaults").click()
    bulk.get_by_role("button", name="Apply").click()
    page.locator("#confirm-yes").click()
    expect(bulk).to_contain_text("2 done")
    assert installation.api.get(f"/tables/{ORDERS}/policy").json()["policy"] == before
    page.get_by_label("Select trips").check()
    bulk.get_by_role("button", name="Owner and tags").click()
    bulk.get_by_label("Owner").fill("shop")
    bulk.get_by_label("Add tags").fill("team=shop, pii")
    bulk.get_by_role("button", name="Declare").click()
    page.locator("#confirm-yes").click()
    expect(bulk).to_contain_text("1 done")
    trips = installation.api.get(f"/tables/{TRIPS}").json()
    assert (trips["owner"], trips["tags"]) == ("shop", {"team": "shop", "pii": ""})
    installation.api.patch(f"/tables/{TRIPS}", json={"owner": None, "tags": {}}).raise_for_status()


def test_one_problem_of_a_table_is_acknowledged_for_a_time(
    page: Page, faults: Faults, installation: Installation
) -> None:
    faults.allow("4(04|22)")  # The table cannot be read.
    page.goto(f"{installation.url}/#/tables/{ORDERS}")
    first = page.locator("[data-key=problems] > ul > li").first
    first.locator("summary", has_text="Acknowledge").focus()
    page.keyboard.press("Enter")
    first.get_by_label("How long").select_option("for 8 hours")
    first.get_by_label("Why").fill("the move")
    page.keyboard.press("Enter")
    expect(first).to_contain_text("Acknowledged by anybody")
    expect(first).to_contain_text("the move")
    known = [each["acknowledged"] for each in installation.api.get("/problems").json()["items"] if each["acknowledged"]]
    [until] = [datetime.fromisoformat(each["until"]) for each in known]
    assert timedelta(hours=7) < until - datetime.now(UTC) < timedelta(hours=9)
    first.get_by_role("button", name="Take back").click()
    expect(first.locator("summary", has_text="Acknowledge")).to_be_visible()


def test_the_timeline_is_zoomed_by_buttons_and_keys(page: Page, installation: Installation) -> None:
    # The axis of instants of the last minute would begin a minute ago, whenever that is.
    page.clock.set_fixed_time(datetime.now(UTC) + timedelta(hours=1))
    page.goto(installation.address("timeline"))
    lanes = page.get_by_role("region", name="Timeline")
    begin = lanes.locator(".span time").first
    whole = begin.get_attribute("datetime")
    lanes.get_by_role("button", name="Zoom in").click()
    expect(lanes.get_by_role("button", name="Zoom out")).to_be_enabled()
    assert begin.get_attribute("datetime") != whole
    drawn = page.get_by_label("Timeline: + and - zoom")
    drawn.focus()
    for key in ("+", "ArrowLeft", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
    expect(lanes.get_by_role("button", name="Earlier")).to_be_disabled()
    expect(begin).to_have_attribute("datetime", whole or "")
    assert barriers(page) == []
    page.keyboard.press("0")
    expect(lanes.get_by_role("button", name="Zoom out")).to_be_disabled()


def test_a_reader_sees_policies_and_changes_nothing(
    new_page: OpenPage, faults_of: dict[Page, Faults], installation: Installation
) -> None:
    page = new_page()
    page.route("**/v1/session", lambda route: route.fulfill(json={"who": "r", "role": "reader", "way": "session"}))
    for path, words in (
        ("policies/night_*", "2 GiB"),
        ("calendar", "Freezes"),
        ("notifications", "There are no notifications yet"),
    ):
        page.goto("about:blank")
        page.goto(f"{installation.url}/#/{path}")
        expect(page.locator("main")).to_contain_text(words)
        expect(page.locator("main form input, main form select, main form button")).to_have_count(0)
    assert not faults_of[page].unexpected()
