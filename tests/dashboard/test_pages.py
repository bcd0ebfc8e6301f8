"""Tests the pages of a table, its policy, a job, a webhook and the workers, and their forms."""

from __future__ import annotations

import re
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

import pytest
from playwright.sync_api import expect

from jobs.contract import JobKind
from service.db.engine import writing
from service.model.clock import utc_now
from service.scheduling import decision_store
from service.scheduling.decision import Decision, Verdict
from tests.dashboard.installation import SPARK, TRIPS, Installation
from tests.integration.receiver import Receiver, Reply
from tests.integration.serving import eventually
from tests.support.browser import barriers, is_wider_than_the_window
from tests.support.small_table import SmallTable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.support.browser import Faults


def test_the_timeline_has_a_lane_for_each_action_and_its_figures_are_open_to_the_keyboard(
    page: Page, installation: Installation
) -> None:
    page.goto(installation.address("timeline"))
    timeline = page.get_by_role("region", name="Timeline")
    expect(timeline.get_by_role("img", name="Deltacommit: 2 completed")).to_be_visible()
    expect(timeline.get_by_role("img", name="Compaction: 0 completed, 1 pending")).to_be_visible()
    timeline.get_by_text("As a table").focus()
    page.keyboard.press("Enter")
    rows = timeline.get_by_role("table").get_by_role("row")
    expect(rows.nth(1)).to_contain_text("Compaction")
    expect(rows.nth(1)).to_contain_text("planned")
    expect(rows).to_have_count(4)


def test_the_options_of_writers_are_copied_from_the_page_of_their_table(page: Page, installation: Installation) -> None:
    page.goto(installation.address("writers"))
    page.locator("summary", has_text="Options for its writers").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Engine of the writer").select_option("flink")
    clause = page.get_by_role("region", name="WITH clause")
    expect(clause).to_contain_text("'hoodie.bucket.index.num.buckets' = '4'")
    page.get_by_role("button", name="Copy WITH clause").click()
    expect(page.locator("#spoken")).to_have_text("WITH clause of CREATE TABLE is copied.")
    page.get_by_label("Engine of the writer").select_option("spark-sql")
    expect(page.get_by_role("region", name="CREATE TABLE")).to_contain_text("USING hudi LOCATION")
    assert barriers(page) == []


def test_a_consumer_is_declared_and_removed_on_the_page_of_its_table(page: Page, installation: Installation) -> None:
    page.goto(installation.address("writers"))
    page.get_by_label("Name of a consumer").fill("copy")
    page.get_by_label("Last instant").fill("20260101120000000")
    page.keyboard.press("Enter")
    expect(page.get_by_role("table", name="Consumers")).to_contain_text("20260101120000000")
    expect(page.get_by_label("Name of a consumer")).to_have_value("")
    assert barriers(page) == []
    page.get_by_role("button", name="Remove copy").click()
    expect(page.locator("main")).to_contain_text("No incremental reader")
    assert installation.api.get(f"/tables/{TRIPS}/consumers").json()["items"] == []


