"""Tests options of a registration that would make a job leave its table, run a class, or delete another file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from jobs.contract import JobKind, Outcome, Table, TableLock, WorkOrder
from jobs.storage.permissions import Permissions
from jobs.worker import attempt as attempts
from service.api.app import create_app
from service.db import schema
from service.db.engine import writing
from tests.support.contexts import changed

if TYPE_CHECKING:
    from service.api.dependencies import AppContext

BASE = "/lake/orders"
FOLDER = "hoodie.write.lock.filesystem.path"
HOSTILE: list[dict[str, Any]] = [
    {"hudi_options": {"hoodie.base.path": "/etc"}},
    {"hudi_options": {"hoodie.metrics.reporter.class": "com.example.Evil"}},
    {"hudi_options": {"hoodie.compaction.payload.class": "com.example.Evil"}},
    {"hudi_options": {"hoodie.upsert.shuffle.parallelism": "2000000000"}},
    {"hudi_options": {"hoodie.payload.ordering.field": "ts\u0007"}},
    {"lock": {"provider": "com.example.Evil"}},
    {"lock": {"provider": "filesystem", "options": {FOLDER: "/etc"}}},
    {"lock": {"provider": "filesystem", "options": {FOLDER: f"{BASE}/../other"}}},
    {"lock": {"provider": "zookeeper", "options": {"hoodie.base.path": "/etc"}}},
]


def field_of(member: dict[str, Any]) -> str:
    options = member.get("hudi_options") or member["lock"].get("options")
    if options is None:
        return "lock.provider"
    return f"{'hudi_options' if 'hudi_options' in member else 'lock.options'}.{next(iter(options))}"


@pytest.mark.parametrize("member", HOSTILE, ids=field_of)
def test_dangerous_options_are_refused_by_name_at_registration_and_in_a_change(
    client: TestClient, member: dict[str, Any]
) -> None:
    table = client.post("/v1/tables", json={"base_path": BASE})
    for answer in (
        client.post("/v1/tables", json={"base_path": f"{BASE}2", **member}),
        client.patch(f"/v1/tables/{table.json()['id']}", json=member),
    ):
        problem = answer.json()
        assert (answer.status_code, problem["type"]) == (422, "/problems/option-not-allowed")
        [error] = problem["errors"]
        assert error["field"] == field_of(member)
        assert error["field"] in problem["detail"]
        assert error["message"] in problem["detail"]
        assert problem["hint"]
    assert client.get("/v1/tables").json()["items"] == [table.json()]


def test_the_administrator_allows_classes_and_roots_of_locks(app_context: AppContext) -> None:
    permissions = Permissions(lock_roots=("/locks",), classes=("com.example.Lock", "com.example.Payload"))
    with TestClient(create_app(changed(app_context, permissions=permissions)), base_url="http://127.0.0.1") as client:
        for number, member in enumerate(
            [
                {"hudi_options": {"hoodie.compaction.payload.class": "com.example.Payload"}},
                {"lock": {"provider": "com.example.Lock", "options": {"hoodie.write.lock.mine": "x"}}},
                {"lock": {"options": {FOLDER: "/locks/orders"}}},
            ]
        ):
            answer = client.post("/v1/tables", json={"base_path": f"{BASE}{number}", **member})
            assert answer.status_code == 201, answer.text


def stored_earlier(app_context: AppContext, table_id: str) -> None:
    """Stores a registration that an earlier version of the service accepted."""
    bad = {"hudi_options": {"hoodie.base.path": "/etc"}, "lock": {"provider": "com.example.Evil", "options": {}}}
    with writing(app_context.database.engine) as connection:
        connection.execute(sa.update(schema.tables).where(schema.tables.c.id == table_id).values(**bad))


def test_a_table_with_dangerous_options_from_before_gets_no_jobs_until_they_are_removed(
    client: TestClient, app_context: AppContext
) -> None:
    table_id = client.post("/v1/tables", json={"base_path": BASE}).json()["id"]
    url = f"/v1/tables/{table_id}"
    queued = client.post(f"{url}/jobs", json={"kind": "audit"}).json()["id"]
    stored_earlier(app_context, table_id)
    assert client.get(url).status_code == 200
    refused = client.post(f"{url}/jobs", json={"kind": "compaction"})
    assert (refused.status_code, refused.json()["type"]) == (422, "/problems/option-not-allowed")
    # The queued job fails when a worker leases it, and no worker gets the options.
    assert client.post("/v1/worker/leases", json={"worker_id": "w"}).status_code == 204
    job = client.get(f"/v1/jobs/{queued}").json()
    assert (job["state"], job["error"]["type"]) == ("failed", "/problems/option-not-allowed")
    assert "hudi_options.hoodie.base.path" in job["error"]["detail"]
    # Each member is tested alone and together with others.
    for change in ({"name": "sales"}, {"hudi_options": None}, {"lock": {"provider": "zookeeper"}}):
        assert client.patch(url, json=change).status_code == 200
    assert client.post(f"{url}/jobs", json={"kind": "compaction"}).status_code == 202
    assert client.post("/v1/worker/leases", json={"worker_id": "w"}).status_code == 200


def test_a_job_of_a_table_outside_the_present_roots_is_not_leased(client: TestClient, app_context: AppContext) -> None:
    table_id = client.post("/v1/tables", json={"base_path": BASE}).json()["id"]
    queued = client.post(f"/v1/tables/{table_id}/jobs", json={"kind": "audit"}).json()["id"]
    narrowed = changed(app_context, permissions=Permissions(("/other",)))
    with TestClient(create_app(narrowed), base_url="http://127.0.0.1") as client:
        assert client.post("/v1/worker/leases", json={"worker_id": "w"}).status_code == 204
        assert client.get(f"/v1/jobs/{queued}").json()["error"]["type"] == "/problems/path-not-allowed"
        again = client.post(f"/v1/tables/{table_id}/jobs", json={"kind": "audit"})
        assert (again.status_code, again.json()["type"]) == (403, "/problems/path-not-allowed")


class NoSpark:
    """A session that must not be used, except for the description of the job."""

    class sparkContext:  # noqa: N801 - pyspark's name
        @staticmethod
        def setLocalProperty(*_: object) -> None: ...  # noqa: N802
        @staticmethod
        def setJobGroup(*_: object) -> None: ...  # noqa: N802

        class _jvm:  # noqa: N801
            class org:  # noqa: N801
                class apache:  # noqa: N801
                    class logging:  # noqa: N801
                        class log4j:  # noqa: N801
                            class ThreadContext:
                                """Names the attempt in the lines of the JVM's log."""

                                @staticmethod
                                def put(*_: object) -> None: ...
                                @staticmethod
                                def remove(*_: object) -> None: ...


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (Table(BASE, "t", hudi_options={"hoodie.base.path": "/etc"}), "option-not-allowed"),
        (Table(BASE, "t", lock=TableLock("com.example.Evil")), "option-not-allowed"),
        (Table(BASE, "t", lock=TableLock("filesystem", {FOLDER: "/etc"})), "option-not-allowed"),
        (Table("/etc", "t"), "path-not-allowed"),
        (Table("/lake/../etc", "t"), "path-not-allowed"),
        (Table("hdfs://nn/lake", "t"), "path-not-allowed"),
    ],
)
def test_a_worker_refuses_a_work_order_with_dangerous_options(table: Table, problem: str) -> None:
    spark: Any = NoSpark()
    order = WorkOrder("job_1", 1, JobKind.AUDIT, table)

    def beat(_: object) -> attempts.HeartbeatAnswer:
        return attempts.HeartbeatAnswer.CONTINUE

    result = attempts.Attempt(spark, order, 30.0, beat, permissions=Permissions(("/lake",))).run()
    assert result.outcome is Outcome.FAILED
    assert result.error is not None
    assert (result.error.type, result.error.retriable) == (problem, False)
    assert next(each["type"] for each in result.details["refusals"]) == problem
