"""Tests the incidents over REST: lists, counts, and closing by people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from service.access.token import Role
from service.db import schema
from service.db.engine import reading, writing
from service.db.page import PageRequest
from service.delivery import outbox
from service.incidents import store
from service.incidents.incident import Incident, IncidentKind, IncidentState
from tests.support.pages import members

if TYPE_CHECKING:
    from collections.abc import Callable

    import sqlalchemy as sa
    from fastapi.testclient import TestClient

    from tests.integration.control_plane.conftest import FakeClock

STALE, OLD, LATE = IncidentKind.STALE_WRITE, IncidentKind.OLD_NUMBER, IncidentKind.LATE_FILES
OPEN, SUSPECTED, CLEARED = IncidentState.OPEN, IncidentState.SUSPECTED, IncidentState.CLEARED


@pytest.fixture
def found(sqlite: sa.Engine, clock: FakeClock, table_id: str) -> list[str]:
    """Stores an open incident, a suspicion and an incident of a fenced writer, and returns the ids in this order."""
    every = [
        Incident("inc_1", table_id, STALE, "001", OPEN, clock(), "UPSERT_PREPPED", {"rows": 173}),
        Incident("inc_2", table_id, OLD, "003", SUSPECTED, clock(), "UPSERT", {"rows": 1}),
        Incident("inc_3", table_id, LATE, "005", OPEN, clock()),
    ]
    with writing(sqlite) as connection:
        assert store.add(connection, every) == every
    return [each.id for each in every]


def ids(client: TestClient, path: str = "/v1/incidents", **query: Any) -> list[str]:
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return [each["id"] for each in answer.json()["items"]]


def test_incidents_say_what_they_mean_and_what_to_do(client: TestClient, table_id: str, found: list[str]) -> None:
    shown = client.get("/v1/incidents", params={"kind": "stale-write"}).json()["items"]
    assert shown == [
        {
            "id": "inc_1",
            "table_id": table_id,
            "kind": "stale-write",
            "instant": "001",
            "operation": "UPSERT_PREPPED",
            "state": "open",
            "title": "A commit wrote to file groups that had been replaced",
            "detail": "No reader sees the 173 rows that 001 (UPSERT_PREPPED) wrote there: new rows are missing, "
            "updates and deletes have no effect. A copy-on-write table is an exception: readers see these rows beside "
            "the old ones, and with a bucket index every later write to these buckets fails until the repair.",
            "hint": "Start a repair: it moves the rows to where they belong. Until then nothing is cleaned.",
            "details": {"rows": 173},
            "opened_at": "2026-01-01T00:00:00Z",
            "closed_at": None,
            "because": None,
        }
    ]


def test_incidents_are_filtered_and_paged(client: TestClient, table_id: str, found: list[str]) -> None:
    newest_first = found[::-1]
    assert ids(client) == newest_first
    assert ids(client, f"/v1/tables/{table_id}/incidents") == newest_first
    assert ids(client, table_id="tbl_other") == []
    assert ids(client, state="open") == ["inc_3", "inc_1"]
    assert ids(client, state=["open", "suspected"]) == newest_first
    assert members(client, "/v1/incidents", "id", limit=1) == newest_first
    assert client.get("/v1/tables/tbl_other/incidents").status_code == 404
    assert client.get("/v1/incidents", params={"state": "gone"}).status_code == 422


def test_a_table_shows_the_number_of_its_open_incidents(client: TestClient, table_id: str, found: list[str]) -> None:
    assert client.get(f"/v1/tables/{table_id}").json()["incidents"] == {"open": 2, "suspected": 1}
    assert client.get("/v1/tables").json()["items"][0]["incidents"] == {"open": 2, "suspected": 1}
    client.post("/v1/incidents/inc_3/close", json={"reason": "it is gone"})
    assert client.get(f"/v1/tables/{table_id}").json()["incidents"] == {"open": 1, "suspected": 1}


def test_a_closed_incident_keeps_who_closed_it_and_why(
    client: TestClient, sqlite: sa.Engine, clock: FakeClock, found: list[str]
) -> None:
    clock.advance(60)
    closed = client.post("/v1/incidents/inc_1/close", json={"reason": "written again by hand"})
    assert closed.status_code == 200
    assert (closed.json()["state"], closed.json()["because"]) == ("cleared", "anybody: written again by hand")
    assert closed.json()["closed_at"] == "2026-01-01T00:01:00Z"
    again = client.post("/v1/incidents/inc_1/close", json={"reason": "once more"})
    assert (again.status_code, again.json()["type"]) == (409, "/problems/incident-already-closed")
    assert "written again by hand" in again.json()["detail"]
    assert client.post("/v1/incidents/inc_2/close", json={"reason": "a false alarm"}).status_code == 200
    assert client.post("/v1/incidents/inc_3/close", json={"reason": "it is gone"}).status_code == 200
    with reading(sqlite) as connection:
        told = [published.event.type for published in outbox.after(connection, 0, 100)]
    # There was no event for the suspicion.
    assert told[1:] == ["table.incident_closed", "table.incident_closed", "table.recovered"]


def test_a_reader_cannot_close_an_incident(
    client: TestClient, make_token: Callable[[Role], dict[str, str]], found: list[str]
) -> None:
    reader, operator = make_token(Role.READER), make_token(Role.OPERATOR)
    assert client.get("/v1/incidents", headers=reader).status_code == 200
    refused = client.post("/v1/incidents/inc_1/close", json={"reason": "x"}, headers=reader)
    assert refused.status_code == 403
    assert client.post("/v1/incidents/inc_1/close", json={"reason": "x"}, headers=operator).status_code == 200


def test_a_reason_is_needed_and_an_incident(client: TestClient, found: list[str]) -> None:
    assert client.post("/v1/incidents/inc_1/close", json={"reason": ""}).status_code == 422
    missing = client.post("/v1/incidents/inc_9/close", json={"reason": "x"})
    assert (missing.status_code, missing.json()["type"]) == (404, "/problems/incident-not-found")


def test_a_job_that_would_remove_stale_rows_is_refused_with_the_remedy(
    client: TestClient, table_id: str, found: list[str]
) -> None:
    path = f"/v1/tables/{table_id}/jobs"
    refused = client.post(path, json={"kind": "cleaning"})
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/incident-open")
    assert refused.json()["incident_ids"] == ["inc_1", "inc_2"]
    assert "repair" in refused.json()["hint"]
    assert client.get("/v1/jobs").json()["items"] == []
    assert client.post(path, json={"kind": "cleaning", "dry_run": True}).status_code == 202
    assert client.post(path, json={"kind": "repair", "params": {"instants": ["20260101120000001"]}}).status_code == 202


def test_closed_incidents_are_deleted_with_their_commits(
    sqlite: sa.Engine, clock: FakeClock, table_id: str, found: list[str]
) -> None:
    with writing(sqlite) as connection:
        connection.execute(schema.watches.update().values(active_from="002"))
        for each in store.unresolved(connection, table_id, of=["001", "003"]):
            store.close(connection, each.closed(CLEARED, "because", clock()))
        clock.advance(1)
        assert store.prune(connection, clock(), 10) == 1
        assert [each.id for each in store.page(connection, PageRequest(9)).items] == ["inc_3", "inc_2"]