def test_declarations_about_a_table_are_changed_on_its_page(
    page: Page, faults: Faults, installation: Installation
) -> None:
    faults.allow("404|412|422")  # There is no such table in the storage, and somebody else changes it.
    installation.add(["declared"])
    url = "/tables/tbl_declared"
    page.goto(f"{installation.url}/#{url}?tab=writers")
    page.locator("summary", has_text="Change what is declared").click()
    page.locator("select[name=writers]").select_option("they run")
    page.get_by_label("Hudi version of the writers").fill("1.1.0")
    page.get_by_label("Flink").check()
    page.locator("select[name=lock]").select_option("ZooKeeper")
    page.get_by_label("Options of the lock").fill("hoodie.write.lock.zookeeper.lock_key=x")
    assert barriers(page) == []
    form = page.locator("details[data-key=declarations] form")
    before = form.get_attribute("data-key") or ""
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="Saved")).to_be_visible()
    expect(form).not_to_have_attribute("data-key", before)
    table = installation.api.get(url).json()
    assert (table["writers"]["hudi_version"], table["writers"]["engines"]) == ("1.1.0", ["flink"])
    assert table["lock"]["provider"] == "zookeeper"
    assert table["lock"]["options"] == {"hoodie.write.lock.zookeeper.lock_key": "x"}
    # Somebody else changes it after the form was opened: nothing of theirs is overwritten.
    version = page.get_by_label("Hudi version of the writers")
    version.fill("1.0.2")
    installation.api.patch(url, json={"writers": {"hudi_version": "1.2.0"}}).raise_for_status()
    # No event about the change takes away what was typed.
    expect(version).to_have_value("1.0.2")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("details[data-key=declarations] .problem")).to_contain_text("has changed since")
    assert installation.api.get(url).json()["writers"]["hudi_version"] == "1.2.0"
    page.goto("about:blank")
    installation.api.delete(url).raise_for_status()


def test_the_log_of_a_job_is_downloaded(page: Page, installation: Installation) -> None:
    page.goto(installation.address("failed job"))
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the log").click()
    assert download.value.suggested_filename == f"{installation.jobs['failed']}.log"


def test_the_files_are_shown_by_size_and_by_bucket_and_the_backlog_over_time(
    page: Page, installation: Installation
) -> None:
    page.goto(installation.address("files"))
    files = page.get_by_role("region", name="Files")
    expect(files.get_by_role("img", name="below 1.0 MiB: 2 base files")).to_be_visible()
    expect(files.get_by_role("img", name="p: 4 buckets, 7.0 KiB; the largest is 2.857 times the mean")).to_be_visible()
    page.get_by_role("tab", name="Health").click()
    backlog = page.get_by_role("region", name="Backlog over time")
    expect(backlog.locator("figure", has_text="Logs that wait for a compaction")).to_contain_text("1.0 KiB")
    expect(backlog.get_by_role("img", name="Commits since the last compaction: now 2, at most 2")).to_be_visible()
    backlog.get_by_label("Period").select_option("the last day")
    expect(backlog.locator("figure")).to_have_count(5)


def test_a_setting_is_changed_and_reset_and_its_source_is_shown(page: Page, installation: Installation) -> None:
    installation.api.put("/policies/tri*", json={"compaction": {"commits": 8, "seconds": 7200}}).raise_for_status()
    page.goto(installation.address("decisions"))
    page.get_by_role("link", name="Edit the policy").click()
    page.locator("details[data-key=compaction] > summary").click()
    row = page.locator("tr[data-key='compaction.commits']")
    expect(row).to_contain_text("pattern tri*")
    row.get_by_label("Commits (compaction.commits)").fill("9")
    page.keyboard.press("Tab")
    expect(row).to_contain_text("this table, when saved")
    page.get_by_role("button", name="Save the change").click()
    expect(page.get_by_role("status").filter(has_text="Saved")).to_be_visible()
    found = installation.api.get(f"/tables/{TRIPS}/policy").json()
    assert (found["policy"]["compaction"]["commits"], found["sources"]["compaction.commits"]) == (9, "table")
    row.get_by_role("button", name="Reset compaction.commits").click()
    page.get_by_role("button", name="Save the change").click()
    expect(row).to_contain_text("pattern tri*")
    expect(row.get_by_label("Commits (compaction.commits)")).to_have_value("8")
    assert "table" not in installation.api.get(f"/tables/{TRIPS}/policy").json()["sources"].values()
    installation.api.delete("/policies/tri*").raise_for_status()


def test_a_refused_edit_shows_the_reason_and_keeps_the_input(
    page: Page, faults: Faults, installation: Installation
) -> None:
    faults.allow("422")
    page.goto(installation.address("policy"))
    zone = page.get_by_label("Time zone (time_zone)")
    zone.fill("Middle/Earth")
    page.keyboard.press("Tab")
    with page.expect_response(lambda answer: answer.status == 422):
        page.get_by_role("button", name="Save the change").click()
    expect(page.locator("form .problem")).to_contain_text("must be a time zone of the IANA database")
    expect(zone).to_have_value("Middle/Earth")


