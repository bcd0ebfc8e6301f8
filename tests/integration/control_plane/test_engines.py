"""Tests the engines of a table: those that its owner declares, and those that its commits show."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from jobs.contract import WriterEngine
from service.api.app import create_app
from service.lake.engine_sighting import Mark
from tests.integration.control_plane.watching import A, Watched
from tests.support.contexts import changed
from tests.support.small_table import SmallTable, log_file

if TYPE_CHECKING:
    from pathlib import Path

    from service.api.dependencies import AppContext
    from tests.integration.control_plane.conftest import FakeClock

FLINK, SPARK_SQL = WriterEngine.FLINK, WriterEngine.SPARK_SQL
JOB = {"rest_url": "http://flink:8081/", "job": "ingest"}


def test_the_engines_are_seen_in_commits_and_at_the_table(watched: Watched, tmp_path: Path, version: int) -> None:
    table = SmallTable(tmp_path / "t", version=version)
    table_id = watched.register(table)
    table.begin("001")
    table.commit("001", {"p": {log_file(A, "001"): 5}}, modified=1000)
    watched.poll()
    assert watched.watch(table_id).engines == {}
    table.begin("003", flink=True)
    table.commit("003", {"p": {log_file(A, "003"): 5}}, modified=2000)
    table.begin("005")
    table.commit("005", {"p": {log_file(A, "005"): 5}}, operation="UPSERT_PREPPED", modified=3000)
    table.begin("007", flink=True)
    table.commit("007", modified=4000)
    watched.poll()
    seen = watched.watch(table_id).engines
    flink, sql = seen[FLINK], seen[SPARK_SQL]
    assert (flink.first_seen.timestamp(), flink.last_seen.timestamp(), flink.instant) == (2000, 4000, "007")
    assert (sql.first_seen.timestamp(), sql.last_seen.timestamp(), sql.instant) == (3000, 3000, "005")
    aux = table.base / ".hoodie" / ".aux"
    aux.mkdir()
    (aux / "view_storage_conf").touch()
    os.utime(aux / "view_storage_conf", (5000, 5000))
    table.begin("009")
    table.commit("009", modified=4500)
    watched.poll()
    flink = watched.watch(table_id).engines[FLINK]
    assert (flink.last_seen.timestamp(), flink.instant) == (5000, None)
    assert "view_storage_conf" in flink.evidence


def test_the_first_poll_sees_engines_of_commits_before_the_registration(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table.begin("001", flink=True)
    table.commit("001", {"p": {log_file(A, "001"): 5}}, modified=1000)
    table_id = watched.register(table)
    watched.poll()
    assert watched.watch(table_id).engines[FLINK].instant == "001"


def test_a_table_shows_what_was_declared_and_what_was_seen(client: TestClient, examine: Any, clock: FakeClock) -> None:
    examine.marks = (Mark(FLINK, clock(), None, "a Flink job began"),)
    answer = client.post(
        "/v1/tables", json={"base_path": "/lake/a", "writers": {"hudi_version": "1.2.0", "engines": ["spark", "spark"]}}
    )
    assert answer.status_code == 201
    shown = answer.json()["writers"]
    assert (shown["engines"], shown["flink"]) == (["spark"], None)
    assert shown["detected"] == {
        "flink": {
            "first_seen": "2026-01-01T00:00:00Z",
            "last_seen": "2026-01-01T00:00:00Z",
            "instant": None,
            "evidence": "a Flink job began",
        }
    }
    [listed] = client.get("/v1/tables").json()["items"]
    assert listed["writers"] == client.get(answer.headers["location"]).json()["writers"] == shown


def test_a_new_declaration_of_the_engines_replaces_the_ones_seen_before(
    client: TestClient, examine: Any, clock: FakeClock
) -> None:
    examine.marks = (Mark(FLINK, clock(), None, "a Flink job began"),)
    url = client.post("/v1/tables", json={"base_path": "/lake/a"}).headers["location"]
    clock.advance(5)
    assert client.patch(url, json={"writers": {"stopped": True}}).json()["writers"]["detected"]
    assert client.patch(url, json={"writers": None}).json()["writers"]["detected"]
    said = client.patch(url, json={"writers": {"engines": ["spark"]}}).json()["writers"]
    assert (said["engines"], said["detected"]) == (["spark"], {})
    # The engine returns only with a new sign of it.
    assert client.patch(url, json={"writers": None}).json()["writers"]["detected"] == {}


def test_a_patch_of_the_writers_keeps_the_engines_and_the_flink_job_that_it_does_not_name(
    app_context: AppContext,
) -> None:
    with TestClient(create_app(changed(app_context, flink_hosts=("flink",))), base_url="http://127.0.0.1") as client:
        writers = {"hudi_version": "1.2.0", "engines": ["flink"], "flink": JOB}
        url = client.post("/v1/tables", json={"base_path": "/lake/a", "writers": writers}).headers["location"]
        stopped = client.patch(url, json={"writers": {"stopped": True}}).json()["writers"]
        job = {"rest_url": "http://flink:8081", "job": "ingest", "savepoint_folder": None, "restart": "from-savepoint"}
        assert (stopped["stopped"], stopped["engines"], stopped["flink"]) == (True, ["flink"], job)
        kept = client.patch(url, json={"writers": {"engines": ["flink", "spark"]}}).json()["writers"]
        assert (kept["stopped"], kept["engines"], kept["flink"]) == (True, ["flink", "spark"], job)
        gone = client.patch(url, json={"writers": {"flink": None}}).json()["writers"]
        assert (gone["stopped"], gone["flink"]) == (True, None)


@pytest.mark.parametrize(
    ("writers", "field"),
    [
        ({"hudi_version": "1.2.0", "engines": ["hive"]}, "writers.engines[0]"),
        ({"hudi_version": "1.2.0", "engines": []}, "writers.engines"),
        ({"hudi_version": "1.2.0", "engines": ["spark"], "flink": JOB}, "writers"),
        ({"hudi_version": "1.2.0", "flink": {"rest_url": "ftp://flink", "job": "x"}}, "writers.flink.rest_url"),
        ({"hudi_version": "1.2.0", "flink": {"rest_url": "http://me@flink", "job": "x"}}, "writers.flink.rest_url"),
        ({"hudi_version": "1.2.0", "flink": {"rest_url": "http://flink"}}, "writers.flink.job"),
        ({"hudi_version": "1.2.0", "stopped": True, "engines": ["spark"]}, "writers"),
    ],
)
def test_the_errors_of_a_declaration_are_listed_by_field(client: TestClient, writers: Any, field: str) -> None:
    answer = client.post("/v1/tables", json={"base_path": "/lake/a", "writers": writers})
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_no_flink_cluster_is_called_that_the_operator_does_not_name(client: TestClient, table_id: str) -> None:
    writers = {"hudi_version": "1.2.0", "engines": ["flink"], "flink": JOB}
    for answer in (
        client.post("/v1/tables", json={"base_path": "/lake/a", "writers": writers}),
        client.patch(f"/v1/tables/{table_id}", json={"writers": writers}),
    ):
        assert answer.status_code == 422
        assert answer.json()["type"] == "/problems/flink-host-not-allowed"
        assert "GROUNDSKEEPER_FLINK_HOSTS" in answer.json()["hint"]
    assert client.get(f"/v1/tables/{table_id}").json()["writers"]["flink"] is None


def test_a_work_order_has_the_engines_that_were_declared_or_seen(
    client: TestClient, examine: Any, clock: FakeClock
) -> None:
    examine.marks = (Mark(SPARK_SQL, clock(), "001", "an UPDATE"),)
    body = {"base_path": "/lake/a", "writers": {"hudi_version": "1.2.0", "engines": ["spark"]}}
    url = client.post("/v1/tables", json=body).headers["location"]
    client.post(f"{url}/jobs", json={"kind": "audit"})
    plan = client.post("/v1/worker/leases", json={"worker_id": "w"}).json()["plan"]
    assert plan["table"]["writers_engines"] == ["spark", "spark-sql"]


def test_options_for_a_table_that_does_not_exist_yet_are_shown(client: TestClient) -> None:
    query = {"engine": "flink", "base_path": "s3a://lake/clicks", "record_key": "id", "num_buckets": "4"}
    found = client.get("/v1/writer-options", params=query).json()
    assert found["options"]["path"] == "s3a://lake/clicks"
    assert found["options"]["table.type"] == "MERGE_ON_READ"
    assert found["options"]["hoodie.bucket.index.hash.field"] == "id"
    assert found["options"]["hoodie.write.concurrency.mode"] == "single_writer"
    assert found["options"]["hoodie.write.commit.callback.http.url"] == "http://127.0.0.1/v1/callbacks/hudi"
    assert found["sql"]["with"].startswith("WITH (")
    assert client.get("/v1/tables").json()["items"] == []
    sql = client.get("/v1/writer-options", params={**query, "engine": "spark-sql"}).json()
    assert sql["session_conf"]
    assert sql["sql"]["tblproperties"].startswith("TBLPROPERTIES (type = 'mor'")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"engine": "flink"}, "base_path"),
        ({"base_path": "/a"}, "engine"),
        ({"engine": "hive", "base_path": "/a"}, "engine"),
        ({"engine": "spark", "base_path": "/a", "num_buckets": "4"}, "hash_fields"),
        ({"engine": "spark", "base_path": "/a", "num_buckets": "0"}, "num_buckets"),
        ({"engine": "spark", "base_path": "/a", "lock_provider": "a lock"}, "lock_provider"),
    ],
)
def test_a_request_for_options_says_what_is_missing(client: TestClient, query: Any, field: str) -> None:
    answer = client.get("/v1/writer-options", params=query)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]
