"""Tests the log lines that workers send for a job, and jobs that repeat others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from jobs.contract import (
    MOST_LINE_CHARACTERS,
    MOST_LOG_LINES,
    Heartbeat,
    JobKind,
    LogLevel,
    LogLine,
    Outcome,
    Problem,
    Result,
)
from service.db import schema
from service.db.engine import reading, writing
from service.queue import job_log, job_store
from service.queue.job import Job
from tests.integration.control_plane.protocol_worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi.testclient import TestClient

    from service.catalog.registration import Registration

AT = datetime(2026, 1, 1, 12, 0, 0, 120_000, tzinfo=UTC)
FINAL = Problem("column-unknown", "There is no such column", "city", "Choose another one")


def a_line(number: int, message: str = "planning", level: LogLevel = LogLevel.INFO) -> LogLine:
    return LogLine(number, AT + timedelta(seconds=number), level, "jobs.job_context", message)


@pytest.fixture
def worker(client: TestClient) -> Worker:
    return Worker(client)


@pytest.fixture
def submit(client: TestClient, table_id: str) -> Callable[..., str]:
    def post(kind: str = "compaction", **more: Any) -> str:
        answer = client.post(f"/v1/tables/{table_id}/jobs", json={"kind": kind, **more})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    return post


@pytest.fixture
def send(client: TestClient) -> Callable[..., Any]:
    def post(job_id: str, *lines: LogLine, attempt: int = 1) -> Any:
        beat = Heartbeat(attempt, log=lines).to_json()
        return client.post(f"/v1/worker/leases/{job_id}/heartbeat", json=beat)

    return post


def log_of(client: TestClient, job_id: str, **params: Any) -> dict[str, Any]:
    answer = client.get(f"/v1/jobs/{job_id}/log", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def messages(page: dict[str, Any]) -> list[str]:
    return [each["message"] for each in page["items"]]


def test_lines_arrive_with_heartbeats_and_the_result_and_one_that_is_sent_twice_is_kept_once(
    client: TestClient, worker: Worker, submit: Callable[..., str], send: Callable[..., Any]
) -> None:
    job_id = submit()
    assert log_of(client, job_id) == {"items": [], "next_cursor": None, "position": "0.-1"}
    plan = worker.must_lease()
    assert send(job_id, a_line(0, "planning")).json() == {"answer": "continue"}
    # The worker did not receive the answer to the first call.
    assert send(job_id, a_line(0, "planning"), a_line(1, "it failed\n  at x.py", LogLevel.ERROR)).status_code == 200
    report = {
        "attempt": 1,
        "result": Result(Outcome.FAILED, error=FINAL).to_json(),
        "log": [a_line(2, "done").to_json()],
    }
    assert client.post(f"/v1/worker/leases/{plan.job_id}/result", json=report).status_code == 200
    page = log_of(client, job_id)
    assert page["items"][0] == {
        "at": "2026-01-01T12:00:00.120000Z",
        "level": "INFO",
        "logger": "jobs.job_context",
        "message": "planning",
        "attempt": 1,
    }
    assert messages(page) == ["planning", "it failed\n  at x.py", "done"]
    assert messages(log_of(client, job_id, level="WARNING")) == ["it failed\n  at x.py"]


def test_pages_and_positions_lead_through_the_lines_of_all_attempts(
    client: TestClient, worker: Worker, submit: Callable[..., str], send: Callable[..., Any], clock: Any
) -> None:
    job_id = submit()
    worker.must_lease()
    send(job_id, *(a_line(number, f"first {number}") for number in range(3)))
    worker.report(worker_plan := plan_of(job_id), Result(Outcome.FAILED, error=Problem("x", "x", retriable=True)))
    assert worker_plan.attempt == 1
    clock.advance(600)
    worker.must_lease()
    send(job_id, a_line(0, "second 0"), attempt=2)
    first = log_of(client, job_id, limit=2)
    assert (messages(first), first["next_cursor"]) == (["first 0", "first 1"], first["position"])
    second = log_of(client, job_id, limit=2, cursor=first["next_cursor"])
    assert (messages(second), second["next_cursor"]) == (["first 2", "second 0"], None)
    assert messages(log_of(client, job_id, cursor=second["position"])) == []
    send(job_id, a_line(1, "second 1"), attempt=2)
    assert messages(log_of(client, job_id, cursor=second["position"])) == ["second 1"]
    for wrong in ("x", "1", "1.2.3", "-1.1", "1.99999999999"):
        refused = client.get(f"/v1/jobs/{job_id}/log", params={"cursor": wrong})
        assert refused.status_code == 422, wrong


def plan_of(job_id: str, attempt: int = 1) -> Any:
    from jobs.contract import Table, WorkOrder

    return WorkOrder(job_id, attempt, JobKind.COMPACTION, Table("/lake/orders", "orders"))


def test_a_log_is_also_text(
    client: TestClient, worker: Worker, submit: Callable[..., str], send: Callable[..., Any]
) -> None:
    job_id = submit()
    worker.must_lease()
    send(job_id, a_line(0, "planning"))
    line = "2026-01-01T12:00:00.120Z INFO     [1] jobs.job_context: planning\n"
    by_parameter = client.get(f"/v1/jobs/{job_id}/log", params={"format": "text"})
    by_header = client.get(f"/v1/jobs/{job_id}/log", headers={"Accept": "text/plain"})
    assert by_parameter.text == by_header.text == line
    assert by_parameter.headers["content-type"].startswith("text/plain")
    assert client.get("/v1/jobs/job_none/log").status_code == 404


def test_secrets_and_what_no_database_takes_are_removed_and_too_much_is_refused(
    client: TestClient, worker: Worker, submit: Callable[..., str], send: Callable[..., Any]
) -> None:
    job_id = submit()
    worker.must_lease()
    assert send(job_id, a_line(0, "fs.s3a.secret.key=hunter2hunter2 \0")).status_code == 200
    assert messages(log_of(client, job_id)) == ["fs.s3a.secret.key=****** "]
    many = [a_line(number, "x") for number in range(1, MOST_LOG_LINES + 2)]
    for lines in (many, [a_line(1, "x" * (MOST_LINE_CHARACTERS + 1))], [a_line(-1)], [a_line(10**9)]):
        assert send(job_id, *lines).status_code == 422
    long = [a_line(number, "x" * MOST_LINE_CHARACTERS) for number in range(1, 10)]
    assert send(job_id, *long).status_code == 422
    assert send(job_id, *long[:8]).status_code == 200


def test_a_worker_that_lost_the_lease_adds_nothing(
    client: TestClient, worker: Worker, submit: Callable[..., str], send: Callable[..., Any]
) -> None:
    job_id = submit()
    worker.must_lease()
    assert send(job_id, a_line(0), attempt=2).json() == {"answer": "lost"}
    assert log_of(client, job_id)["items"] == []


def test_the_newest_mebibyte_is_kept_and_goes_with_the_job(engine: sa.Engine, a_table: Registration) -> None:
    job = Job("job_1", a_table.id, JobKind.AUDIT, AT, AT)
    with writing(engine) as connection:
        job_store.submit(connection, job)
        for attempt in (1, 2):
            for chunk in range(60):
                lines = [a_line(chunk * 2 + each, "x" * 10_000) for each in range(2)]
                job_log.append(connection, job.id, attempt, lines)
    with reading(engine) as connection:
        kept = connection.execute(sa.select(sa.func.count()).select_from(schema.job_log_lines)).scalar_one()
        page = job_log.page(connection, job.id, limit=500)
    assert kept == len(page.items) == job_log.MOST_BYTES // 10_100 + 1
    assert page.position == "2.119"
    assert {line.attempt for line in page.items} == {2}
    with writing(engine) as connection:
        connection.execute(schema.jobs.delete())
        assert connection.execute(sa.select(schema.job_log_lines)).first() is None


def test_the_whole_log_is_a_file(
    client: TestClient, worker: Worker, submit: Callable[..., str], send: Callable[..., Any]
) -> None:
    job_id = submit()
    worker.must_lease()
    for first in range(0, 1200, MOST_LOG_LINES):
        send(job_id, *(a_line(number, f"line {number}") for number in range(first, min(first + MOST_LOG_LINES, 1200))))
    send(job_id, a_line(1200, "it failed", LogLevel.ERROR))
    answer = client.get(f"/v1/jobs/{job_id}/log.txt")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["content-disposition"] == f'attachment; filename="{job_id}.log"'
    lines = answer.text.splitlines()
    assert len(lines) == 1201
    assert lines[0].endswith("INFO     [1] jobs.job_context: line 0")
    assert lines[1199].endswith(" line 1199")
    [error] = client.get(f"/v1/jobs/{job_id}/log.txt", params={"level": "ERROR"}).text.splitlines()
    assert error.endswith("ERROR    [1] jobs.job_context: it failed")
    assert client.get("/v1/jobs/job_none/log.txt").json()["type"] == "/problems/job-not-found"


def test_a_failed_job_is_submitted_again_once_at_a_time(
    client: TestClient, worker: Worker, submit: Callable[..., str], table_id: str
) -> None:
    job_id = submit("cleaning", params={"retain": 3}, priority=5, timeout_seconds=60)
    refused = client.post(f"/v1/jobs/{job_id}/retry")
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/job-not-retriable")
    worker.report(worker.must_lease(), Result(Outcome.FAILED, error=FINAL))
    first = client.post(f"/v1/jobs/{job_id}/retry")
    again = first.json()
    assert (first.status_code, first.headers["location"]) == (202, f"/v1/jobs/{again['id']}")
    old = client.get(f"/v1/jobs/{job_id}").json()
    same = ("kind", "params", "table_id", "priority", "timeout_seconds", "dry_run")
    assert {name: again[name] for name in same} == {name: old[name] for name in same}
    assert (again["state"], again["retry_of"], old["retry_of"]) == ("queued", job_id, None)
    # The second call simulates a double click.
    second = client.post(f"/v1/jobs/{job_id}/retry")
    assert (second.status_code, second.json()["id"]) == (200, again["id"])
    client.post(f"/v1/jobs/{again['id']}/cancel")
    third = client.post(f"/v1/jobs/{again['id']}/retry", headers={"Idempotency-Key": "k"})
    assert (third.status_code, third.json()["retry_of"]) == (202, again["id"])
    newest = client.get("/v1/audit", params={"operation": "retryJob", "outcome": "done"}).json()["items"][0]
    assert newest["object_id"] == third.json()["id"]
    assert client.post("/v1/jobs/job_none/retry").status_code == 404


def test_a_retry_is_refused_like_the_submission(
    client: TestClient, worker: Worker, submit: Callable[..., str], table_id: str
) -> None:
    job_id = submit("compaction")
    worker.report(worker.must_lease(), Result(Outcome.FAILED, error=FINAL))
    other = submit("clustering", params={"sort_by": ["id"]})
    refused = client.post(f"/v1/jobs/{job_id}/retry")
    assert (refused.status_code, refused.json()["job_id"]) == (409, other)
