"""Tests the next job that a worker gets with the answer to its report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import Outcome, Problem, Result
from service.access.token import Role
from service.db import schema
from service.db.engine import writing
from service.queue import recovery
from tests.integration.control_plane.protocol_worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi.testclient import TestClient

    from service.api.dependencies import AppContext

DONE = Result(Outcome.SUCCEEDED)
PASSING = Problem("lock-timeout", "The lock was taken", retriable=True)


@pytest.fixture
def worker(client: TestClient) -> Worker:
    return Worker(client)


@pytest.fixture
def submit(client: TestClient, table_id: str, clock: Any) -> Callable[[str], str]:
    def post(kind: str) -> str:
        clock.advance(1)
        answer = client.post(f"/v1/tables/{table_id}/jobs", json={"kind": kind})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    return post


def state_of(client: TestClient, job_id: str) -> str:
    return str(client.get(f"/v1/jobs/{job_id}").json()["state"])


def test_the_answer_to_a_report_brings_the_next_job_of_the_same_table(
    client: TestClient, worker: Worker, submit: Callable[[str], str]
) -> None:
    first, second = submit("compaction"), submit("cleaning")
    plan = worker.must_lease()
    assert worker.lease() is None  # The table is busy.
    following = worker.report_and_lease(plan, DONE)
    assert following is not None
    assert (plan.job_id, following.job_id, following.attempt) == (first, second, 1)
    assert state_of(client, first) == "succeeded"
    assert state_of(client, second) == "leased"
    other = client.post(f"/v1/worker/leases/{second}/heartbeat", json={"attempt": 1, "worker_id": "w2"})
    assert other.json()["answer"] == "lost"
    assert worker.beat(following) == "continue"
    assert worker.report_and_lease(following, DONE) is None
    assert state_of(client, second) == "succeeded"


def test_a_worker_of_an_older_version_asks_for_each_job(
    client: TestClient, worker: Worker, submit: Callable[[str], str]
) -> None:
    submit("compaction")
    second = submit("cleaning")
    assert worker.report(worker.must_lease(), DONE).json() == {"state": "succeeded", "next": None}
    assert state_of(client, second) == "queued"
    assert worker.must_lease().job_id == second


def test_a_worker_that_dies_with_the_next_job_loses_it_like_any_other_job(
    client: TestClient, worker: Worker, submit: Callable[[str], str], clock: Any, app_context: AppContext
) -> None:
    submit("compaction")
    second = submit("cleaning")
    lost = worker.report_and_lease(worker.must_lease(), DONE)
    clock.advance(31)
    assert recovery.run_once(app_context.database.engine, app_context.database.notifier, clock).queued == (second,)
    assert lost is not None
    assert worker.beat(lost) == "lost"
    assert worker.report(lost, DONE, worker_id="w1", next={}).status_code == 409
    assert Worker(client, "w2").must_lease().attempt == 2


def test_a_report_that_does_not_count_brings_no_job(
    client: TestClient, worker: Worker, submit: Callable[[str], str]
) -> None:
    submit("compaction")
    plan = worker.must_lease()
    worker.report(plan, DONE)
    second = submit("cleaning")
    other = Result(Outcome.CANCELLED)
    assert worker.report(plan, other, worker_id="w1", next={}).status_code == 409
    assert worker.report(plan, DONE, worker_id="w2", next={}).status_code == 409
    assert state_of(client, second) == "queued"


def test_a_report_brings_neither_a_job_that_waits_for_a_retry_nor_one_that_is_paused(
    client: TestClient, worker: Worker, submit: Callable[[str], str], clock: Any, app_context: AppContext
) -> None:
    failed = submit("compaction")
    assert worker.report_and_lease(worker.must_lease(), Result(Outcome.FAILED, error=PASSING)) is None
    assert state_of(client, failed) == "queued"
    audit = submit("audit")
    plan = worker.must_lease()
    assert plan.job_id == audit
    clock.advance(60)
    client.put("/v1/pause", json={})
    # A pause holds back further attempts of what a policy has started.
    with writing(app_context.database.engine) as connection:
        connection.execute(schema.jobs.update().where(schema.jobs.c.id == failed).values(reason="12 log files"))
    assert worker.report_and_lease(plan, DONE) is None
    assert state_of(client, failed) == "queued"


def test_a_token_for_another_group_ends_its_job_and_gets_no_other(
    client: TestClient, submit: Callable[[str], str], make_token: Callable[..., dict[str, str]]
) -> None:
    first, second = submit("compaction"), submit("cleaning")
    token = make_token(Role.WORKER, groups=("default",))
    asked = {"worker_id": "w1", "worker": {}}
    assert client.post("/v1/worker/leases", json=asked, headers=token).json()["plan"]["job_id"] == first
    report = {
        "worker_id": "w1",
        "attempt": 1,
        "result": {"outcome": "succeeded"},
        "next": {"worker": {"group": "large"}},
    }
    answer = client.post(f"/v1/worker/leases/{first}/result", json=report, headers=token)
    assert answer.json() == {"state": "succeeded", "next": None}
    assert second
