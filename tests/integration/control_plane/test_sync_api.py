"""Tests syncs to a metastore over REST: only allowed hosts are accepted, and one sync runs at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from jobs.contract import Outcome, Result
from jobs.storage.permissions import Permissions
from service.api.app import create_app
from service.db.engine import writing
from service.lake.snapshot import TableSnapshot
from service.lake.table import TableType
from tests.integration.control_plane.planning import save_poll
from tests.integration.control_plane.protocol_worker import Worker
from tests.support.contexts import changed

if TYPE_CHECKING:
    from service.api.dependencies import AppContext

URIS = "thrift://metastore:9083"


def client_with(context: AppContext, *hosts: str) -> TestClient:
    permissions = Permissions(metastore_hosts=hosts)
    return TestClient(create_app(changed(context, permissions=permissions)), base_url="http://127.0.0.1")


def sync_request(uris: str = URIS, **more: Any) -> dict[str, Any]:
    return {"kind": "sync", "params": {"metastore_uris": uris, **more}}


def registered(client: TestClient) -> str:
    answer = client.post("/v1/tables", json={"base_path": "/lake/orders"})
    assert answer.status_code == 201
    return f"/v1/tables/{answer.json()['id']}"


def sync_decision(client: TestClient, table: str) -> Any:
    [found] = [each for each in client.post(f"{table}/evaluate", json={}).json()["decisions"] if each["kind"] == "sync"]
    return found


@pytest.mark.parametrize("hosts", [(), ("other",), ("metastore:9084",)])
def test_a_metastore_that_is_not_allowed_is_refused(app_context: AppContext, hosts: tuple[str, ...]) -> None:
    with client_with(app_context, *hosts) as client:
        answer = client.post(f"{registered(client)}/jobs", json=sync_request())
        assert (answer.status_code, answer.json()["type"]) == (403, "/problems/metastore-not-allowed")
        assert answer.json()["detail"] == URIS
        assert "GROUNDSKEEPER_METASTORE_HOSTS" in answer.json()["hint"]


@pytest.mark.parametrize("uris", [f"{URIS},thrift://other:9083", "thrift://metastore.evil.example"])
def test_all_hosts_of_a_metastore_must_be_allowed(app_context: AppContext, uris: str) -> None:
    with client_with(app_context, "metastore") as client:
        assert client.post(f"{registered(client)}/jobs", json=sync_request(uris)).status_code == 403


@pytest.mark.parametrize("uris", ["", "http://metastore", "thrift://", "thrift://a@metastore", "thrift://metastore/x"])
def test_a_malformed_metastore_address_is_refused(app_context: AppContext, uris: str) -> None:
    with client_with(app_context, "metastore") as client:
        assert client.post(f"{registered(client)}/jobs", json=sync_request(uris)).status_code in (403, 422)


def test_two_syncs_of_a_table_are_never_active_at_once(app_context: AppContext) -> None:
    with client_with(app_context, "metastore:9083") as client:
        table = registered(client)
        assert client.post(f"{table}/jobs", json=sync_request()).status_code == 202
        answer = client.post(f"{table}/jobs", json=sync_request(database="other"))
        assert (answer.status_code, answer.json()["type"]) == (409, "/problems/job-conflict")
        # A sync only reads the table, so a job that writes may run beside it.
        assert client.post(f"{table}/jobs", json={"kind": "compaction"}).status_code == 202
        worker = Worker(client)
        assert {worker.must_lease().kind.value for _ in range(2)} == {"sync", "compaction"}


def test_a_sync_fails_if_its_metastore_is_not_allowed_any_more(app_context: AppContext) -> None:
    with client_with(app_context, "metastore") as client:
        job = client.post(f"{registered(client)}/jobs", json=sync_request()).json()
    with client_with(app_context) as client:
        assert Worker(client).lease() is None
        found = client.get(f"/v1/jobs/{job['id']}").json()
        assert (found["state"], found["error"]["type"]) == ("failed", "/problems/metastore-not-allowed")


def test_a_policy_syncs_after_each_commit(app_context: AppContext) -> None:
    with client_with(app_context, "metastore") as client:
        table = registered(client)
        policy = {"sync": {"enabled": True, "metastore_uris": URIS, "database": "lake", "strategy": "RT"}}
        found = client.put(f"{table}/policy", json=policy).json()["policy"]["sync"]
        assert (found["metastore_uris"], found["table"]) == (URIS, None)
        now = app_context.database.clock()
        look = TableSnapshot(
            table.rpartition("/")[2], now, TableType.MERGE_ON_READ, last_commit="001", last_commit_at=now
        )
        with writing(app_context.database.engine) as connection:
            save_poll(connection, look)
        due = sync_decision(client, table)
        assert (due["verdict"], due["because"]) == ("run", "001 was never synced")
        job = client.post(f"{table}/jobs", json={"kind": "sync", "params": due["params"]})
        assert job.status_code == 202
        worker = Worker(client)
        order = worker.must_lease()
        worker.report(order, Result(Outcome.SUCCEEDED, details={"last_instant": "001", "changed": True}))
        due = sync_decision(client, table)
        assert (due["verdict"], due["code"]) == ("skip", "nothing-new")