def test_a_table_is_paused_and_goes_on(page: Page, installation: Installation) -> None:
    page.goto(installation.address("decisions"))
    upkeep = page.get_by_role("region", name="Automatic jobs")
    upkeep.get_by_role("button", name="Pause automatic jobs").click()
    page.get_by_role("button", name="Pause it").click()
    expect(upkeep.get_by_role("button", name="Resume automatic jobs")).to_be_visible()
    assert installation.api.get(f"/tables/{TRIPS}/policy").json()["policy"]["paused"] is True
    upkeep.get_by_role("button", name="Resume automatic jobs").click()
    expect(upkeep.get_by_role("button", name="Pause automatic jobs")).to_be_visible()
    assert installation.api.get(f"/tables/{TRIPS}/policy").json()["policy"]["paused"] is False


def test_the_log_of_a_job_grows_and_a_failed_job_is_submitted_again(page: Page, installation: Installation) -> None:
    running = installation.jobs["running"]
    lines = ["planning", "The lock is held.\n\tby writer-7"]
    log = [
        {"number": number, "at": datetime.now(UTC).isoformat(), "level": level, "logger": "jobs.test", "message": text}
        for number, (level, text) in enumerate(zip(("INFO", "WARNING"), lines, strict=True))
    ]
    page.goto(installation.address("running job"))
    shown = page.get_by_role("region", name="Log")
    expect(shown).to_contain_text("The log has no such lines.")
    installation.post(f"/worker/leases/{running}/heartbeat", {"attempt": 1, "log": log})
    expect(shown.locator("li")).to_have_count(2)
    shown.get_by_label("Lines").select_option("warnings and errors")
    expect(shown.locator("li")).to_have_count(1)
    expect(shown.locator("li")).to_contain_text("WARNING jobs.test: The lock is held.")
    page.goto(installation.address("failed job"))
    page.get_by_role("button", name="Submit it again").click()
    expect(page.locator("h1")).to_contain_text("queued")
    again = installation.api.get(f"/jobs/{page.url.rpartition('/')[2]}").json()
    assert again["retry_of"] == installation.jobs["failed"]
    expect(page.locator("main")).to_contain_text(f"waits for {again['waits_for'].partition(' (')[0]}")
    expect(page.locator("main")).to_contain_text(again["forecast"]["text"].partition(" about")[0])
    page.goto(installation.address("jobs"))
    expect(page.get_by_role("region", name="Active jobs")).to_contain_text("queued, about")
    installation.api.post(f"/jobs/{again['id']}/cancel").raise_for_status()


@pytest.mark.parametrize(("role", "name"), [("region", "Result"), ("table", "Attempts")])
def test_a_refusal_links_the_page_about_its_type(
    page: Page, installation: Installation, role: Literal["region", "table"], name: str
) -> None:
    page.goto(installation.address("failed job"))
    with page.expect_popup() as opened:
        page.get_by_role(role, name=name).get_by_role("link", name="More about this problem").click()
    expect(opened.value).to_have_url(re.compile(r"/problems/column-unknown$"))
    expect(opened.value.locator("h1")).to_have_text("The table has no such column")


