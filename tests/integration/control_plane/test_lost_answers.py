"""Tests workers whose real connections are cut after the service has executed the call."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from jobs.contract import Outcome, Result, WorkerInfo, WorkOrder
from jobs.errors import LeaseLostError
from jobs.worker.service import Service, ServiceUnreachableError
from service.db.engine import reading
from service.queue import job_store
from service.queue.job import JobState
from tests.integration.control_plane.live_service import served
from tests.support.contexts import context_of
from tests.support.tcp_gate import TcpGate

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlalchemy as sa

    from service.api.dependencies import AppContext
    from service.queue.job import Job

DONE = Result(Outcome.SUCCEEDED)
INFO = WorkerInfo()


@pytest.fixture
def live(engine: sa.Engine, examine: Any, clock: Any) -> AppContext:
    return context_of(engine, examine=examine, clock=clock, rng=Random(1))


@pytest.fixture
def url(live: AppContext) -> Iterator[str]:
    yield from served(live)


@pytest.fixture
def gate(url: str) -> Iterator[TcpGate]:
    gate = TcpGate(httpx.URL(url).port or 0)
    yield gate
    gate.end()


@pytest.fixture
def worker(gate: TcpGate) -> Service:
    return Service([f"http://127.0.0.1:{gate.port}"], None)


@pytest.fixture
def submitted(url: str, clock: Any) -> tuple[str, str]:
    table = httpx.post(f"{url}/v1/tables", json={"base_path": "/lake/orders"}).json()["id"]
    ids = []
    for kind in ("compaction", "cleaning"):
        clock.advance(1)
        ids.append(httpx.post(f"{url}/v1/tables/{table}/jobs", json={"kind": kind}).json()["id"])
    return ids[0], ids[1]


def lease_order(worker: Service) -> WorkOrder:
    lease = worker.lease("w1", INFO)
    assert lease is not None
    return lease[0]


def job_of(engine: sa.Engine, job_id: str) -> Job:
    with reading(engine) as connection:
        return job_store.get(connection, job_id)


def test_a_report_whose_answer_is_lost_is_repeated_and_brings_the_same_next_job(
    engine: sa.Engine, gate: TcpGate, worker: Service, submitted: tuple[str, str], clock: Any
) -> None:
    first, second = submitted
    order = lease_order(worker)
    gate.lose_answer(b"/result")
    with pytest.raises(ServiceUnreachableError):
        worker.finish("w1", order, DONE, takes_next=INFO)
    assert job_of(engine, first).state is JobState.SUCCEEDED
    assert job_of(engine, second).state is JobState.LEASED
    ended_at = job_of(engine, first).finished_at
    clock.advance(20)
    following = worker.finish("w1", order, DONE, takes_next=INFO)
    assert following is not None
    assert (following[0].job_id, following[0].attempt) == (second, 1)
    assert job_of(engine, first).finished_at == ended_at
    # The lease begins anew, as the worker believes.
    deadline = job_of(engine, second).lease_deadline
    assert deadline is not None
    assert (deadline - clock()).total_seconds() == following[1]
    assert worker.finish("w1", following[0], DONE, takes_next=INFO) is None
    assert job_of(engine, second).state is JobState.SUCCEEDED


def test_a_worker_that_gives_up_its_report_asks_for_the_next_job_that_it_was_sent(
    engine: sa.Engine, gate: TcpGate, worker: Service, submitted: tuple[str, str]
) -> None:
    order = lease_order(worker)
    gate.lose_answer(b"/result")
    with pytest.raises(ServiceUnreachableError):
        worker.finish("w1", order, DONE, takes_next=INFO)
    assert lease_order(worker).job_id == submitted[1]
    assert job_of(engine, submitted[1]).attempt == 1


def test_a_request_whose_answer_is_lost_brings_the_same_job_again(
    engine: sa.Engine, gate: TcpGate, worker: Service, submitted: tuple[str, str]
) -> None:
    gate.lose_answer(b"/v1/worker/leases")
    with pytest.raises(ServiceUnreachableError):
        worker.lease("w1", INFO)
    assert job_of(engine, submitted[0]).state is JobState.LEASED
    order = lease_order(worker)
    assert (order.job_id, order.attempt) == (submitted[0], 1)
    assert worker.finish("w1", order, DONE) is None
    # The repeated request got its answer, so the next request gets another job.
    assert lease_order(worker).job_id == submitted[1]


def test_only_the_worker_that_reported_may_repeat_the_report_and_only_the_same(
    worker: Service, submitted: tuple[str, str]
) -> None:
    order = lease_order(worker)
    worker.finish("w1", order, DONE)
    worker.finish("w1", order, DONE)
    for name, result in (("w2", DONE), ("w1", Result(Outcome.CANCELLED))):
        with pytest.raises(LeaseLostError):
            worker.finish(name, order, result)
    assert lease_order(worker).job_id == submitted[1]


def test_a_request_of_another_worker_with_the_same_id_gets_no_job(
    engine: sa.Engine, url: str, worker: Service, submitted: tuple[str, str]
) -> None:
    ask = {"worker_id": "w1", "request_id": "r-1"}
    assert httpx.post(f"{url}/v1/worker/leases", json=ask).json()["plan"]["job_id"] == submitted[0]
    other = httpx.post(f"{url}/v1/tables", json={"base_path": "/lake/others"}).json()["id"]
    waiting = httpx.post(f"{url}/v1/tables/{other}/jobs", json={"kind": "compaction"}).json()["id"]
    assert httpx.post(f"{url}/v1/worker/leases", json={**ask, "worker_id": "w2"}).status_code == 204
    assert httpx.post(f"{url}/v1/worker/leases", json={**ask, "request_id": "r" * 65}).status_code == 422
    assert job_of(engine, waiting).state is JobState.QUEUED
