"""Tests consumers over REST, and the consumers in the leases of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.control_plane.protocol_worker import Worker

if TYPE_CHECKING:
    from fastapi.testclient import TestClient

    from tests.integration.control_plane.conftest import FakeClock

FIRST, SECOND = "20260101100000000", "20260101110000000"


def put(client: TestClient, table_id: str, name: str, instant: str) -> Any:
    return client.put(f"/v1/tables/{table_id}/consumers/{name}", json={"instant": instant})


def test_a_consumer_reports_its_progress_until_it_is_deleted(
    client: TestClient, clock: FakeClock, table_id: str
) -> None:
    created = put(client, table_id, "warehouse", FIRST)
    assert created.status_code == 201, created.text
    clock.advance(3600)
    renewed = put(client, table_id, "warehouse", SECOND)
    assert renewed.status_code == 200
    assert renewed.json() == {
        "name": "warehouse",
        "instant": SECOND,
        "created_at": "2026-01-01T00:00:00Z",
        "seen_at": "2026-01-01T01:00:00Z",
        "expires_at": "2026-01-08T01:00:00Z",
        "stale": False,
    }
    path = f"/v1/tables/{table_id}/consumers"
    assert client.get(f"{path}/warehouse").json() == renewed.json()
    clock.advance(7 * 86_400)
    (listed,) = client.get(path).json()["items"]
    assert listed["stale"] is True
    assert client.delete(f"{path}/warehouse").status_code == 204
    gone = client.delete(f"{path}/warehouse")
    assert (gone.status_code, gone.json()["type"].rsplit("/")[-1].rsplit(":")[-1]) == (404, "consumer-not-found")
    assert client.get(path).json() == {"items": []}


@pytest.mark.parametrize(("name", "instant"), [("warehouse", "yesterday"), ("ware house", FIRST), ("x" * 65, FIRST)])
def test_a_consumer_needs_a_name_and_an_instant(client: TestClient, table_id: str, name: str, instant: str) -> None:
    assert put(client, table_id, name, instant).status_code == 422


def test_consumers_of_an_unknown_table_are_not_found(client: TestClient) -> None:
    assert put(client, "tbl_none", "warehouse", FIRST).status_code == 404
    assert client.get("/v1/tables/tbl_none/consumers").status_code == 404


def test_jobs_of_cleaning_and_archival_get_the_consumers_that_count(
    client: TestClient, clock: FakeClock, table_id: str
) -> None:
    put(client, table_id, "old-job", FIRST)
    clock.advance(7 * 86_400)
    put(client, table_id, "search", SECOND)
    put(client, table_id, "warehouse", FIRST)
    expected = [{"name": "warehouse", "instant": FIRST}, {"name": "search", "instant": SECOND}]
    worker = Worker(client)
    for kind in ("cleaning", "archival", "compaction"):
        job = client.post(f"/v1/tables/{table_id}/jobs", json={"kind": kind, "dry_run": True}).json()
        order = worker.must_lease()
        assert order.job_id == job["id"]
        assert order.params.get("consumers", []) == (expected if kind != "compaction" else [])
        assert ("seen" in order.params) is (kind == "archival")
        assert "consumers" not in client.get(f"/v1/jobs/{job['id']}").json()["params"]