def test_a_dry_run_that_would_be_refused_says_so_and_offers_no_start(page: Page, installation: Installation) -> None:
    page.goto(installation.address("refused dry run"))
    expect(page.locator("h1 .badge")).to_have_text("refused")
    assert page.locator("h1 .badge.succeeded").count() == 0
    plan = page.get_by_role("region", name="Plan")
    expect(plan).to_contain_text("The job would be refused, for 1 reason")
    expect(plan).to_contain_text("The new number of buckets is not a multiple of the present one")
    expect(page.get_by_role("table", name="Attempts").locator(".badge")).to_have_text("refused")
    expect(page.get_by_role("button", name="Run it now")).to_have_count(0)
    assert page.locator("main .good, main .badge.succeeded").count() == 0
    page.goto(installation.address("idle dry run"))
    expect(page.locator("h1 .badge")).to_have_text("nothing to do")
    expect(page.get_by_role("region", name="Plan")).to_contain_text("There is nothing to do.")
    expect(page.get_by_role("button", name="Run it now")).to_have_count(0)
    assert page.locator("main .good, main .badge.succeeded").count() == 0
    page.goto(installation.address("ready dry run"))
    expect(page.locator("h1 .badge.succeeded")).to_be_visible()
    expect(page.get_by_role("button", name="Run it now")).to_be_visible()


def test_a_table_is_detected_and_then_registered(
    page: Page, faults: Faults, installation: Installation, tmp_path: Path
) -> None:
    faults.allow("404")  # A table has no snapshot before its first poll.
    table = SmallTable(tmp_path / "clicks")
    table.commit("001", {})
    page.goto(f"{installation.url}/")
    page.get_by_label("Name or path").fill("click")
    page.get_by_role("link", name="Register a table").click()
    page.locator("[name=base_path]").fill(str(table.base))
    page.wait_for_timeout(500)
    # The search that was typed before leaves the other page alone.
    assert page.url.endswith("#/register")
    page.locator("select[name=writers]").select_option("they run")
    page.get_by_label("Hudi version of the writers").fill("1.2.0")
    page.get_by_label("Spark SQL").check()
    page.get_by_role("button", name="Detect only").click()
    found = page.get_by_role("region", name="Detected")
    expect(found).to_contain_text("MOR, table version 9")
    expect(found).to_contain_text("not partitioned")
    page.get_by_role("button", name="Register", exact=True).click()
    expect(page.locator("h1")).to_contain_text("clicks")
    made = installation.api.get(f"/tables/{page.url.rpartition('/')[2]}").json()
    assert (made["writers"]["hudi_version"], made["writers"]["engines"]) == ("1.2.0", ["spark-sql"])
    page.goto("about:blank")
    installation.api.delete(f"/tables/{made['id']}").raise_for_status()


def test_tables_below_a_folder_are_found_with_what_their_paths_say_and_registered(
    page: Page, faults: Faults, installation: Installation, tmp_path: Path
) -> None:
    faults.allow("404")
    for name in ("shop/carts", "ads/clicks"):
        (tmp_path / name).parent.mkdir()
        SmallTable(tmp_path / name).commit("001", {})
    page.goto(f"{installation.url}/#/register")
    page.get_by_role("link", name="Find all tables below a folder").click()
    page.locator("input[name=root]").fill(str(tmp_path))
    page.locator("textarea[name=rules]").fill("{team}/*")
    page.get_by_role("button", name="Detect only").click()
    found = page.get_by_role("table", name="Tables")
    expect(found.get_by_role("row", name="shop/carts")).to_contain_text("can be registered")
    expect(found.get_by_role("row", name="shop/carts")).to_contain_text("team=shop")
    assert barriers(page) == []
    assert not is_wider_than_the_window(page)
    page.get_by_role("button", name="Register all").click()
    expect(found.get_by_role("row", name="ads/clicks")).to_contain_text("registered now")
    made = installation.api.get("/tables", params={"tag": "team=ads"}).json()["items"]
    assert [each["name"] for each in made] == ["clicks"]
    page.goto("about:blank")
    for each in installation.api.get("/tables", params={"path": str(tmp_path)}).json()["items"]:
        installation.api.delete(f"/tables/{each['id']}").raise_for_status()


def test_a_path_without_a_table_is_refused_in_words(
    page: Page, faults: Faults, installation: Installation, tmp_path: Path
) -> None:
    faults.allow("404|409|422")
    page.goto(f"{installation.url}/#/register")
    page.get_by_label("Path").fill(str(tmp_path / "nothing"))
    page.get_by_role("button", name="Detect only").click()
    expect(page.locator("main .problem")).to_contain_text("does not exist")


