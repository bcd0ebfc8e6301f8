"""The dashboard shows changes by the stream of events, and makes no other calls meanwhile."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from jobs.contract import Outcome, Result
from tests.dashboard.installation import ORDERS, TRIPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from tests.dashboard.installation import Installation
    from tests.support.browser import Faults

PROGRESS = "jobs?state=running&limit=100"
OVERVIEW = "overview?brief=true"


class Asked(list[str]):
    """Records the paths below /v1 that a page requests."""

    def __init__(self, page: Page, url: str) -> None:
        super().__init__()
        page.on(
            "request", lambda each: self.append(each.url.removeprefix(f"{url}/v1/")) if "/v1/" in each.url else None
        )


def open_overview(page: Page, installation: Installation) -> Asked:
    asked = Asked(page, installation.url)
    page.goto(f"{installation.url}/")
    page.wait_for_selector("#pulse.live")
    page.wait_for_selector(".matrix tbody tr")
    return asked


def quiet(asked: Asked, page: Page, seconds: float) -> list[str]:
    """Returns the requests of the page within this number of seconds."""
    asked.clear()
    page.wait_for_timeout(seconds * 1000)
    return list(asked)


def settled(asked: Asked, page: Page, seconds: float) -> bool:
    """Returns whether within half a minute there is a period of this number of seconds without requests."""
    return any(quiet(asked, page, seconds) == [] for _ in range(int(30 / seconds)))


def test_only_progress_is_polled_and_the_end_of_a_job_is_seen_at_once(page: Page, installation: Installation) -> None:
    asked = open_overview(page, installation)
    # The first poll may precede the check of the page, and on a busy machine a first request may follow it.
    assert set(asked) <= {"events", OVERVIEW, "session", PROGRESS}
    running = installation.jobs["running"]
    # The whole overview may have been asked for at first, and show it already.
    with page.expect_request(lambda request: request.url.endswith(PROGRESS)):
        installation.progress(running, 7)
    expect(page.locator("[aria-label='Active jobs']")).to_contain_text("7 of 10 tasks")
    assert set(asked) == {"events", OVERVIEW, "session", PROGRESS}
    installation.finish(running, Result(Outcome.SUCCEEDED, details={}))
    expect(page.locator("[aria-label='Active jobs']")).not_to_contain_text("Compaction")
    expect(page.locator(f".matrix a.succeeded[href='#/jobs/{running}']")).to_have_text("Co")
    installation.run()


@pytest.fixture
def idle(installation: Installation) -> Iterator[Installation]:
    """The installation without a running job."""
    installation.finish(installation.jobs["running"], Result(Outcome.SUCCEEDED, details={}))
    yield installation
    installation.run()


def test_an_idle_page_asks_for_nothing_until_something_happens(page: Page, idle: Installation) -> None:
    asked = open_overview(page, idle)
    page.evaluate("window.isSame = true")
    assert settled(asked, page, 2.5)
    began = time.monotonic()
    job = idle.post(f"/tables/{TRIPS}/jobs", {"kind": "diagnosis"})["id"]
    page.wait_for_selector(f".matrix a[href='#/jobs/{job}']")
    # Nothing is polled meanwhile, and a stream without events would be opened again after 40 seconds.
    assert time.monotonic() - began < 30
    idle.api.post(f"/jobs/{job}/cancel")
    page.wait_for_selector(f".matrix a.cancelled[href='#/jobs/{job}']")
    assert page.evaluate("window.isSame")
    assert set(asked) == {OVERVIEW}


@pytest.mark.exhaustive
def test_an_event_is_followed_by_few_requests_and_then_by_none(page: Page, idle: Installation) -> None:
    asked = open_overview(page, idle)
    assert settled(asked, page, 5)
    followed = Asked(page, idle.url)
    job = idle.post(f"/tables/{TRIPS}/jobs", {"kind": "diagnosis"})["id"]
    idle.api.post(f"/jobs/{job}/cancel")
    page.wait_for_selector(f".matrix a.cancelled[href='#/jobs/{job}']")
    assert settled(asked, page, 10)
    # A busy machine may report both events by one request.
    assert 1 <= followed.count(OVERVIEW) <= 5


def test_a_page_of_one_table_ignores_events_of_others(page: Page, idle: Installation) -> None:
    asked = Asked(page, idle.url)
    page.goto(f"{idle.url}/#/tables/{TRIPS}")
    page.wait_for_selector("#pulse.live")
    assert settled(asked, page, 2)
    job = idle.post(f"/tables/{ORDERS}/jobs", {"kind": "diagnosis"})["id"]
    idle.api.post(f"/jobs/{job}/cancel")
    assert quiet(asked, page, 1.5) == []
    job = idle.post(f"/tables/{TRIPS}/jobs", {"kind": "audit"})["id"]
    page.wait_for_selector(f"[aria-label='Active jobs'] a[href='#/jobs/{job}']")
    idle.api.post(f"/jobs/{job}/cancel")


@pytest.mark.exhaustive
def test_without_a_stream_the_page_polls_and_it_comes_back(
    page: Page, faults: Faults, installation: Installation
) -> None:
    faults.allow("v1/events: net::ERR_FAILED|console: Failed to load resource: net::ERR_FAILED")
    page.route("**/v1/events", lambda route: route.abort())
    page.goto(f"{installation.url}/")
    page.wait_for_selector("#pulse.polling")
    job = installation.post(f"/tables/{TRIPS}/jobs", {"kind": "audit"})["id"]
    page.wait_for_selector(f".matrix a[href='#/jobs/{job}']")
    installation.api.post(f"/jobs/{job}/cancel")
    page.unroute("**/v1/events")
    page.wait_for_selector("#pulse.live")


@pytest.mark.exhaustive
def test_the_page_says_that_the_service_is_away_and_sees_its_return(
    page: Page, faults: Faults, installation: Installation
) -> None:
    faults.allow("ERR_FAILED")
    asked = open_overview(page, installation)
    page.route("**/v1/**", lambda route: route.abort())
    job = installation.post(f"/tables/{TRIPS}/jobs", {"kind": "audit"})["id"]
    page.wait_for_selector("#pulse.away")
    expect(page.locator("#banner")).to_contain_text("The service does not answer")
    page.unroute("**/v1/**")
    page.wait_for_selector("#pulse.live")
    page.wait_for_selector(f".matrix a[href='#/jobs/{job}']")
    installation.api.post(f"/jobs/{job}/cancel")
    assert OVERVIEW in asked


def test_a_hidden_page_holds_no_connection(page: Page, idle: Installation) -> None:
    asked = open_overview(page, idle)
    assert settled(asked, page, 3.5)
    hide = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true});"
    page.evaluate(hide % "true" + "document.dispatchEvent(new Event('visibilitychange'))")
    asked.clear()
    job = idle.post(f"/tables/{TRIPS}/jobs", {"kind": "audit"})["id"]
    idle.api.post(f"/jobs/{job}/cancel")
    assert quiet(asked, page, 1.5) == []
    page.evaluate(hide % "false" + "document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_selector(f".matrix a[href='#/jobs/{job}']")
    page.wait_for_selector("#pulse.live")
    assert {"events", OVERVIEW} <= set(asked)
