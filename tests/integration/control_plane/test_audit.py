"""Tests the audit trail, which says who changed what."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from typer.testing import CliRunner

from jobs.redaction import MASK
from service.access import audit_store
from service.access.refusals import Refusals
from service.access.token import Role
from service.api.authentication import Failures
from service.cli.main import app as command_line
from service.db import schema
from service.db.engine import open_engine, reading, writing
from service.db.page import PageRequest
from service.policies import pause_store
from service.runtime import retention
from tests.support.pages import members

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from fastapi.testclient import TestClient

    from tests.integration.control_plane.conftest import FakeClock

MakeToken = Callable[[Role], dict[str, str]]
MONTH = timedelta(days=30)


def entries(client: TestClient, headers: dict[str, str] | None = None, **query: Any) -> list[dict[str, Any]]:
    answer = client.get("/v1/audit", params=query, headers=headers)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def test_every_change_is_recorded_with_its_object_before_and_after(api: TestClient) -> None:
    table = api.post("/v1/tables", json={"base_path": "/lake/orders"}).json()["id"]
    of_table, hook_options = f"/v1/tables/{table}", {"types": ["job.*"]}
    api.patch(of_table, json={"name": "sales"})
    api.put(f"{of_table}/policy", json={"cleaning": {"retain": 7}})
    api.put("/v1/policies/sal*", json={"precedence": 3})
    api.put("/v1/policies/sal*", json={"precedence": 4})
    api.put("/v1/pause", json={"reason": "a move"})
    api.delete("/v1/pause")
    hook = api.post("/v1/webhooks", json={"url": "http://localhost:9/path-secret", "description": "chat"}).json()["id"]
    api.patch(f"/v1/webhooks/{hook}", json=hook_options)
    api.put(f"{of_table}/consumers/etl", json={"instant": "20260101120000000"})
    job = api.post(f"{of_table}/jobs", json={"kind": "audit"}).json()["id"]
    api.post(f"/v1/jobs/{job}/cancel")
    api.delete(f"{of_table}/consumers/etl")
    assert api.delete(of_table).status_code == 204

    found = entries(api)
    assert [(each["operation"], each["object_type"], each["object_id"], each["status"]) for each in found[::-1]] == [
        ("registerTable", "table", table, 201),
        ("changeTable", "table", table, 200),
        ("putTablePolicy", "table-policy", table, 200),
        ("putPolicy", "policy", "sal*", 201),
        ("putPolicy", "policy", "sal*", 200),
        ("pause", "pause", "all", 200),
        ("resume", "pause", "all", 204),
        ("createWebhook", "webhook", hook, 201),
        ("changeWebhook", "webhook", hook, 200),
        ("putConsumer", "consumer", f"{table}/etl", 201),
        ("submitJob", "job", job, 202),
        ("cancelJob", "job", job, 202),
        ("deleteConsumer", "consumer", f"{table}/etl", 204),
        ("unregisterTable", "table", table, 204),
    ]
    by_operation = {each["operation"]: each for each in found}

    def before_and_after(operation: str, member: str) -> tuple[Any, Any]:
        both = (by_operation[operation]["before"], by_operation[operation]["after"])
        return both[0] and both[0][member], both[1] and both[1][member]

    assert before_and_after("registerTable", "base_path") == (None, "/lake/orders")
    assert before_and_after("changeTable", "name") == ("orders", "sales")
    assert before_and_after("putTablePolicy", "cleaning") == (None, {"retain": 7})
    assert before_and_after("pause", "reason") == ("", "a move")
    assert before_and_after("resume", "paused") == (True, False)
    assert before_and_after("changeWebhook", "types") == (["*"], ["job.*"])
    assert before_and_after("putConsumer", "instant") == (None, "20260101120000000")
    assert before_and_after("cancelJob", "state") == ("queued", "cancelled")
    assert before_and_after("unregisterTable", "name") == ("sales", None)
    assert {each["object_name"] for each in found if each["object_type"] == "table"} == {"orders", "sales"}
    assert {(each["who"], each["role"], each["token_id"], each["outcome"]) for each in found} == {
        ("anybody", "admin", None, "done")
    }
    assert "path-secret" not in str(found)


def test_an_entry_names_the_token_and_is_shown_to_admins_only(client: TestClient, make_token: MakeToken) -> None:
    operator, admin = make_token(Role.OPERATOR), make_token(Role.ADMIN)
    assert client.put("/v1/pause", json={}, headers=operator).status_code == 200
    [entry] = entries(client, admin)
    token_id = operator["Authorization"].split("_")[1]
    assert (entry["who"], entry["token_id"], entry["role"]) == ("a operator", token_id, "operator")
    assert entry["address"] == "testclient"
    for role in (Role.READER, Role.OPERATOR, Role.WORKER):
        assert client.get("/v1/audit", headers=make_token(role)).status_code == 403


def test_secrets_are_masked(client: TestClient, table_id: str) -> None:
    provider = "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider"
    lock = {"provider": provider, "options": {"hoodie.aws.secret.key": "hush-hush-1"}}
    assert client.patch(f"/v1/tables/{table_id}", json={"lock": lock}).status_code == 200
    [changed] = entries(client, operation="changeTable")
    assert changed["after"]["lock"]["options"] == {"hoodie.aws.secret.key": MASK}
    hook = {"url": "https://hooks.example/T0/hush-hush-2", "headers": {"X-Auth-Token": "hush-hush-3"}}
    created = client.post("/v1/webhooks", json=hook).json()
    client.post(f"/v1/webhooks/{created['id']}/rotate-secret")
    with reading(client.app.state.context.database.engine) as connection:  # type: ignore[attr-defined]
        stored = str(connection.execute(sa.select(schema.audit_entries)).all())
    assert "hush-hush" not in stored
    assert created["secret"] not in stored
    [made] = entries(client, operation="createWebhook")
    assert (made["after"]["url"], made["after"]["headers"]) == (
        f"https://hooks.example/{MASK}",
        {"X-Auth-Token": MASK},
    )


def test_a_change_that_cannot_be_recorded_is_not_made(client: TestClient, sqlite: sa.Engine) -> None:
    with writing(sqlite) as connection:
        connection.exec_driver_sql("ALTER TABLE audit_entries RENAME TO gone")
    assert client.put("/v1/pause", json={}).status_code >= 500
    with reading(sqlite) as connection:
        assert pause_store.pause_of(connection) is None


def test_a_refused_call_is_recorded_with_its_problem_and_no_change(client: TestClient) -> None:
    table = client.post("/v1/tables", json={"base_path": "/lake/orders"}).json()["id"]
    assert client.post("/v1/tables", json={"base_path": "/lake/orders"}).status_code == 409
    assert client.put(f"/v1/tables/{table}/policy", json={"nonsense": 1}).status_code == 422
    assert client.delete("/v1/policies/none").status_code == 404
    client.post(f"/v1/tables/{table}/jobs", json={"kind": "compaction"})
    assert client.delete(f"/v1/tables/{table}").status_code == 409
    refused = entries(client, outcome="refused")[::-1]
    assert [(each["operation"], each["status"], each["problem"]) for each in refused] == [
        ("registerTable", 409, "table-already-registered"),
        ("putTablePolicy", 422, "params-invalid"),
        ("deletePolicy", 404, "policy-not-found"),
        ("unregisterTable", 409, "table-busy"),
    ]
    assert all(each["before"] is each["after"] is None for each in refused)
    assert refused[-1]["object_id"] == table
    assert len(entries(client, outcome="done")) == 2
    assert not entries(client, outcome="failed")


def test_reads_and_calls_of_workers_and_writers_are_not_recorded(client: TestClient, table_id: str) -> None:
    before = entries(client)
    client.get("/v1/tables")
    client.post(f"/v1/tables/{table_id}/evaluate")
    client.post("/v1/worker/leases", json={"worker_id": "w"})
    client.post("/v1/callbacks/hudi", json={"basePath": "/lake/orders", "commitTime": "1", "tableName": "orders"})
    assert entries(client) == before


def test_a_flood_of_refused_calls_leaves_few_entries(
    client: TestClient, make_token: MakeToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Failures, "MOST_SECONDS", 0.0)
    admin, reader = make_token(Role.ADMIN), make_token(Role.READER)
    for headers in ({"Authorization": "Bearer gk_none_such"}, reader):
        statuses = {client.put("/v1/pause", json={}, headers=headers).status_code for _ in range(60)}
        assert statuses < {401, 403}
    assert client.put("/v1/pause", json={}, headers=admin).status_code == 200
    found = entries(client, admin, outcome="refused")
    assert len(found) == 2 * Refusals.OF_CALLER
    assert sorted({(each["who"], each["problem"]) for each in found}) == [
        ("a reader", "forbidden"),
        ("nobody", "unauthenticated"),
    ]
    assert sorted(each["repeats"] for each in found if each["repeats"]) == [32, 32]
    assert len(entries(client, admin, outcome="done")) == 1


def test_each_change_begins_where_the_one_before_it_ended(api: TestClient) -> None:
    def put(precedence: int) -> int:
        return api.put("/v1/policies/a*", json={"precedence": precedence}).status_code

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(put, range(1, 13))) == {200, 201}
    in_order = sorted(entries(api), key=lambda each: each["id"])
    assert in_order[0]["before"] is None
    for earlier, later in itertools.pairwise(in_order):
        assert later["before"]["precedence"] == earlier["after"]["precedence"]


def test_the_audit_trail_is_paged_and_filtered(client: TestClient, clock: FakeClock) -> None:
    for number in range(5):
        clock.advance(number % 2)
        client.put(f"/v1/policies/p{number}", json={})
    assert members(client, "/v1/audit", "object_id", limit=2) == ["p4", "p3", "p2", "p1", "p0"]
    assert [each["object_id"] for each in entries(client, object_id="p3")] == ["p3"]
    assert not entries(client, operation="pause")
    assert not entries(client, token_id="none")
    assert len(entries(client, object_type="policy", who="anybody")) == 5
    last = clock().isoformat()
    assert [each["object_id"] for each in entries(client, since=last)] == ["p4", "p3"]
    assert len(entries(client, until=last)) == 3
    assert client.get("/v1/audit", params={"cursor": "x"}).status_code == 422


def test_tokens_of_the_command_line_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    database = f"sqlite:///{tmp_path}/gk.db"

    def run(*words: str) -> str:
        ran = CliRunner().invoke(command_line, ["token", *words, "--database", database], catch_exceptions=False)
        assert ran.exit_code == 0, ran.output
        return ran.stdout

    secret = run("create", "--role", "operator", "--name", "airflow").strip()
    token_id = secret.split("_")[1]
    run("revoke", token_id)
    run("revoke", token_id)
    engine = open_engine(database)
    with reading(engine) as connection:
        revoked, created = audit_store.page(connection, PageRequest(9)).items
    engine.dispose()
    assert {(each.who, each.object_id, each.object_name) for each in (revoked, created)} == {
        ("ada on the command line", token_id, "airflow")
    }
    assert (created.operation, created.before, created.after["role"]) == ("createToken", None, "operator")
    assert (revoked.operation, revoked.before["revoked_at"]) == ("revokeToken", None)
    assert revoked.after["revoked_at"]
    assert secret.split("_")[2] not in str((created, revoked))


def test_old_entries_and_all_but_the_newest_refused_calls_are_deleted(
    client: TestClient, sqlite: sa.Engine, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "_MOST_REFUSED_CALLS", 2)
    client.put("/v1/pause", json={})
    clock.advance(3600)
    for name in "abcd":
        client.delete(f"/v1/policies/{name}")
    keep = retention.Keep(MONTH, MONTH, MONTH, audit=timedelta(hours=2))
    assert retention.run_once(sqlite, clock, keep)["audit_entries"] == 2
    assert [each["object_id"] for each in entries(client)] == ["d", "c", "all"]
    clock.advance(4000)
    assert retention.run_once(sqlite, clock, keep)["audit_entries"] == 1