def test_a_webhook_is_created_and_its_page_leads_with_what_holds_it_up(page: Page, installation: Installation) -> None:
    with Receiver(Reply(503, body=b"the queue is full")) as receiver:
        page.goto(f"{installation.url}/#/webhooks")
        page.get_by_label("URL").fill(receiver.url)
        page.get_by_label("Events").fill("job.*")
        page.get_by_label("Description").fill("to the cache")
        page.get_by_role("button", name="Create", exact=True).click()
        expect(page.get_by_role("status").filter(has_text="shown only now")).to_contain_text("whsec_")
        page.get_by_role("link", name="Show the webhook").click()
        hook = page.url.rpartition("/")[2]
        job = installation.post(f"/tables/{TRIPS}/jobs", {"kind": "diagnosis"})["id"]
        installation.api.post(f"/jobs/{job}/cancel")

        def blocked() -> list[dict[str, object]]:
            found: list[dict[str, object]] = installation.api.get(f"/webhooks/{hook}").json()["blocked"]
            return found

        assert eventually(lambda: bool(blocked()), 60)
        first = page.locator("main > *").nth(1)
        expect(first).to_contain_text("1 event waits behind this one")
        expect(first).to_contain_text("job.queued of trips")
        expect(first).to_contain_text("HTTP 503")
        expect(first).to_contain_text("the queue is full")
        receiver.answer = Reply()
        first.get_by_role("button", name="Give this event up").click()
        page.get_by_role("button", name="Give it up").click()
        assert eventually(lambda: [got.event["type"] for got in receiver.received][-1:] == ["job.cancelled"], 60)
        expect(page.locator("main")).not_to_contain_text("behind this one")
        assert blocked() == []
        page.goto("about:blank")
        installation.api.delete(f"/webhooks/{hook}").raise_for_status()


def test_an_attempt_and_a_worker_link_to_their_spark_application(page: Page, installation: Installation) -> None:
    page.goto(installation.address("running job"))
    shown = page.get_by_role("table", name="Attempts").get_by_role("link", name="Spark UI")
    expect(shown).to_have_attribute("href", SPARK["ui_url"])
    page.goto(installation.address("workers"))
    page.get_by_role("table", name="Workers", exact=True).locator("summary").first.click()
    expect(page.get_by_role("link", name=SPARK["ui_url"]).first).to_be_visible()


def test_workers_their_groups_and_what_jobs_wait_for_are_shown_and_all_is_paused(
    page: Page, installation: Installation
) -> None:
    page.goto(f"{installation.url}/#/workers")
    expect(page.get_by_role("table", name="Worker groups")).to_contain_text("default")
    expect(page.get_by_role("table", name="Workers", exact=True)).to_contain_text(installation.jobs["running"])
    waits = installation.api.get(f"/jobs/{installation.jobs['queued']}").json()["waits_for"]
    waiting = page.get_by_role("table", name="Jobs that wait")
    expect(waiting).to_contain_text(waits.replace("`", ""))
    expect(waiting.locator("code")).to_have_text("groundskeeper worker --group night --service <URL>")
    assert waiting.locator("time").evaluate("each => each.getClientRects().length") == 1
    page.get_by_label("Reason").fill("The storage is moved.")
    page.get_by_role("button", name="Pause automatic jobs").click()
    expect(page.locator("main")).to_contain_text("The storage is moved.")
    assert installation.api.get("/pause").json()["paused"] is True
    page.goto(f"{installation.url}/")
    page.get_by_role("button", name="Resume automatic jobs").click()
    expect(page.get_by_role("button", name="Resume automatic jobs")).to_have_count(0)
    assert installation.api.get("/pause").json()["paused"] is False


