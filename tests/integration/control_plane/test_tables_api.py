"""Tests /v1/tables over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import Outcome, Result
from service.catalog import table_store
from service.db.engine import writing
from tests.integration.control_plane.protocol_worker import Worker
from tests.support.pages import members

if TYPE_CHECKING:
    import sqlalchemy as sa
    from fastapi.testclient import TestClient

UNKNOWN = {
    "hudi_version": None,
    "stopped": False,
    "retry_conflicts": False,
    "query_pruning_off": False,
    "engines": None,
    "flink": None,
    "kafka_connect_ended": None,
    "detected": {},
}


def test_a_table_is_registered_and_shown(client: TestClient, examine: Any) -> None:
    answer = client.post(
        "/v1/tables",
        json={
            "base_path": "/lake/orders/",
            "index": {"type": "bucket", "num_buckets": 4, "hash_fields": ["id"]},
            "lock": {"provider": "zookeeper", "options": {"hoodie.write.lock.zookeeper.url": "zk"}},
            "writers": {"hudi_version": "1.2.0"},
        },
    )
    assert answer.status_code == 201
    table = answer.json()
    assert table["base_path"] == "/lake/orders"
    assert table["name"] == "orders"
    assert table["index"] == {"type": "bucket", "num_buckets": 4, "hash_fields": ["id"]}
    assert table["lock"]["provider"] == "zookeeper"
    assert table["writers"] == {**UNKNOWN, "hudi_version": "1.2.0"}
    assert table["profile"]["type"] == "MERGE_ON_READ"
    assert answer.headers["location"] == f"/v1/tables/{table['id']}"
    assert client.get(answer.headers["location"]).json() == table
    assert client.get("/v1/tables").json() == {"items": [table], "next_cursor": None}
    # On loopback and without tokens every place is allowed.
    assert examine.asked[0]["allowed_roots"] is None


def test_a_detection_shows_the_findings_of_a_registration_and_stores_nothing(client: TestClient) -> None:
    wanted = {"base_path": "/lake/orders/", "index": {"num_buckets": 4, "hash_fields": ["id"]}}
    found = client.post("/v1/tables/detect", json=wanted)
    assert found.status_code == 200
    assert found.json() == {
        "name": "orders",
        "base_path": "/lake/orders",
        "index": {"type": "bucket", "num_buckets": 4, "hash_fields": ["id"]},
        "profile": {"type": "MERGE_ON_READ", "version": 9},
        "registered_as": None,
    }
    assert client.get("/v1/tables").json()["items"] == []
    made = client.post("/v1/tables", json=wanted).json()
    assert client.post("/v1/tables/detect", json=wanted).json()["registered_as"] == made["id"]
    wrong = {**wanted, "index": {"num_buckets": 8, "hash_fields": ["id"]}}
    refused = client.post("/v1/tables/detect", json=wrong)
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/bucket-index-contradicted")


def test_secrets_are_stored_but_never_shown(client: TestClient) -> None:
    provider = "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider"
    options = {"hoodie.aws.secret.key": "hush", "hoodie.write.lock.dynamodb.table": "locks"}
    lock = {"provider": provider, "options": options}
    answer = client.post("/v1/tables", json={"base_path": "/lake/a", "lock": lock})
    assert answer.json()["lock"]["options"] == {**options, "hoodie.aws.secret.key": "******"}
    table_id = answer.json()["id"]
    shown = client.get(f"/v1/tables/{table_id}")
    more = {**shown.json()["lock"]["options"], "hoodie.write.lock.num_retries": "1"}
    changed = client.patch(f"/v1/tables/{table_id}", json={"lock": {"provider": provider, "options": more}})
    job = client.post(f"/v1/tables/{table_id}/jobs", json={"kind": "audit"})
    for text in (answer.text, shown.text, changed.text, job.text, client.get("/v1/tables").text):
        assert "hush" not in text
    # The worker needs the secrets, and a mask that a caller sends back does not replace a secret.
    plan = client.post("/v1/worker/leases", json={"worker_id": "w"}).json()["plan"]
    assert plan["table"]["lock"]["options"] == {**options, "hoodie.write.lock.num_retries": "1"}


def test_a_table_is_registered_once_whatever_the_spelling(client: TestClient, table_id: str) -> None:
    answer = client.post("/v1/tables", json={"base_path": "/lake/orders/"})
    assert answer.status_code == 409
    assert answer.json()["type"] == "/problems/table-already-registered"
    assert answer.json()["table_id"] == table_id


def test_a_bucket_number_that_the_keys_contradict_is_refused_with_the_counts(client: TestClient, table_id: str) -> None:
    index = {"num_buckets": 8, "hash_fields": ["id"]}
    for answer in (
        client.post("/v1/tables", json={"base_path": "/lake/other", "index": index}),
        client.patch(f"/v1/tables/{table_id}", json={"index": index}),
    ):
        assert answer.status_code == 409
        assert answer.json()["type"] == "/problems/bucket-index-contradicted"
        assert (answer.json()["sampled"], answer.json()["contradicting"]) == (40, 37)
    assert client.get(f"/v1/tables/{table_id}").json()["index"] is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "base_path"),
        ({"base_path": ""}, "base_path"),
        ({"base_path": "/a\0b"}, "base_path"),
        ({"base_path": "/a", "bucket": 4}, "bucket"),
        ({"base_path": "/a", "index": {"type": "bloom", "num_buckets": 1, "hash_fields": ["a"]}}, "index.type"),
        ({"base_path": "/a", "index": {"num_buckets": 0, "hash_fields": ["a"]}}, "index.num_buckets"),
        ({"base_path": "/a", "index": {"num_buckets": 1, "hash_fields": []}}, "index.hash_fields"),
        ({"base_path": "/a", "lock": {"provider": "a lock"}}, "lock.provider"),
        ({"base_path": "/a", "writers": {}}, "writers"),
        ({"base_path": "/a", "writers": {"hudi_version": "1.2.0", "stopped": True}}, "writers"),
        ({"base_path": "/a", "writers": {"hudi_version": "new"}}, "writers.hudi_version"),
        ({"base_path": "/a", "hudi_options": {"a": 1}}, "hudi_options.a"),
        ([], ""),
    ],
)
def test_errors_of_a_request_are_listed_by_field(client: TestClient, body: Any, field: str) -> None:
    answer = client.post("/v1/tables", json=body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == "/problems/params-invalid"
    assert [error["field"] for error in problem["errors"]] == [field]
    assert problem["instance"] == "/v1/tables"
    assert problem["hint"]


def test_half_a_character_is_refused(client: TestClient) -> None:
    body = b'{"base_path": "/lake/\\ud800"}'
    answer = client.post("/v1/tables", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422


def test_a_body_that_is_not_json_is_refused(client: TestClient) -> None:
    answer = client.post("/v1/tables", content=b"{", headers={"content-type": "application/json"})
    assert answer.status_code == 422
    [error] = answer.json()["errors"]
    assert (error["field"], error["message"].partition(":")[0]) == ("", "is not JSON")
    assert answer.json()["detail"].startswith("the body of the request is not JSON: ")
    assert answer.json()["detail"].endswith("at character 2")


def test_only_the_members_that_are_sent_are_changed(client: TestClient, table_id: str, clock: Any) -> None:
    url = f"/v1/tables/{table_id}"
    clock.advance(5)
    assert client.patch(url, json={"name": "sales", "writers": {"stopped": True}}).status_code == 200
    table = client.patch(url, json={"lock": {"provider": "zookeeper"}}).json()
    assert (table["name"], table["writers"]["stopped"], table["lock"]["provider"]) == ("sales", True, "zookeeper")
    assert table["updated_at"] > table["created_at"]
    reset = client.patch(url, json={"lock": None, "writers": None, "hudi_options": None}).json()
    assert reset["lock"] == {"provider": "filesystem", "options": {}, "wait_seconds": None}
    assert reset["writers"] == UNKNOWN
    assert client.patch(url, json={"name": None}).status_code == 422
    assert client.patch(url, json={"base_path": "/other"}).json()["errors"][0]["field"] == "base_path"
    assert client.get(url).json() == reset


def test_the_end_of_a_sink_is_declared_and_jobs_learn_of_it(client: TestClient, table_id: str) -> None:
    url, last = f"/v1/tables/{table_id}", "20260101120000000"

    def change_writers(**writers: Any) -> Any:
        return client.patch(url, json={"writers": writers}).json()["writers"]

    assert change_writers(kafka_connect_ended=last)["kafka_connect_ended"] == last
    assert change_writers(hudi_version="1.2.0")["kafka_connect_ended"] == last
    client.post(f"{url}/jobs", json={"kind": "audit"})
    assert Worker(client).must_lease().table.writers_kafka_connect_ended == last
    withdrawn = change_writers(kafka_connect_ended=None)
    assert (withdrawn["kafka_connect_ended"], withdrawn["hudi_version"]) == (None, "1.2.0")
    assert client.patch(url, json={"writers": {"kafka_connect_ended": "yesterday"}}).status_code == 422


def test_a_new_index_is_verified_before_it_is_taken_over(client: TestClient, table_id: str, examine: Any) -> None:
    examine.asked.clear()
    table = client.patch(f"/v1/tables/{table_id}", json={"index": {"num_buckets": 4, "hash_fields": ["id"]}}).json()
    assert table["index"]["num_buckets"] == 4
    assert [asked["location"] for asked in examine.asked] == ["/lake/orders"]
    client.patch(f"/v1/tables/{table_id}", json={"name": "x"})
    assert len(examine.asked) == 1


def test_a_table_is_examined_again_after_jobs_that_may_change_what_polls_do_not_see(
    client: TestClient, table_id: str, examine: Any, sqlite: sa.Engine
) -> None:
    worker = Worker(client)
    columns = {"columns": [{"name": "id", "type": "string"}]}
    profiles: list[tuple[str, dict[str, Any], bool]] = [
        ("cleaning", columns, False),
        ("cleaning", {}, True),
        ("cleaning", {**columns, "warnings": ["A hashing config dangles."]}, True),
        ("audit", columns, True),
    ]
    for kind, profile, is_examined in profiles:
        with writing(sqlite) as connection:
            table_store.set_profile(connection, table_id, profile)
        examine.asked.clear()
        client.post(f"/v1/tables/{table_id}/jobs", json={"kind": kind})
        assert worker.report(worker.must_lease(), Result(Outcome.SUCCEEDED)).status_code == 200
        assert bool(examine.asked) is is_examined, kind


def test_a_table_with_active_jobs_stays_registered(client: TestClient, table_id: str) -> None:
    job = client.post(f"/v1/tables/{table_id}/jobs", json={"kind": "compaction", "dry_run": True}).json()
    answer = client.delete(f"/v1/tables/{table_id}")
    assert answer.status_code == 409
    assert answer.json()["type"] == "/problems/table-busy"
    assert answer.json()["job_ids"] == [job["id"]]
    client.post(f"/v1/jobs/{job['id']}/cancel")
    gone = client.delete(f"/v1/tables/{table_id}")
    assert (gone.status_code, gone.content) == (204, b"")
    assert client.get(f"/v1/tables/{table_id}").status_code == 404
    assert client.get("/v1/jobs").json()["items"] == []
    client.post("/v1/tables", json={"base_path": "/lake/orders"})


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/jobs")],
)
def test_a_table_that_is_not_registered_is_not_found(client: TestClient, method: str, path: str) -> None:
    body = {"POST": {"kind": "audit"}, "PATCH": {"name": "x"}}.get(method)
    answer = client.request(method, f"/v1/tables/tbl_none{path}", json=body)
    assert answer.status_code == 404
    assert answer.json()["type"] == "/problems/table-not-found"


def test_tables_are_listed_page_by_page(client: TestClient, clock: Any) -> None:
    for number in range(5):
        clock.advance(1)
        client.post("/v1/tables", json={"base_path": f"/lake/{number}"})
    assert members(client, "/v1/tables", "base_path", limit=2) == [f"/lake/{number}" for number in range(5)]


@pytest.mark.parametrize("query", ["limit=0", "limit=501", "limit=x", "cursor=garbage", "cursor=W10", "cursor=%00"])
def test_an_invalid_page_is_refused(client: TestClient, query: str) -> None:
    for path in ("/v1/tables", "/v1/jobs"):
        answer = client.get(f"{path}?{query}")
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["field"] == query.split("=")[0]


def test_readers_are_declared_and_a_job_gets_the_oldest(client: TestClient) -> None:
    body = {"base_path": "/lake/orders", "readers": {"hudi_version": "0.15.0"}}
    table = client.post("/v1/tables", json=body).json()
    assert table["readers"] == {"hudi_version": "0.15.0", "reads_per_day": None}
    path = f"/v1/tables/{table['id']}"
    assert client.patch(path, json={"name": "o"}).json()["readers"]["hudi_version"] == "0.15.0"
    assert client.patch(path, json={"readers": {"hudi_version": "1.0.2"}}).json()["readers"]["hudi_version"] == "1.0.2"
    assert client.patch(path, json={"readers": None}).json()["readers"] == {"hudi_version": None, "reads_per_day": None}
    assert client.patch(path, json={"readers": {"hudi_version": "old"}}).status_code == 422
