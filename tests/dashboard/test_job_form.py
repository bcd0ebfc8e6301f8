"""Tests the form that starts a job, which is made from the declarations of the kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playwright.sync_api import expect
from pydantic import TypeAdapter

from jobs.contract import JobKind
from jobs.kinds.registry import KINDS
from service.api.params import JobIn, as_json
from tests.dashboard.installation import TRIPS

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page, Route

    from tests.dashboard.installation import Installation

ADAPTER: TypeAdapter[Any] = TypeAdapter(JobIn)
FILLED = {
    JobKind.CLUSTERING: {},
    JobKind.BUCKET_EXPANSION: {"factor": "2"},
    JobKind.BUCKET_CONTRACTION: {"num_buckets": "2"},
    JobKind.BUCKET_COUNT: {"num_buckets": "7"},
    JobKind.BUCKET_INDEX: {"action": "adopt"},
    JobKind.PARTITION_TTL: {"days_retain": "90"},
    JobKind.RESTORE: {"savepoint": "20260101120000000", "table_name": "trips"},
    JobKind.ROLLBACK: {"instant": "20260101120000000"},
    JobKind.UPGRADE: {"to_version": "9"},
    JobKind.SYNC: {"metastore_uris": "thrift://metastore:9083"},
}
"""The inputs of a person, by kind."""


def taken(page: Page, installation: Installation) -> list[dict[str, Any]]:
    """Returns a list that collects the bodies that the form sends. The service does not get them."""
    sent: list[dict[str, Any]] = []

    def take(route: Route) -> None:
        sent.append(route.request.post_data_json)
        route.fulfill(status=200, json={"id": installation.jobs["failed"]})

    page.route("**/v1/tables/*/jobs", take)
    return sent


def fill(form: Locator, kind: JobKind) -> None:
    form.get_by_label("Kind").select_option(kind.value)
    expect(form.locator("p.quiet")).to_contain_text(KINDS[kind].summary)
    for name, value in FILLED.get(kind, {}).items():
        field = form.locator(f"[name={name}]")
        if field.evaluate("each => each.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
    if kind is JobKind.CLUSTERING:
        column = form.locator("select[name=sort_by]")
        if column.count():
            column.select_option(index=1)
        else:
            form.locator("input[name=sort_by]").fill("city")


def test_the_form_of_each_kind_can_send_all_parameters_of_the_api(page: Page, installation: Installation) -> None:
    sent = taken(page, installation)
    for kind in JobKind:
        page.goto(installation.address("jobs of a table"))
        form = page.get_by_role("region", name="Start a job")
        fill(form, kind)
        form.locator("button.primary").click()
        expect(page).to_have_url(installation.address("failed job"))

    assert [each["kind"] for each in sent] == list(JobKind)
    for each in sent:
        kind = JobKind(each["kind"])
        checked = ADAPTER.validate_python(each)
        assert each["dry_run"] == KINDS[kind].has_plan, kind
        # The form sends the same defaults as the API has.
        needed = {name: each["params"][name] for name in (*FILLED.get(kind, {}), "sort_by") if name in each["params"]}
        assert as_json(checked.params) == as_json(ADAPTER.validate_python({"kind": kind, "params": needed}).params)


def test_partitions_are_paths_or_prefixes_and_numbers_are_numbers(page: Page, installation: Installation) -> None:
    sent = taken(page, installation)

    def partitioned(route: Route) -> None:
        table = route.fetch().json()
        route.fulfill(json={**table, "profile": {**table["profile"], "partition_fields": ["dt"]}})

    page.route(f"**/v1/tables/{TRIPS}", partitioned)
    page.goto(installation.address("jobs of a table"))
    form = page.get_by_role("region", name="Start a job")
    form.locator("[name=partitions]").fill("dt=2026-01-01\ndt=2025-*")
    form.locator("[name=limit_bytes]").fill("1000")
    form.locator("[name=codec]").select_option("zstd")
    form.get_by_text("More parameters").click()
    form.locator("[name=take_over]").select_option("no")
    form.get_by_label("Dry run").uncheck()
    form.get_by_role("button", name="Start the job").click()
    expect(page).to_have_url(installation.address("failed job"))

    partitions = ["dt=2026-01-01", {"prefix": "dt=2025-"}]
    params = {"limit_bytes": 1000, "partitions": partitions, "codec": "zstd", "take_over": False}
    assert sent == [{"kind": "compaction", "params": params, "dry_run": False}]
