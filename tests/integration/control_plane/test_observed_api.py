"""Tests the commit callbacks, and the calls that return observations."""

from __future__ import annotations

import time
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from service.access.token import Role
from service.api.app import create_app
from service.observation.files_digest import FilesDigest
from service.observation.observer import Observer, ObserverConfig
from service.observation.table_read import TableReader
from tests.support.contexts import changed
from tests.support.small_table import SmallTable, base_file, bucket_id, log_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from service.api.dependencies import AppContext
    from tests.integration.control_plane.conftest import FakeClock

A, B = bucket_id(0), bucket_id(1)
INDEX = {"type": "bucket", "num_buckets": 4, "hash_fields": ["id"]}


@pytest.fixture
def observer(app_context: AppContext, clock: FakeClock) -> Observer:
    engine = app_context.database.engine
    read = TableReader(engine, {}, 100 * 1024 * 1024)
    requests, notifier = app_context.lake.poll_requests, app_context.database.notifier
    return Observer(
        engine,
        clock,
        Random(1),
        requests,
        ObserverConfig(),
        read=read,
        first=read.first,
        quiet=read.quiet,
        files_digest=FilesDigest({}),
        notifier=notifier,
    )


@pytest.fixture
def table(tmp_path: Path) -> SmallTable:
    return SmallTable(tmp_path / "orders")


@pytest.fixture
def table_id(client: TestClient, table: SmallTable) -> str:
    answer = client.post("/v1/tables", json={"base_path": str(table.base), "index": INDEX})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def poll(observer: Observer, clock: FakeClock) -> None:
    clock.advance(70)
    observer.run_once()
    assert observer.pool.wait(60)


def callback(base_path: str, **more: Any) -> dict[str, Any]:
    return {"commitTime": "20260101120000000", "tableName": "orders", "basePath": base_path, **more}


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({}, id="0.6"),
        pytest.param({"partitionPath": "p"}, id="forks of 0.7"),
        pytest.param({"hoodieWriteStat": [{"fileId": "x", "numWrites": 3}]}, id="0.10"),
        pytest.param({"hoodieWriteStat": [], "commitActionType": "commit", "extraMetadata": {"a": "b"}}, id="0.13"),
        pytest.param(
            {"commitActionType": {"empty": False, "present": True}, "extraMetadata": {"empty": True}}, id="1.2"
        ),
        pytest.param({"somethingNew": [[1]]}, id="later"),
    ],
)
def test_hudis_own_callback_is_accepted_in_every_form(
    client: TestClient, app_context: AppContext, table: SmallTable, table_id: str, more: dict[str, Any]
) -> None:
    app_context.lake.poll_requests.taken(table_id)
    answer = client.post("/v1/callbacks/hudi", json=callback(str(table.base), **more))
    assert (answer.status_code, answer.json()) == (202, {"table_id": table_id, "is_new": True})
    assert app_context.lake.poll_requests.notified.is_set()
    assert app_context.lake.poll_requests.wanted() == {table_id}


@pytest.mark.parametrize("spelling", ["{}", "{}/", "file:{}", "file://{}", "file:///localhost/../{}", "{}/../orders"])
def test_the_base_path_may_be_spelt_in_any_way(
    client: TestClient, table: SmallTable, table_id: str, spelling: str
) -> None:
    answer = client.post("/v1/callbacks/hudi", json=callback(spelling.format(table.base)))
    assert answer.json()["table_id"] == table_id


def test_s3_and_s3a_are_one_place(client: TestClient) -> None:
    table_id = client.post("/v1/tables", json={"base_path": "s3a://lake/orders"}).json()["id"]
    for spelling in ("s3://lake/orders", "s3a://lake/orders/", "s3a://lake//x/../orders"):
        assert client.post("/v1/callbacks/hudi", json=callback(spelling)).json()["table_id"] == table_id


@pytest.mark.parametrize("base_path", ["/lake/unknown", "hdfs://nn/orders", "s3://", "relative"])
def test_an_unknown_table_is_told_with_what_to_do(client: TestClient, table_id: str, base_path: str) -> None:
    answer = client.post("/v1/callbacks/hudi", json=callback(base_path))
    assert answer.status_code == 404
    assert answer.json()["type"] == "/problems/callback-unknown-table"
    assert "POST /v1/tables" in answer.json()["hint"]


