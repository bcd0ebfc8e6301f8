"""Tests jobs over HTTP, from POST to their end; the test plays the worker over the real protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import Outcome, Problem, Progress, Result
from service.queue import recovery
from tests.integration.control_plane.protocol_worker import Worker

if TYPE_CHECKING:
    from fastapi.testclient import TestClient

    from service.api.dependencies import AppContext

FINAL = Problem("column-unknown", "There is no such column", "city", "Choose another one")
PASSING = Problem("lock-timeout", "The lock was taken", retriable=True)


@pytest.fixture
def worker(client: TestClient) -> Worker:
    return Worker(client)


@pytest.fixture
def submit(client: TestClient, table_id: str) -> Any:
    def post(kind: str = "compaction", key: str | None = None, **more: Any) -> Any:
        headers = {"Idempotency-Key": key} if key else {}
        return client.post(f"/v1/tables/{table_id}/jobs", json={"kind": kind, **more}, headers=headers)

    return post


def job_of(client: TestClient, job_id: str) -> dict[str, Any]:
    answer = client.get(f"/v1/jobs/{job_id}")
    assert answer.status_code == 200
    job: dict[str, Any] = answer.json()
    return job


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ('{"kind": "compactoin"}', "kind: must be one of 'compaction', 'cleaning', 'clustering', "),
        ('{"kind": "audit", "dry_run": 7}', "dry_run: must be true or false"),
        ('{"kind": "compaction", "params": {"limit_bytes": "a"}}', "params.limit_bytes: must be a whole number"),
        ('{"kind": "audit",}', "the body of the request is not JSON: "),
        ('"audit"', "the body of the request must be an object"),
        ("", "the body of the request is missing"),
    ],
)
def test_an_invalid_job_is_refused_with_a_readable_message(
    client: TestClient, table_id: str, body: str, detail: str
) -> None:
    answer = client.post(f"/v1/tables/{table_id}/jobs", content=body)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(detail)
    assert "<" not in answer.text
    assert not answer.json()["errors"][0]["field"].isdecimal()


def test_after_a_job_the_table_is_looked_at_again_but_not_after_a_dry_run(
    client: TestClient, worker: Worker, submit: Any, examine: Any, table_id: str
) -> None:
    looked = len(examine.asked)
    submit("audit", dry_run=True)
    worker.report(worker.must_lease(), Result(Outcome.SUCCEEDED))
    assert len(examine.asked) == looked
    submit("compaction")
    worker.report(worker.must_lease(), Result(Outcome.SUCCEEDED))
    assert len(examine.asked) == looked + 1
    assert client.get(f"/v1/tables/{table_id}").status_code == 200


def test_the_time_limit_of_a_job_is_its_own_or_of_its_policy_or_of_the_service(
    client: TestClient, worker: Worker, submit: Any, table_id: str
) -> None:
    def limits_of_job(**more: Any) -> tuple[float, int | None]:
        job = submit("audit", **more).json()
        plan = worker.must_lease()
        worker.report(plan, Result(Outcome.SUCCEEDED))
        return plan.timeout_seconds, job["timeout_seconds"]

    by_setting, shown = limits_of_job()
    assert shown is None
    assert limits_of_job(timeout_seconds=7) == (7, 7)
    assert client.put(f"/v1/tables/{table_id}/policy", json={"timeout_seconds": 90}).status_code == 200
    assert limits_of_job() == (90, 90)
    assert limits_of_job(timeout_seconds=7) == (7, 7)
    assert client.put(f"/v1/tables/{table_id}/policy", json={"timeout_seconds": None}).status_code == 200
    assert limits_of_job() == (by_setting, None)


def test_a_job_goes_from_submitted_to_succeeded(
    client: TestClient, worker: Worker, submit: Any, clock: Any, table_id: str
) -> None:
    answer = submit("cleaning", params={"retain": 3})
    assert answer.status_code == 202
    job = answer.json()
    assert answer.headers["location"] == f"/v1/jobs/{job['id']}"
    assert (job["state"], job["attempt"], job["table_id"]) == ("queued", 0, table_id)

    plan = worker.must_lease()
    assert plan.params == {"policy": "KEEP_LATEST_COMMITS", "retain": 3}
    assert plan.table.base_path == "/lake/orders"
    assert (plan.attempt, plan.earlier_instants, plan.dry_run) == (1, (), False)
    assert job_of(client, job["id"])["state"] == "leased"
    assert worker.lease() is None

    clock.advance(1)
    assert worker.beat(plan, "001", progress=Progress("clean", 1, 4, 10, 40)) == "continue"
    running = job_of(client, job["id"])
    assert running["state"] == "running"
    assert running["progress"] == {
        "step": "clean",
        "tasks_done": 1,
        "tasks_total": 4,
        "bytes_done": 10,
        "bytes_total": 40,
    }
    assert running["instants"] == ["001"]
    assert running["started_at"] > running["leased_at"]

    clock.advance(1)
    ended = worker.report(plan, Result(Outcome.SUCCEEDED, ("001", "002"), {"files": 7}))
    assert (ended.status_code, ended.json()) == (200, {"state": "succeeded", "next": None})
    job = job_of(client, job["id"])
    assert (job["state"], job["result"], job["error"]) == ("succeeded", {"files": 7}, None)
    assert job["instants"] == ["001", "002"]
    assert job["finished_at"] > job["started_at"]
    assert job["lease_deadline"] is None
    [attempt] = job["attempts"]
    assert (attempt["attempt"], attempt["worker_id"], attempt["outcome"]) == (1, "w1", "succeeded")
    assert worker.report(plan, Result(Outcome.SUCCEEDED)).status_code == 409


def test_a_final_error_ends_the_job_and_is_shown(client: TestClient, worker: Worker, submit: Any) -> None:
    job_id = submit().json()["id"]
    worker.report(worker.must_lease(), Result(Outcome.FAILED, error=FINAL))
    job = job_of(client, job_id)
    assert job["state"] == "failed"
    assert job["error"]["type"] == "/problems/column-unknown"
    assert job["error"]["hint"] == "Choose another one"
    assert worker.lease() is None


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.UNKNOWN])
def test_a_passing_error_is_tried_again_after_a_while_until_the_last_attempt(
    client: TestClient, worker: Worker, submit: Any, clock: Any, outcome: Outcome
) -> None:
    job_id = submit().json()["id"]
    for attempt in (1, 2, 3):
        plan = worker.must_lease()
        assert plan.attempt == attempt
        assert plan.earlier_instants == tuple(f"00{n}" for n in range(1, attempt))
        answer = worker.report(plan, Result(outcome, (f"00{attempt}",), error=PASSING))
        last = "unknown" if outcome is Outcome.UNKNOWN else "failed"
        assert answer.json()["state"] == ("queued" if attempt < 3 else last)
        assert worker.lease() is None
        clock.advance(60)
    job = job_of(client, job_id)
    assert job["instants"] == ["001", "002", "003"]
    assert [each["outcome"] for each in job["attempts"]] == [outcome.value] * 3
    assert worker.lease() is None


def test_waited_and_worked_are_sums_over_the_attempts_and_add_up_to_what_the_job_took(
    client: TestClient, worker: Worker, submit: Any, clock: Any
) -> None:
    job_id = submit().json()["id"]

    def require_spent(*expected: float) -> None:
        found = job_of(client, job_id)["spent"]
        assert list(found.values()) == list(expected)
        assert list(found) == ["waited_seconds", "worked_seconds", "took_seconds"]

    clock.advance(100)
    require_spent(100, 0, 100)
    plan = worker.must_lease()
    clock.advance(20)
    require_spent(100, 20, 120)
    worker.report(plan, Result(Outcome.FAILED, error=PASSING))
    clock.advance(300)
    require_spent(400, 20, 420)
    plan = worker.must_lease()
    clock.advance(7.5)
    worker.report(plan, Result(Outcome.SUCCEEDED))
    clock.advance(1000)
    require_spent(400, 27.5, 427.5)


def test_a_job_whose_worker_is_gone_goes_to_another_that_learns_what_it_left(
    client: TestClient, worker: Worker, submit: Any, clock: Any, app_context: AppContext
) -> None:
    job_id = submit().json()["id"]
    lost = worker.must_lease()
    worker.beat(lost, "001")
    clock.advance(29)
    assert recovery.run_once(app_context.database.engine, app_context.database.notifier, clock).queued == ()
    clock.advance(2)
    assert recovery.run_once(app_context.database.engine, app_context.database.notifier, clock).queued == (job_id,)
    assert job_of(client, job_id)["error"]["type"] == "/problems/worker-lost"

    assert worker.beat(lost) == "lost"
    second = Worker(client, "w2").must_lease()
    assert (second.attempt, second.earlier_instants) == (2, ("001",))
    # The calls of the first worker must not affect the second one.
    assert worker.beat(lost, "009") == "lost"
    refused = worker.report(lost, Result(Outcome.SUCCEEDED, ("009",)))
    assert refused.status_code == 409
    assert refused.json()["type"] == "/problems/lease-lost"
    assert job_of(client, job_id)["instants"] == ["001"]
    Worker(client, "w2").report(second, Result(Outcome.SUCCEEDED, ("001",)))
    job = job_of(client, job_id)
    assert (job["state"], job["error"]) == ("succeeded", None)
    assert [each["outcome"] for each in job["attempts"]] == ["lost", "succeeded"]


def test_a_late_heartbeat_saves_the_lease_if_nobody_took_it_back(
    worker: Worker, submit: Any, clock: Any, app_context: AppContext
) -> None:
    submit()
    plan = worker.must_lease()
    clock.advance(100)
    assert worker.beat(plan) == "continue"
    assert recovery.run_once(app_context.database.engine, app_context.database.notifier, clock).queued == ()


def test_the_outcome_of_a_job_whose_workers_all_die_is_unknown_until_the_next_poll(
    client: TestClient, worker: Worker, submit: Any, clock: Any, app_context: AppContext
) -> None:
    job_id = submit().json()["id"]
    for attempt in (1, 2, 3):
        worker.beat(worker.must_lease(), f"00{attempt}")
        clock.advance(31)
        recovered = recovery.run_once(app_context.database.engine, app_context.database.notifier, clock)
    assert recovered.undecided == (job_id,)
    job = job_of(client, job_id)
    assert (job["state"], job["error"]["type"]) == ("unknown", "/problems/worker-lost")
    assert "003" in job["error"]["detail"]


def test_a_queued_job_is_cancelled_at_once(client: TestClient, worker: Worker, submit: Any) -> None:
    job_id = submit().json()["id"]
    answer = client.post(f"/v1/jobs/{job_id}/cancel")
    assert (answer.status_code, answer.json()["state"]) == (202, "cancelled")
    assert worker.lease() is None
    # The repeated call has the same answer, and another job may be submitted.
    assert client.post(f"/v1/jobs/{job_id}/cancel").json()["state"] == "cancelled"
    assert submit().status_code == 202


def test_the_worker_of_a_running_job_is_told_to_cancel(client: TestClient, worker: Worker, submit: Any) -> None:
    job_id = submit().json()["id"]
    plan = worker.must_lease()
    assert worker.beat(plan) == "continue"
    answer = client.post(f"/v1/jobs/{job_id}/cancel").json()
    assert (answer["state"], answer["cancel_requested"]) == ("running", True)
    assert worker.beat(plan) == "cancel"
    worker.report(plan, Result(Outcome.CANCELLED))
    assert job_of(client, job_id)["state"] == "cancelled"


def test_a_cancelled_job_whose_worker_is_gone_is_cancelled_with_a_note(
    client: TestClient, worker: Worker, submit: Any, clock: Any, app_context: AppContext
) -> None:
    job_id = submit().json()["id"]
    worker.beat(worker.must_lease(), "001")
    client.post(f"/v1/jobs/{job_id}/cancel")
    clock.advance(31)
    assert recovery.run_once(app_context.database.engine, app_context.database.notifier, clock).ended == (job_id,)
    job = job_of(client, job_id)
    assert job["state"] == "cancelled"
    assert "001" in job["error"]["detail"]


def test_a_job_that_has_ended_cannot_be_cancelled(client: TestClient, worker: Worker, submit: Any) -> None:
    job_id = submit().json()["id"]
    worker.report(worker.must_lease(), Result(Outcome.SUCCEEDED))
    answer = client.post(f"/v1/jobs/{job_id}/cancel")
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/job-already-ended")


def test_a_job_that_an_active_job_excludes_is_refused_with_the_id_of_that_job(submit: Any) -> None:
    standing = submit("compaction").json()["id"]
    for kind, params in (("compaction", {}), ("clustering", {"sort_by": ["a"]}), ("bucket_expansion", {"factor": 2})):
        answer = submit(kind, params=params)
        assert answer.status_code == 409
        assert answer.json()["type"] == "/problems/job-conflict"
        assert answer.json()["job_id"] == standing
    assert submit("compaction", dry_run=True).status_code == 202
    assert submit("cleaning").status_code == 202
    assert submit("audit").status_code == 202


def test_an_idempotency_key_answers_the_first_job_again(submit: Any, worker: Worker) -> None:
    first = submit("cleaning", key="k")
    again = submit("cleaning", key="k")
    assert (first.status_code, again.status_code) == (202, 200)
    assert again.json()["id"] == first.json()["id"]
    assert again.headers["location"] == first.headers["location"]
    worker.report(worker.must_lease(), Result(Outcome.SUCCEEDED))
    assert submit("cleaning", key="k").json()["state"] == "succeeded"


def test_an_idempotency_key_is_not_for_two_different_jobs(submit: Any) -> None:
    first = submit("cleaning", key="k").json()
    for kind, more in (("audit", {}), ("cleaning", {"params": {"retain": 2}}), ("cleaning", {"dry_run": True})):
        answer = submit(kind, key="k", **more)
        assert (answer.status_code, answer.json()["type"]) == (409, "/problems/idempotency-key-reused")
        assert answer.json()["job_id"] == first["id"]


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({"kind": "cleaning", "params": {"retain": 0}}, "params.retain", "greater than or equal to 1"),
        ({"kind": "clustering"}, "params", "is missing"),
        ({"kind": "clustering", "params": {"sort_by": []}}, "params.sort_by", "at least 1 item"),
        ({"kind": "bucket_expansion", "params": {}}, "params", "exactly one of"),
        ({"kind": "audit", "params": {"deep": 1}}, "params.deep", "not known"),
        ({"kind": "vacuum"}, "kind", "'compaction'"),
        ({}, "kind", "is missing"),
        ({"kind": "audit", "urgency": 1}, "urgency", "not known"),
        ({"kind": "audit", "priority": 101}, "priority", "less than or equal to 100"),
        ({"kind": "audit", "timeout_seconds": 0}, "timeout_seconds", "greater than or equal to 1"),
        ({"kind": "audit", "timeout_seconds": 604_801}, "timeout_seconds", "less than or equal to 604800"),
        ({"kind": "compaction", "params": {"limit_bytes": 0}}, "params.limit_bytes", "greater than or equal to 1"),
        ({"kind": "audit", "dry_run": "perhaps"}, "dry_run", "true or false"),
    ],
)
def test_invalid_params_are_refused(
    client: TestClient, table_id: str, body: dict[str, Any], field: str, message: str
) -> None:
    answer = client.post(f"/v1/tables/{table_id}/jobs", json=body)
    assert answer.status_code == 422
    assert answer.json()["type"] == "/problems/params-invalid"
    [error] = answer.json()["errors"]
    assert error["field"] == field
    assert message in error["message"]


def test_jobs_are_listed_with_filters(
    client: TestClient, table_id: str, submit: Any, worker: Worker, clock: Any
) -> None:
    audit = submit("audit").json()["id"]
    clock.advance(1)
    cleaning = submit("cleaning").json()["id"]
    worker.must_lease()

    def ids(**query: str) -> list[str]:
        return [job["id"] for job in client.get("/v1/jobs", params=query).json()["items"]]

    assert ids() == [cleaning, audit]
    assert ids(kind="cleaning") == [cleaning]
    assert ids(state="leased") == [audit]
    assert ids(table_id=table_id, state="queued") == [cleaning]
    assert ids(table_id="tbl_none") == []
    assert client.get("/v1/jobs?state=lost").status_code == 422
    first = client.get("/v1/jobs?limit=1").json()
    second = client.get("/v1/jobs", params={"limit": 1, "cursor": first["next_cursor"]}).json()
    assert [first["items"][0]["id"], second["items"][0]["id"]] == [cleaning, audit]
    assert second["next_cursor"] is None


def test_malformed_ids_are_refused(client: TestClient) -> None:
    for path in ("/v1/jobs/a%00b", "/v1/tables/a%00b", "/v1/jobs?table_id=%00", f"/v1/jobs/{'x' * 100}"):
        assert client.get(path).status_code == 422, path


def test_an_unknown_job_is_not_found(client: TestClient) -> None:
    for answer in (client.get("/v1/jobs/job_none"), client.post("/v1/jobs/job_none/cancel")):
        assert (answer.status_code, answer.json()["type"]) == (404, "/problems/job-not-found")


def test_a_worker_of_an_unknown_job_is_told_to_stop(client: TestClient) -> None:
    answer = client.post("/v1/worker/leases/job_none/heartbeat", json={"attempt": 1})
    assert answer.json() == {"answer": "lost"}
    answer = client.post("/v1/worker/leases/job_none/result", json={"attempt": 1, "result": {"outcome": "succeeded"}})
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/lease-lost")


def test_a_newer_worker_may_say_more_than_the_service_knows(client: TestClient, worker: Worker, submit: Any) -> None:
    submit()
    plan = worker.must_lease()
    beat = {"attempt": 1, "mood": "good", "progress": {"step": "x", "joules": 3}, "instants": []}
    assert client.post(f"/v1/worker/leases/{plan.job_id}/heartbeat", json=beat).json() == {"answer": "continue"}


def test_a_result_with_what_no_database_takes_is_stored_without_it(
    client: TestClient, worker: Worker, submit: Any
) -> None:
    job_id = submit().json()["id"]
    worker.must_lease()
    body = (
        b'{"attempt": 1, "result": {"outcome": "failed",'
        b' "details": {"a": NaN, "b": ["x\\u0000y", "\\ud800"], "c": 1.5},'
        b' "error": {"type": "t", "title": "a\\u0000b"}}}'
    )
    answer = client.post(
        f"/v1/worker/leases/{job_id}/result", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 200
    job = job_of(client, job_id)
    assert job["result"] == {"a": None, "b": ["xy", "?"], "c": 1.5}
    assert job["error"]["title"] == "ab"


@pytest.mark.parametrize(
    "body", [{}, {"worker_id": ""}, {"worker_id": "w", "wait_seconds": 21}, {"worker_id": "w", "wait_seconds": -1}]
)
def test_an_invalid_lease_request_is_refused(client: TestClient, body: dict[str, Any]) -> None:
    assert client.post("/v1/worker/leases", json=body).status_code == 422


@pytest.mark.parametrize("result", [{}, {"outcome": "fine"}, {"outcome": "failed", "error": "text"}])
def test_an_invalid_result_is_refused(client: TestClient, worker: Worker, submit: Any, result: dict[str, Any]) -> None:
    job_id = submit().json()["id"]
    worker.must_lease()
    answer = client.post(f"/v1/worker/leases/{job_id}/result", json={"attempt": 1, "result": result})
    assert answer.status_code == 422
    assert job_of(client, job_id)["state"] == "leased"


@pytest.mark.parametrize(
    ("is_dry", "details", "verdict"),
    [
        (True, {"refusals": [FINAL.to_json()]}, "refused"),
        (True, {"refusals": [], "nothing_to_do": True}, "nothing_to_do"),
        (True, {"refusals": [], "nothing_to_do": False}, "ready"),
        (False, {"nothing_to_do": True}, "nothing_to_do"),
        (False, {"files": 3}, None),
    ],
)
def test_a_job_that_has_ended_says_whether_its_plan_is_refused_or_there_is_nothing_to_do(
    client: TestClient, worker: Worker, submit: Any, is_dry: bool, details: dict[str, Any], verdict: str | None
) -> None:
    job = submit(dry_run=is_dry).json()
    assert job["verdict"] is None
    worker.report(worker.must_lease(), Result(Outcome.SUCCEEDED, details=details))
    ended = job_of(client, job["id"])
    assert (ended["state"], ended["verdict"]) == ("succeeded", verdict)
    assert client.get("/v1/jobs").json()["items"][0]["verdict"] == verdict


def test_a_job_that_was_refused_says_so(client: TestClient, worker: Worker, submit: Any) -> None:
    job = submit().json()
    refused = Result(Outcome.FAILED, details={"refusals": [FINAL.to_json()]}, error=FINAL)
    worker.report(worker.must_lease(), refused)
    assert (job_of(client, job["id"])["state"], job_of(client, job["id"])["verdict"]) == ("failed", "refused")
