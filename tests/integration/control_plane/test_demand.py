"""Tests the demand of each worker group: SQL counts it on each kind of database, and REST shows it to a scaler."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

import pytest
import sqlalchemy as sa

from jobs.contract import JobKind, WorkerInfo, WorkerState
from service.access.token import Role
from service.catalog import snapshot_store, table_store
from service.catalog.registration import Registration
from service.db.engine import reading, writing
from service.lake.snapshot import PartitionDetail, PartitionState, TableSnapshot
from service.lake.table import TableType
from service.queue import demand_store, job_store, lease_store
from service.queue.demand import Demand, Queued, demand
from service.queue.job import Job
from service.queue.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from fastapi.testclient import TestClient

AUDIT, CLEANING, COMPACTION = JobKind.AUDIT, JobKind.CLEANING, JobKind.COMPACTION
GROUPS_OF_MANY, MANY = 4, 3000


class Clock(Protocol):
    def __call__(self) -> datetime: ...
    def advance(self, seconds: float) -> None: ...


class Queue:
    def __init__(self, engine: sa.Engine, clock: Clock) -> None:
        self.engine, self.clock = engine, clock
        self._made = 0

    def register(self, table: str, *sizes: tuple[int, int]) -> None:
        """Registers a table with a partition for each pair of bytes in base files and in logs."""
        with writing(self.engine) as connection:
            now = self.clock()
            table_store.register(connection, Registration(table, f"/lake/{table}", table, now, now))
            states = [PartitionState(f"p{n}", base_bytes=base, log_bytes=log) for n, (base, log) in enumerate(sizes)]
            snapshot_store.save_partitions(connection, table, None, [PartitionDetail(state) for state in states])
            snapshot = TableSnapshot(table, now, TableType.MERGE_ON_READ)
            if sizes:
                snapshot_store.save(connection, snapshot_store.Stored(snapshot))

    def add(self, table: str, kind: JobKind, group: str = "default", **changes: Any) -> str:
        self._made += 1
        job = Job(f"job_{self._made:05}", table, kind, self.clock(), self.clock(), worker_group=group)
        with writing(self.engine) as connection:
            job_store.submit(connection, job.evolve(**changes))
        return job.id

    def lease(self, group: str = "default") -> None:
        with writing(self.engine) as connection:
            deadline = self.clock() + timedelta(minutes=1)
            assert lease_store.take(connection, worker_id="w1", group=group, now=self.clock(), deadline=deadline)

    def queued(self) -> dict[str, Queued]:
        with reading(self.engine) as connection:
            return demand_store.queued(connection, self.clock())

    def running(self) -> dict[str, int]:
        with reading(self.engine) as connection:
            return demand_store.running(connection)


@pytest.fixture
def queue(engine: sa.Engine, clock: Clock) -> Queue:
    return Queue(engine, clock)


def test_an_empty_queue_demands_nothing(queue: Queue) -> None:
    assert (queue.queued(), queue.running()) == ({}, {})


def test_each_group_has_its_jobs_and_the_bytes_of_their_tables_once(queue: Queue, clock: Clock) -> None:
    # The size does not fit into an integer of 32 bits.
    queue.register("orders", (3 * 2**31, 7), (1000, 0))
    queue.register("trips", (500, 50))
    queue.register("unseen")
    first = clock()
    queue.add("orders", COMPACTION, "large")
    clock.advance(60)
    # Only one of these two runs at a time.
    queue.add("orders", CLEANING, "large")
    queue.add("trips", COMPACTION)
    # Audits and dry runs may run beside any job.
    queue.add("trips", AUDIT)
    queue.add("trips", CLEANING, dry_run=True)
    queue.add("unseen", AUDIT)
    assert queue.queued() == {
        "large": Queued(jobs=2, startable=1, bytes=3 * 2**31 + 1007, oldest=first),
        "default": Queued(jobs=4, startable=4, bytes=550, oldest=clock()),
    }


def test_jobs_that_nothing_can_start_are_only_counted(queue: Queue, clock: Clock) -> None:
    queue.register("orders", (1000, 0))
    queue.register("trips", (500, 0))
    queue.add("orders", COMPACTION)
    queue.lease()
    queue.add("orders", CLEANING)
    queue.add("trips", COMPACTION, not_before=clock() + timedelta(seconds=30))
    waiting = queue.add("trips", CLEANING)
    with writing(queue.engine) as connection:
        connection.execute(sa.text("UPDATE jobs SET waits_for_writers = true WHERE id = :id"), {"id": waiting})
    assert queue.queued() == {"default": Queued(jobs=3)}
    assert queue.running() == {"default": 1}
    clock.advance(30)
    assert queue.queued() == {"default": Queued(jobs=3, startable=1, bytes=500, oldest=clock())}


def test_a_long_queue_is_counted_quickly(queue: Queue, clock: Clock) -> None:
    for number in range(GROUPS_OF_MANY):
        queue.register(f"orders{number}", *[(10, 1)] * 50)
    now = clock()
    with writing(queue.engine) as connection:
        for number in range(MANY):
            group = number % GROUPS_OF_MANY
            job = Job(f"job_{number:05}", f"orders{group}", AUDIT, now, now, dry_run=True, worker_group=f"g{group}")
            job_store.submit(connection, job)
    started = time.perf_counter()
    found = queue.queued()
    seconds = time.perf_counter() - started
    assert found == {
        f"g{n}": Queued(jobs=MANY // GROUPS_OF_MANY, startable=MANY // GROUPS_OF_MANY, bytes=550, oldest=now)
        for n in range(GROUPS_OF_MANY)
    }
    assert seconds < 5


def test_workers_count_if_they_live_and_are_ready(clock: Clock) -> None:
    now = clock()

    def worker(name: str, seen_seconds_ago: float = 1, **info: Any) -> Worker:
        return Worker(name, WorkerInfo(**info), now, now - timedelta(seconds=seen_seconds_ago))

    workers = [
        worker("w1", slots=3, state=WorkerState.READY),
        worker("w2"),
        worker("w3", slots=9, state=WorkerState.WAITS_FOR_EXECUTORS),
        worker("w4", slots=9, seen_seconds_ago=61),
        worker("w5", slots=2, group="large"),
    ]
    queued = {"default": Queued(7, 5, 100, now - timedelta(seconds=90))}
    found = demand(queued, {"default": 2}, workers, groups=["asked"], now=now)
    assert found == {
        "asked": Demand(),
        "default": Demand(
            queued=7, startable=5, bytes=100, oldest_seconds=90.0, running=2, workers=2, waiting_workers=1, slots=4
        ),
        "large": Demand(workers=1, slots=2),
    }


def test_a_scaler_finds_its_number_by_a_path_also_when_there_is_nothing_to_do(
    client: TestClient, table_id: str, clock: Clock, make_token: Callable[[Role], dict[str, str]]
) -> None:
    idle = client.get("/v1/workers/demand", params={"group": "large"}).json()["groups"]
    assert sorted(idle) == ["default", "large"]
    # All numbers of a group without jobs and workers are 0, except the goal.
    assert {name: value for name, value in idle["large"].items() if value} == {
        "goal_seconds": 300.0,
        "forecast": "nothing queued",
    }
    client.put(f"/v1/tables/{table_id}/policy", json={"worker_group": "large"})
    client.post(f"/v1/tables/{table_id}/jobs", json={"kind": "audit"})
    client.post(f"/v1/tables/{table_id}/jobs", json={"kind": "compaction"})
    clock.advance(5)
    client.post("/v1/worker/leases", json={"worker_id": "w1", "worker": {"group": "large", "slots": 4}})
    found = client.get("/v1/workers/demand").json()["groups"]["large"]
    assert found == {
        "queued": 1,
        "startable": 1,
        "bytes": 0,
        "oldest_seconds": 5.0,
        "running": 1,
        # The expected duration of each job is half a minute, so the second one would not wait for long.
        "wanted_slots": 1,
        "slots": 4,
        "workers": 1,
        "waiting_workers": 0,
        "goal_seconds": 300.0,
        "work_seconds": 30.0,
        "wait_seconds": 0.0,
        "done_seconds": 30.0,
        "held_back": 0,
        "guesses": 1,
        "forecast": "1 queued, about 30 s with 4 slots; a guess",
    }
    assert client.get("/v1/workers/demand", params={"group": "a b"}).status_code == 422
    for role, status in {Role.READER: 200, Role.WORKER: 403}.items():
        assert client.get("/v1/workers/demand", headers=make_token(role)).status_code == status