@pytest.mark.parametrize("body", [{}, {"commitTime": "1"}, {"basePath": "/x"}, {"commitTime": 5, "basePath": "/x"}, []])
def test_an_invalid_callback_is_refused(client: TestClient, body: Any) -> None:
    assert client.post("/v1/callbacks/hudi", json=body).status_code == 422


def test_a_repeated_callback_changes_nothing(
    client: TestClient, observer: Observer, clock: FakeClock, table: SmallTable, table_id: str
) -> None:
    poll(observer, clock)
    table.commit("20260101120000000")
    said = [client.post("/v1/callbacks/hudi", json=callback(str(table.base))).json()["is_new"] for _ in range(3)]
    observer.run_once()
    assert observer.pool.wait(60)
    said.append(client.post("/v1/callbacks/hudi", json=callback(str(table.base))).json()["is_new"])
    assert said == [True, False, False, False]
    assert len(client.get("/v1/commits").json()["items"]) == 1


def test_a_callback_key_is_asked_for_when_there_is_one(
    app_context: AppContext,
    table: SmallTable,
    client: TestClient,
    table_id: str,
    make_token: Callable[[Role], dict[str, str]],
) -> None:
    admin = make_token(Role.ADMIN)
    with TestClient(create_app(changed(app_context, callback_key="geheim")), base_url="http://127.0.0.1") as keyed:
        for headers in ({}, {"HUDI-CALLBACK-KEY": "wrong"}, {"HUDI-CALLBACK-KEY": "gehéim".encode()}, admin):
            answer = keyed.post("/v1/callbacks/hudi", json=callback(str(table.base)), headers=headers)
            assert answer.status_code == 401
            assert "api.key" in answer.json()["hint"]
        right = {"HUDI-CALLBACK-KEY": "geheim"}
        assert keyed.post("/v1/callbacks/hudi", json=callback(str(table.base)), headers=right).status_code == 202


def test_without_a_key_a_callback_needs_a_token_once_there_are_tokens(
    client: TestClient, table: SmallTable, table_id: str, make_token: Callable[[Role], dict[str, str]]
) -> None:
    reader = make_token(Role.READER)
    assert client.post("/v1/callbacks/hudi", json=callback(str(table.base))).status_code == 401
    assert client.post("/v1/callbacks/hudi", json=callback(str(table.base)), headers=reader).status_code == 202
    options = client.get(f"/v1/tables/{table_id}/writer-options", headers=reader).json()["options"]
    assert options["hoodie.write.commit.callback.http.custom.headers"].startswith("Authorization:Bearer ")


def test_a_callback_is_answered_within_milliseconds_during_a_poll(
    client: TestClient, table: SmallTable, table_id: str
) -> None:
    body = callback(str(table.base), hoodieWriteStat=[{"fileId": str(n), "path": "p/x" * 20} for n in range(1000)])
    took = []
    for _ in range(50):
        began = time.perf_counter()
        assert client.post("/v1/callbacks/hudi", json=body).status_code == 202
        took.append(time.perf_counter() - began)
    assert sorted(took)[5] < 0.05


def test_commits_are_listed_the_last_one_first_page_by_page(
    client: TestClient, observer: Observer, clock: FakeClock, table: SmallTable, table_id: str
) -> None:
    for number in range(5):
        table.commit(f"2026010112000{number}000", {"p": {base_file(A, f"2026010112000{number}000"): 10}})
    table.clean("20260101130000000", ("p",))
    poll(observer, clock)
    first = client.get("/v1/commits", params={"limit": 4}).json()
    second = client.get("/v1/commits", params={"limit": 4, "cursor": first["next_cursor"]}).json()
    times = [item["requested_time"] for item in first["items"] + second["items"]]
    assert times == ["20260101130000000", *(f"2026010112000{number}000" for number in range(4, -1, -1))]
    assert second["next_cursor"] is None
    item = second["items"][0]
    assert (item["table_id"], item["operation"], item["bytes_written"]) == (table_id, "UPSERT", 10)
    assert item["partitions"] == ["p"]
    clean = client.get("/v1/commits", params={"action": "clean"}).json()["items"]
    assert [each["action"] for each in clean] == ["clean"]
    since = client.get("/v1/commits", params={"since": "2026-01-01T12:00:03Z"}).json()["items"]
    assert len(since) == 3
    assert client.get("/v1/commits", params={"table_id": "tbl_x"}).json()["items"] == []


