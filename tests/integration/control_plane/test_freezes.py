"""Tests freezes, which are set over REST, hold automatic jobs back, and give the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from service.db.engine import writing
from service.events.database import Database
from service.lake.snapshot import PartitionState, Since, TableSnapshot
from service.lake.table import TableType
from service.policies.freeze import Freeze
from service.policies.policy import Policy
from service.queue.attempt_delays import standstill
from service.scheduling import scheduler
from tests.integration.control_plane.planning import save_poll

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi.testclient import TestClient

    from service.api.dependencies import AppContext
    from tests.integration.control_plane.conftest import FakeClock

pytestmark = pytest.mark.mostly_sqlite

SALE = {"starts_at": "2026-01-01T01:00:00Z", "ends_at": "2026-01-01T03:00:00Z", "reason": "the sale"}


@pytest.fixture
def decide(app_context: AppContext, clock: FakeClock) -> Callable[[], None]:
    """Decides about the tables that are due."""
    own = app_context.database

    def decide_once() -> None:
        database = Database(own.engine, clock, own.notifier, cipher=own.cipher)
        scheduler.run_once(database, app_context.queue.planning)

    return decide_once


@pytest.fixture
def due(app_context: AppContext, table_id: str, clock: FakeClock) -> str:
    """A table whose compaction is due."""
    state = PartitionState("", base_bytes=1000, log_bytes=100)
    seen = TableSnapshot(table_id, clock(), TableType.MERGE_ON_READ, (state,), since_compaction=Since(5))
    with writing(app_context.database.engine) as connection:
        save_poll(connection, seen)
    return table_id


def compaction(client: TestClient, table_id: str) -> dict[str, Any]:
    path = f"/v1/tables/{table_id}/decisions"
    found: dict[str, Any] = client.get(path, params={"kind": "compaction", "current": True}).json()["items"][0]
    return found


def test_a_freeze_withdraws_what_has_not_begun_and_says_why_until_it_ends(
    client: TestClient, due: str, decide: Callable[[], None], clock: FakeClock
) -> None:
    client.put("/v1/freezes/sale", json={**SALE, "tables": ["ord*"]})
    client.put("/v1/freezes/other", json={**SALE, "ends_at": "2026-02-01T00:00:00Z", "tables": ["clicks"]})
    decide()
    job_id = compaction(client, due)["job_id"]
    assert client.get(f"/v1/jobs/{job_id}").json()["state"] == "queued"
    # The beginning of a freeze makes the decision due by itself.
    clock.advance(3600)
    decide()
    job = client.get(f"/v1/jobs/{job_id}").json()
    assert (job["state"], job["error"]["detail"]) == (
        "cancelled",
        "A freeze of the table began before a worker was free.",
    )
    waits = compaction(client, due)
    assert (waits["verdict"], waits["code"]) == ("wait", "frozen")
    assert waits["because"].endswith("; but the freeze sale lasts until 2026-01-01 03:00 UTC (the sale)")
    clock.advance(2 * 3600)
    decide()
    assert compaction(client, due)["verdict"] == "run"


def test_a_deleted_freeze_holds_nothing(
    client: TestClient, due: str, decide: Callable[[], None], clock: FakeClock
) -> None:
    client.put("/v1/freezes/sale", json={**SALE, "starts_at": "2025-12-31T00:00:00Z"})
    decide()
    assert compaction(client, due)["code"] == "frozen"
    client.delete("/v1/freezes/sale")
    decide()
    assert compaction(client, due)["verdict"] == "run"


def test_an_attempt_after_the_first_waits_for_the_end_of_a_freeze(clock: FakeClock) -> None:
    now = clock()
    freeze = Freeze("sale", now, now.replace(hour=3), ("*",), "", "ada", now, now)
    held = standstill(None, Policy(), now, freeze)
    assert held is not None
    assert held.because == "the end of a freeze: the freeze sale lasts until 2026-01-01 03:00 UTC"


def test_a_freeze_is_set_shown_replaced_and_deleted(client: TestClient) -> None:
    answer = client.put("/v1/freezes/sale", json=SALE)
    assert answer.status_code == 201, answer.text
    assert (answer.json()["tables"], answer.json()["reason"]) == (["*"], "the sale")
    seen = client.get("/v1/freezes/sale")
    changed = {**SALE, "tables": ["ord*"]}
    assert client.put("/v1/freezes/sale", json=changed, headers={"If-Match": seen.headers["etag"]}).status_code == 200
    again = client.put("/v1/freezes/sale", json=SALE, headers={"If-Match": seen.headers["etag"]})
    assert again.json()["type"] == "/problems/changed-meanwhile"
    assert [each["tables"] for each in client.get("/v1/freezes").json()["items"]] == [["ord*"]]
    assert client.delete("/v1/freezes/sale").status_code == 204
    assert client.get("/v1/freezes/sale").json()["type"] == "/problems/freeze-not-found"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {**SALE, "ends_at": SALE["starts_at"]},
        {**SALE, "starts_at": "2026-01-01T01:00:00"},
        {**SALE, "tables": []},
        {**SALE, "why": "x"},
    ],
)
def test_a_bad_freeze_is_refused(client: TestClient, body: dict[str, Any]) -> None:
    answer = client.put("/v1/freezes/sale", json=body)
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/params-invalid")


def test_the_calendar_has_freezes_and_open_windows_of_the_tables(client: TestClient, table_id: str) -> None:
    client.put("/v1/freezes/sale", json={**SALE, "tables": ["nothing*"]}).raise_for_status()
    night = {"windows": [{"start": "22:00", "end": "04:30", "days": ["thu"]}], "time_zone": "Europe/Berlin"}
    client.put("/v1/policies/*", json=night).raise_for_status()
    period = {"since": "2026-01-01T00:00:00Z", "until": "2026-01-08T00:00:00Z"}
    found = client.get("/v1/calendar", params=period).json()
    [held], [opened] = found["freezes"], found["windows"]
    assert (held["freeze"]["name"], held["tables"], held["table_names"]) == ("sale", 0, [])
    assert (opened["source"], opened["time_zone"], opened["tables"]) == ("pattern *", "Europe/Berlin", 1)
    assert opened["spans"] == [{"starts_at": "2026-01-01T21:00:00Z", "ends_at": "2026-01-02T03:30:00Z"}]
    assert found["always"] == 0
    client.put(f"/v1/tables/{table_id}/policy", json={"windows": []}).raise_for_status()
    later = {"since": "2026-01-01T03:00:00Z", "until": "2026-01-02T00:00:00Z"}
    assert client.get("/v1/calendar", params=later).json() == {"freezes": [], "windows": [], "always": 1}
    for wrong in ({**period, "until": "2026-02-08T00:00:00Z"}, {**period, "until": period["since"]}):
        assert client.get("/v1/calendar", params=wrong).status_code == 422