def test_the_page_of_an_unknown_table_says_what_to_do(page: Page, faults: Faults, installation: Installation) -> None:
    faults.allow("404")
    page.goto(f"{installation.url}/#/tables/tbl_none")
    expect(page.locator("#banner")).to_contain_text("There is no table tbl_none.")
    expect(page.locator("#banner code").first).to_have_text("groundskeeper tables list")
    state = page.locator("#pulse")
    expect(state).to_have_text("error")
    expect(state).to_have_css("background-color", "rgba(0, 0, 0, 0)")
    expect(page.locator("main")).to_have_css("opacity", "1")
    assert barriers(page) == []


@contextmanager
def _of_its_own(page: Page, folder: Path) -> Iterator[Installation]:
    """A separate installation without a login. The page leaves the installation before the installation ends."""
    made = Installation(folder)
    try:
        yield made
    finally:
        page.goto("about:blank")
        made.close()


@pytest.mark.exhaustive
def test_a_reader_sees_everything_but_no_form_for_actions_without_permission(
    page: Page, faults: Faults, tmp_path: Path
) -> None:
    faults.allow("401")
    with _of_its_own(page, tmp_path) as made:
        made.log_in(page, "reader")
        for name in made.pages:
            if name in ("audit", "register"):
                continue
            page.goto("about:blank")
            page.goto(made.address(name))
            page.wait_for_selector("#pulse.live")
            page.wait_for_selector("main h1")
            forms = page.locator("main form input, main form button, main button.danger, main button.primary")
            assert forms.count() == 0, name
        expect(page.get_by_role("link", name="Register a table")).to_have_count(0)
        assert page.get_by_role("button", name="Pause automatic jobs").count() == 0


@pytest.mark.exhaustive
def test_an_operator_runs_jobs_but_sees_no_form_for_actions_of_admins(
    page: Page, faults: Faults, tmp_path: Path
) -> None:
    faults.allow("401")
    with _of_its_own(page, tmp_path) as made:
        made.log_in(page, "operator")
        expect(page.get_by_role("link", name="Register a table")).to_have_count(0)
        expect(page.locator("#audit")).to_be_hidden()
        page.goto(made.address("register"))
        expect(page.locator("main")).to_contain_text("Only an admin may register tables")
        page.goto(made.address("webhooks"))
        page.wait_for_selector("main h1")
        expect(page.locator("main form")).to_have_count(0)
        page.goto(made.address("webhook"))
        page.wait_for_selector("main h1")
        expect(page.get_by_role("button", name="Delete")).to_have_count(0)
        page.goto(made.address("workers"))
        expect(page.get_by_role("button", name="Pause automatic jobs")).to_have_count(1)
        page.goto(made.address("jobs of a table"))
        expect(page.locator("main form").first).to_be_visible()


@pytest.mark.exhaustive
def test_earlier_decisions_are_loaded_page_by_page(page: Page, faults: Faults, installation: Installation) -> None:
    faults.allow("4(04|22)")  # The table itself is not there.
    installation.add(["decided"])
    began = utc_now() - timedelta(hours=60)
    with writing(installation.service.engine) as connection:
        for number in range(45):
            at = began + timedelta(hours=number)
            decision = Decision(JobKind.CLEANING, Verdict.WAIT, f"code{number}", f"reason {number}", at, at)
            decision_store.record(connection, "tbl_decided", [decision], {})
    page.goto(f"{installation.url}/#/tables/tbl_decided?tab=policy")
    page.get_by_label("Earlier decisions about cleaning").click()
    earlier = page.locator(".earlier > li")
    expect(earlier.first).to_contain_text("Reason 44")
    first = earlier.count()
    assert 0 < first < 45
    while page.get_by_role("button", name="Load more").count():
        shown = earlier.count()
        page.get_by_role("button", name="Load more").click()
        expect(earlier.nth(shown)).to_be_visible()
    expect(earlier).to_have_count(45)
    expect(earlier.last).to_contain_text("Reason 0")
    installation.api.delete("/tables/tbl_decided").raise_for_status()
