"""The service learns about workers from their ordinary calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError

from jobs.contract import Problem, WorkerInfo
from service.access.token import Role
from service.api.app import create_app
from service.runtime.settings import Settings
from tests.support.contexts import changed

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime


INFO = {
    "version": "0.1.0",
    "master": "spark://host:7077",
    "slots": 2,
    "spare_slots": 1,
    "driver_memory": "2g",
    "group": "large",
    "state": "ready",
    "executors": 4,
    "spark_conf": {"spark.executor.memory": "4g"},
    "error": None,
    "application_id": "app-20260101120000-0001",
    "ui_url": "http://10.0.0.7:4040",
    "read_rates": {"scan_seconds_per_gib": 2.8, "merge_seconds_per_gib": 104.0},
}
ERROR = Problem("memory-short", "Too little memory", "Could not reserve \0 enough space", "Set it lower.").to_json()


class Clock(Protocol):
    def __call__(self) -> datetime: ...
    def advance(self, seconds: float) -> None: ...


def test_a_worker_is_listed_from_its_first_call_with_what_it_says(client: TestClient, clock: Clock) -> None:
    assert client.get("/v1/workers").json() == {"items": []}
    client.post("/v1/worker/leases", json={"worker_id": "w1", "worker": {**INFO, "colour": "green"}})
    [worker] = client.get("/v1/workers").json()["items"]
    moment = "2026-01-01T00:00:00Z"
    assert worker == {"id": "w1", **INFO, "first_seen": moment, "last_seen": moment, "job_ids": []}
    assert WorkerInfo.from_json(worker).to_json() == INFO


def test_an_attempt_links_to_the_spark_application_that_ran_it(client: TestClient, table_id: str) -> None:
    job = client.post(f"/v1/tables/{table_id}/jobs", json={"kind": "audit"}).json()["id"]
    worker = {**INFO, "group": "default"}
    assert client.post("/v1/worker/leases", json={"worker_id": "w1", "worker": worker}).status_code == 200

    def attempt(asked: TestClient) -> dict[str, Any]:
        answer = asked.get(f"/v1/jobs/{job}")
        assert answer.status_code == 200, answer.text
        [found] = answer.json()["attempts"]
        return dict(found)

    found = attempt(client)
    assert (found["application_id"], found["spark_url"]) == (INFO["application_id"], INFO["ui_url"])
    template = "https://history.example.com/history/{application_id}/jobs/"
    served: Any = client.app
    app = create_app(changed(served.state.context, spark_ui_url=template))
    with TestClient(app, base_url="http://127.0.0.1") as other:
        found = attempt(other)
        assert found["spark_url"] == "https://history.example.com/history/app-20260101120000-0001/jobs/"
    # Earlier attempts keep the application that ran them when the same worker starts another one.
    client.post("/v1/worker/announcements", json={"worker_id": "w1", "worker": {**worker, "application_id": "app-2"}})
    assert attempt(client)["application_id"] == INFO["application_id"]


@pytest.mark.parametrize(
    "change",
    [
        {"ui_url": "javascript:alert(1)"},
        {"ui_url": "https://user:secret@host/"},
        {"ui_url": 'http://host/"onclick="x'},
        {"ui_url": "http://host\nhttp://other"},
        {"ui_url": "//host"},
        {"read_rates": {"scan_seconds_per_gib": -1, "merge_seconds_per_gib": 1}},
        {"read_rates": {"scan_seconds_per_gib": 1, "merge_seconds_per_gib": 1e9}},
        {"application_id": "../other?x="},
    ],
)
def test_a_worker_cannot_make_a_page_link_to_an_invalid_address(client: TestClient, change: dict[str, str]) -> None:
    answer = client.post("/v1/worker/announcements", json={"worker_id": "w1", "worker": {**INFO, **change}})
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/params-invalid")


@pytest.mark.parametrize(
    "url", ["https://history/", "javascript:{application_id}", "ftp://h/{application_id}", "{application_id}"]
)
def test_a_template_that_leads_to_no_application_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="application_id"):
        Settings(spark_ui_url=url)
    assert Settings(spark_ui_url="https://h:18080/history/{application_id}").spark_ui_url is not None


def test_a_worker_of_an_older_version_is_listed_without_details(client: TestClient) -> None:
    client.post("/v1/worker/leases", json={"worker_id": "w1"})
    [worker] = client.get("/v1/workers").json()["items"]
    nothing = {**dict.fromkeys(INFO), "group": "default", "spark_conf": {}, "spare_slots": 0}
    assert {name: worker[name] for name in INFO} == nothing


def test_a_worker_that_takes_no_jobs_yet_is_listed_with_its_state_at_once(
    client: TestClient, table_id: str, clock: Clock
) -> None:
    job = client.post(f"/v1/tables/{table_id}/jobs", json={"kind": "audit"}).json()["id"]

    def announce(state: str, executors: int | None = None) -> tuple[str | None, int | None, str]:
        worker = {"state": state, "executors": executors}
        answer = client.post("/v1/worker/announcements", json={"worker_id": "w1", "worker": worker})
        assert (answer.status_code, answer.content) == (204, b"")
        [shown] = client.get("/v1/workers").json()["items"]
        return shown["state"], shown["executors"], client.get(f"/v1/jobs/{job}").json()["waits_for"]

    nobody = "executors: 1 worker of the group default, none of them ready"
    # The change is stored even within the seconds in which an unchanged state is not.
    assert announce("starting") == ("starting", None, nobody)
    assert announce("waits_for_executors", 0) == ("waits_for_executors", 0, nobody)
    assert announce("ready", 1) == ("ready", 1, "its turn")
    assert announce("ready", 2) == ("ready", 2, "its turn")


def test_a_worker_that_did_not_start_is_listed_with_its_reason_and_is_no_worker(
    client: TestClient, table_id: str, clock: Clock
) -> None:
    job = client.post(f"/v1/tables/{table_id}/jobs", json={"kind": "audit"}).json()["id"]

    def fail(number: int) -> None:
        worker = {"state": "failed", "error": ERROR}
        body = {"worker_id": f"w{number}", "worker": worker}
        assert client.post("/v1/worker/announcements", json=body).status_code == 204

    fail(1)
    [shown] = client.get("/v1/workers").json()["items"]
    assert (shown["state"], shown["error"]["type"]) == ("failed", "/problems/memory-short")
    assert shown["error"]["detail"] == "Could not reserve  enough space"
    waits_for = client.get(f"/v1/jobs/{job}").json()["waits_for"]
    assert waits_for == "a worker of the group default: one failed to start 0 s ago: Too little memory"
    demand = client.get("/v1/workers/demand").json()["groups"]["default"]
    assert (demand["workers"], demand["waiting_workers"]) == (0, 0)
    for number in range(2, 40):  # A supervisor starts the worker again and again.
        clock.advance(60)
        fail(number)
    listed = client.get("/v1/workers").json()["items"]
    assert [each["id"] for each in listed] == [f"w{number}" for number in range(39, 28, -1)]


def test_a_worker_announces_itself_only_to_its_own_group_and_in_known_words(
    client: TestClient, make_token: Callable[..., dict[str, str]]
) -> None:
    def announce(token: dict[str, str], **worker: Any) -> int:
        body = {"worker_id": "w1", "worker": worker}
        return client.post("/v1/worker/announcements", json=body, headers=token).status_code

    worker, reader = make_token(Role.WORKER, groups=("default",)), make_token(Role.READER)
    assert announce(worker, state="starting") == 204
    assert announce(worker, group="large") == 403
    assert announce(reader, state="starting") == 403
    assert announce(worker, state="asleep") == 422
    assert announce(worker, executors=-1) == 422


def test_a_worker_gets_the_jobs_of_the_tables_whose_policy_names_its_group(client: TestClient, table_id: str) -> None:
    client.put(f"/v1/tables/{table_id}/policy", json={"worker_group": "large"})
    job = client.post(f"/v1/tables/{table_id}/jobs", json={"kind": "audit"}).json()
    assert job["worker_group"] == "large"
    assert client.post("/v1/worker/leases", json={"worker_id": "w1"}).status_code == 204
    leased = client.post("/v1/worker/leases", json={"worker_id": "w2", "worker": INFO})
    assert leased.json()["plan"]["job_id"] == job["id"]


def test_a_worker_group_with_an_invalid_name_is_refused(client: TestClient, table_id: str) -> None:
    refused = client.put(f"/v1/tables/{table_id}/policy", json={"worker_group": "a b"})
    assert refused.status_code == 422
    assert "worker_group" in refused.text


def test_calls_for_jobs_and_heartbeats_are_signs_of_life(client: TestClient, table_id: str, clock: Clock) -> None:
    client.put(f"/v1/tables/{table_id}/policy", json={"worker_group": INFO["group"]})

    def last_seen() -> str:
        return str(client.get("/v1/workers").json()["items"][0]["last_seen"])

    client.post("/v1/worker/leases", json={"worker_id": "w1", "worker": INFO})
    clock.advance(4)
    client.post("/v1/worker/leases", json={"worker_id": "w1", "worker": INFO})
    # The worker calls so often that not every call is stored.
    assert last_seen() == "2026-01-01T00:00:00Z"
    clock.advance(2)
    job = client.post(f"/v1/tables/{table_id}/jobs", json={"kind": "audit"}).json()["id"]
    client.post("/v1/worker/leases", json={"worker_id": "w1", "worker": INFO})
    assert last_seen() == "2026-01-01T00:00:06Z"
    assert client.get("/v1/workers").json()["items"][0]["job_ids"] == [job]
    clock.advance(10)
    client.post(f"/v1/worker/leases/{job}/heartbeat", json={"attempt": 1})
    assert last_seen() == "2026-01-01T00:00:16Z"
    client.post(f"/v1/worker/leases/{job}/result", json={"attempt": 1, "result": {"outcome": "succeeded"}})
    [worker] = client.get("/v1/workers").json()["items"]
    assert (worker["job_ids"], worker["master"]) == ([], INFO["master"])


def test_the_worker_that_was_seen_last_comes_first(client: TestClient, clock: Clock) -> None:
    for name in ("w1", "w2", "w1"):
        clock.advance(10)
        client.post("/v1/worker/leases", json={"worker_id": name})
    assert [worker["id"] for worker in client.get("/v1/workers").json()["items"]] == ["w1", "w2"]


def test_a_queued_job_says_what_it_waits_for(client: TestClient, table_id: str, clock: Clock) -> None:
    client.put(f"/v1/tables/{table_id}/policy", json={"worker_group": "large"})
    first = client.post(f"/v1/tables/{table_id}/jobs", json={"kind": "compaction"}).json()["id"]
    clock.advance(1)
    second = client.post(f"/v1/tables/{table_id}/jobs", json={"kind": "cleaning"}).json()["id"]

    def waits_for(job: str) -> str | None:
        said: str | None = client.get(f"/v1/jobs/{job}").json()["waits_for"]
        return said

    client.post("/v1/worker/leases", json={"worker_id": "w1"})
    assert "`groundskeeper worker --group large --service <URL>`" in str(waits_for(first))
    client.post("/v1/worker/leases", json={"worker_id": "w2", "worker": INFO})
    assert waits_for(first) is None
    assert waits_for(second) == f"job {first} (compaction), which is running on this table"
    client.post(f"/v1/worker/leases/{first}/result", json={"attempt": 1, "result": {"outcome": "succeeded"}})
    assert waits_for(second) == "its turn"