@pytest.mark.parametrize("params", [{"cursor": "eA"}, {"since": "2026-01-01"}, {"limit": 0}, {"action": "x; y"}])
def test_invalid_parameters_of_a_list_are_refused(client: TestClient, params: dict[str, Any]) -> None:
    assert client.get("/v1/commits", params=params).status_code == 422


def test_a_cursor_of_another_list_is_refused(client: TestClient) -> None:
    for path in ("/a", "/b"):
        client.post("/v1/tables", json={"base_path": path})
    other = client.get("/v1/tables", params={"limit": 1}).json()["next_cursor"]
    assert client.get("/v1/commits", params={"cursor": other}).status_code == 422


def test_the_timeline_shows_what_is_pending_and_for_how_long(
    client: TestClient, clock: FakeClock, table: SmallTable, table_id: str
) -> None:
    table.commit("20251231230000000", completed="20251231230005000")
    table.begin("20251231235900000", heartbeat=clock().timestamp() - 20)
    table.schedule("20251231235930000", "compaction")
    found = client.get(f"/v1/tables/{table_id}/timeline").json()
    assert found["completed"] == [
        {"requested_time": "20251231230000000", "action": "deltacommit", "completion_time": "20251231230005000"}
    ]
    write, plan = found["pending"]
    assert (write["state"], write["age_seconds"], write["heartbeat_age_seconds"]) == ("inflight", 60, 20)
    assert (plan["action"], plan["is_plan"], plan["age_seconds"], plan["heartbeat_at"]) == (
        "compaction",
        True,
        30,
        None,
    )


def test_a_timeline_that_cannot_be_read_is_a_problem_and_no_crash(client: TestClient) -> None:
    table_id = client.post("/v1/tables", json={"base_path": "/no/such/place"}).json()["id"]
    assert client.get(f"/v1/tables/{table_id}/timeline").json()["type"] == "/problems/path-not-found"
    assert client.get("/v1/tables/tbl_x/timeline").status_code == 404


def test_there_is_no_snapshot_before_the_first_poll(
    client: TestClient, observer: Observer, clock: FakeClock, table_id: str
) -> None:
    for what in ("snapshot", "buckets"):
        answer = client.get(f"/v1/tables/{table_id}/{what}")
        assert (answer.status_code, answer.json()["type"]) == (404, "/problems/snapshot-not-taken")
    gone = client.post("/v1/tables", json={"base_path": "/no/such/place"}).json()["id"]
    poll(observer, clock)
    assert "does not exist" in client.get(f"/v1/tables/{gone}/snapshot").json()["detail"]
    assert client.get(f"/v1/tables/{table_id}/snapshot").json()["total"]["file_groups"] == 0


def test_snapshot_and_buckets_of_a_table_are_shown(
    client: TestClient, observer: Observer, clock: FakeClock, table: SmallTable, table_id: str
) -> None:
    table.commit("001", {"p=1": {base_file(A, "001"): 300, base_file(B, "001"): 100}, "p=2": {base_file(A, "001"): 40}})
    table.commit("003", {"p=1": {log_file(A, "003"): 44}})
    poll(observer, clock)
    found = client.get(f"/v1/tables/{table_id}/snapshot", params={"partitions": 1}).json()
    assert (found["num_partitions"], [p["path"] for p in found["partitions"]]) == (2, ["p=1"])
    assert (found["total"]["base_bytes"], found["total"]["log_bytes"], found["total"]["rows"]) == (440, 44, 30)
    assert found["log_ratio"] == 0.1
    first = client.get("/v1/commits").json()["items"][-1]["completed_at"]
    assert found["since_compaction"] == {"commits": 2, "bytes_written": 484, "at": None, "oldest_at": first}
    assert found["watch"]["failures"] == 0
    of_buckets = client.get(f"/v1/tables/{table_id}/buckets").json()
    one, two = of_buckets["partitions"]
    assert one["buckets"] == [{"bucket": 0, "bytes": 344, "rows": 10}, {"bucket": 1, "bytes": 100, "rows": 10}]
    assert (one["num_buckets"], one["skew"], two["skew"]) == (4, round(344 * 4 / 444, 3), 4.0)


def test_a_changed_index_shows_at_the_next_poll(
    client: TestClient, observer: Observer, clock: FakeClock, table: SmallTable, table_id: str
) -> None:
    table.commit("001", {"p": {base_file(A, "001"): 300}})
    poll(observer, clock)
    assert client.get(f"/v1/tables/{table_id}/buckets").json()["num_buckets"] == 4
    assert client.patch(f"/v1/tables/{table_id}", json={"index": None}).status_code == 200
    observer.run_once()
    assert observer.pool.wait(60)
    assert client.get(f"/v1/tables/{table_id}/buckets").json()["partitions"] == []
    assert len(client.get("/v1/commits").json()["items"]) == 1


def test_writer_options_of_spark_are_shown(client: TestClient, app_context: AppContext, table_id: str) -> None:
    lock = {"provider": "zookeeper", "options": {"hoodie.write.lock.zookeeper.url": "zk:1"}}
    client.patch(f"/v1/tables/{table_id}", json={"lock": lock})
    found = client.get(f"/v1/tables/{table_id}/writer-options").json()
    options = found["options"]
    assert found["engine"] == "spark"
    assert options["hoodie.write.concurrency.mode"] == "optimistic_concurrency_control"
    assert options["hoodie.clean.failed.writes.policy"] == "LAZY"
    assert options["hoodie.write.lock.provider"].endswith("ZookeeperBasedLockProvider")
    assert options["hoodie.write.lock.zookeeper.url"] == "zk:1"
    assert options["hoodie.write.commit.callback.on"] == "true"
    assert options["hoodie.write.commit.callback.http.url"] == "http://127.0.0.1/v1/callbacks/hudi"
    assert "hoodie.write.commit.callback.http.api.key" not in options
    assert (options["hoodie.index.type"], options["hoodie.bucket.index.num.buckets"]) == ("BUCKET", "4")
    assert all(value == "false" for name, value in options.items() if name.endswith((".inline", ".automatic")))


def test_writer_options_of_flink_are_in_flinks_words(client: TestClient, table_id: str) -> None:
    options = client.get(f"/v1/tables/{table_id}/writer-options", params={"engine": "flink"}).json()["options"]
    assert options["index.type"] == "BUCKET"
    for service in ("compaction.schedule", "compaction.async", "clean.async", "clustering.schedule"):
        assert options[f"{service}.enabled"] == "false"
    answer = client.get(f"/v1/tables/{table_id}/writer-options", params={"engine": "hive"})
    assert answer.status_code == 422


def test_writer_options_name_the_public_address_and_ask_for_the_key(
    app_context: AppContext, client: TestClient, table_id: str
) -> None:
    elsewhere = changed(app_context, public_url="https://gk.example.com/hudi/", callback_key="geheim")
    with TestClient(create_app(elsewhere), base_url="http://127.0.0.1") as other:
        text = other.get(f"/v1/tables/{table_id}/writer-options").text
    assert "https://gk.example.com/hudi/v1/callbacks/hudi" in text
    assert "GROUNDSKEEPER_CALLBACK_KEY" in text
    assert "geheim" not in text


def test_a_table_without_a_bucket_index_gets_no_index_options(client: TestClient, tmp_path: Path) -> None:
    table_id = client.post("/v1/tables", json={"base_path": str(tmp_path / "plain")}).json()["id"]
    options = client.get(f"/v1/tables/{table_id}/writer-options").json()["options"]
    assert not [name for name in options if "index" in name]
    assert options["hoodie.clustering.rollback.pending.replacecommit.on.conflict"] == "false"
