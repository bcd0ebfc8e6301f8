"""Compares the forecast of the queue with the real leases, with known durations."""

from __future__ import annotations

import heapq
import time
from collections import Counter
from datetime import datetime, timedelta
from datetime import time as moment
from itertools import product
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from jobs.contract import JobKind, Outcome, Result, WorkerInfo, WorkerState
from jobs.kinds.results import KindResult
from service.catalog import table_store
from service.catalog.registration import Registration
from service.db.engine import writing
from service.policies.policy import Pause, Policy, Window
from service.queue import attempt_figures, held_back_store, job_store, lease_store, worker_store
from service.queue.attempt_delays import standstill
from service.queue.cost import Basis, Ended
from service.queue.cost_store import Lessons
from service.queue.forecaster import Forecaster
from service.queue.job import AttemptOutcome, Job, JobState
from service.queue.outlook import Goals, HeldBack, Outlook, outlook
from service.queue.outlook_store import QueuedRow
from service.queue.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Sequence

    import sqlalchemy as sa
    from fastapi.testclient import TestClient

AUDIT, CLEANING, COMPACTION = JobKind.AUDIT, JobKind.CLEANING, JobKind.COMPACTION
KINDS = (COMPACTION, CLEANING, AUDIT)


class Clock(Protocol):
    now: datetime

    def __call__(self) -> datetime: ...
    def advance(self, seconds: float) -> None: ...


class Fleet:
    """Tables whose jobs have known durations, and a worker that leases, runs and ends them by the queue's own code."""

    def __init__(self, engine: sa.Engine, clock: Clock) -> None:
        self.engine, self.clock, self.rng = engine, clock, Random(34)
        self.forecaster = Forecaster()
        self.took: dict[tuple[str, JobKind], float] = {}
        self.slots, self.spare = 1, 0
        self._made = 0
        self._running: list[tuple[datetime, str, Job]] = []
        self._due: list[datetime] = []

    def register(self, *names: str) -> None:
        with writing(self.engine) as connection:
            for name in names:
                now = self.clock()
                table_store.register(connection, Registration(name, f"/lake/{name}", name, now, now))
                for kind in KINDS:
                    self.took[name, kind] = 2 + self.rng.expovariate(1 / 20)

    def add_all(self, tables: Sequence[str], *kinds: JobKind) -> None:
        with writing(self.engine) as connection:
            for number, (table, kind) in enumerate(product(tables, kinds)):
                job = Job(f"job_{self._made:05}_{number}", table, kind, self.clock(), self.clock())
                job_store.submit(connection, job)

    def add(self, table: str, kind: JobKind, **changes: Any) -> str:
        self._made += 1
        job = Job(f"job_{self._made:05}", table, kind, self.clock(), self.clock(), worker_group="default")
        with writing(self.engine) as connection:
            job_store.submit(connection, job.evolve(**changes))
            heapq.heappush(self._due, changes.get("not_before", self.clock()))
        return job.id

    def announce(self, slots: int) -> None:
        info = WorkerInfo(slots=slots, spare_slots=self.spare, state=WorkerState.READY)
        with writing(self.engine) as connection:
            worker_store.announce(connection, "w1", info, self.clock())

    def take(self, *, only_submitted: bool = False) -> Job | None:
        now = self.clock()
        lease = {"worker_id": "w1", "group": "default", "now": now, "deadline": now + timedelta(days=1)}
        with writing(self.engine) as connection:
            return lease_store.take(connection, **lease, only_submitted=only_submitted)  # type: ignore[arg-type]

    def _take_next(self) -> Job | None:
        """Takes a job as the threads of a worker do."""
        if len(self._running) >= self.slots + self.spare:
            return None
        own = sum(job.reason is not None for _, _, job in self._running)
        return self.take(only_submitted=own >= self.slots)

    def end(self, job: Job) -> None:
        with writing(self.engine) as connection:
            done = {"state": JobState.SUCCEEDED, "outcome": AttemptOutcome.SUCCEEDED}
            lease_store.end(connection, job, **done, error=None, result={}, instants=(), now=self.clock())  # type: ignore[arg-type]
            attempt_figures.record(connection, job, AttemptOutcome.SUCCEEDED, KindResult(), self.clock())

    def run(self, *, until: datetime | None = None) -> dict[str, datetime]:
        """Runs the queue with `slots` until it is empty, or until a time, and returns when each job was leased."""
        started: dict[str, datetime] = {}
        while until is None or self.clock() < until:
            while job := self._take_next():
                started[job.id] = self.clock()
                seconds = self.took[job.table_id, job.kind] * self.rng.uniform(0.95, 1.05)
                heapq.heappush(self._running, (self.clock() + timedelta(seconds=seconds), job.id, job))
            # The clock also stops when a job becomes due while a slot is free.
            times = [*self._due[:1], *([self._running[0][0]] if self._running else [])]
            if not times:
                break
            self.clock.now = max(self.clock.now, min([*times, *([until] if until else [])]))
            while self._due and self._due[0] <= self.clock():
                heapq.heappop(self._due)
            while self._running and self._running[0][0] <= self.clock():
                self.end(heapq.heappop(self._running)[2])
        return started

    def outlook(self, *job_ids: str) -> Outlook:
        self.announce(self.slots)
        return self.forecaster.outlook(self.engine, self.clock, job_ids)


@pytest.fixture
def fleet(engine: sa.Engine, clock: Clock) -> Fleet:
    return Fleet(engine, clock)


@pytest.mark.mostly_sqlite
@pytest.mark.parametrize(("slots", "spare"), [(1, 0), (4, 0), (2, 1)])
def test_the_real_leases_come_as_forecast(fleet: Fleet, clock: Clock, slots: int, spare: int) -> None:
    tables = [f"t{number:02}" for number in range(31)]
    fleet.register(*tables)
    fleet.slots, fleet.spare = slots, spare
    fleet.add_all(tables, *KINDS)
    fleet.run()
    # Many tables have several jobs, some of which exclude each other; the jobs have priorities, and some are due later.
    ids = []
    for number in range(75):
        table, kind = tables[number * 7 % 31], KINDS[number % 3]
        later = timedelta(seconds=90 if number % 11 == 0 else 0)
        # A policy has started half of them.
        reason = "12 log files" if number % 2 else None
        ids.append(fleet.add(table, kind, priority=number % 5 == 0, not_before=clock() + later, reason=reason))
        clock.advance(0.1)
    # Some jobs are running at the time of the forecast.
    begun = fleet.run(until=clock() + timedelta(seconds=30))
    told = fleet.outlook()
    asked = told.as_of
    assert asked == clock()
    real = fleet.run()
    assert {*begun, *real} == {*ids}
    assert len(real) > 60
    length = max((at - asked).total_seconds() for at in real.values())
    misses = []
    for job_id, at in real.items():
        expected, found = told.jobs[job_id].start, (at - asked).total_seconds()
        assert expected is not None
        misses.append(abs(expected - found) / length)
    # The error is less than a tenth of the queue's length for nearly all jobs, and much less for most of them. Two
    # tables may change places in the queue if both used slots for equally long.
    assert sum(miss > 0.1 for miss in misses) <= 2
    assert sorted(misses)[len(misses) // 2] < 0.02
    group = told.group("default")
    assert group.done_seconds == pytest.approx((clock() - asked).total_seconds(), rel=0.2)
    assert group.summary.startswith(f"{len(real)} queued, about ")
    assert f"with {slots} slot" in group.summary
    assert group.guesses == 0


def test_the_wanted_number_of_slots_meets_the_goal(fleet: Fleet, clock: Clock) -> None:
    tables = [f"t{number:02}" for number in range(30)]
    fleet.register(*tables)
    fleet.add_all(tables, AUDIT)
    fleet.run()
    work = sum(fleet.took[table, AUDIT] for table in tables)
    goal = work / 6
    fleet.forecaster = Forecaster(Goals(3600.0, {"default": goal}))
    for table in tables:
        fleet.add(table, AUDIT)
    wanted = fleet.outlook().group("default").wanted_slots
    # The goal is a sixth of the work. Six slots start the last job a little earlier than that, so six meet the goal.
    assert 4 <= wanted <= 6
    asked, fleet.slots = clock(), wanted
    waits = [(at - asked).total_seconds() for at in fleet.run().values()]
    assert max(waits) < 1.2 * goal


def test_jobs_are_counted_by_what_holds_them_back(fleet: Fleet, clock: Clock) -> None:
    fleet.register("a", "b", "c", "d", "e")
    due = fleet.add("a", AUDIT)
    again = fleet.add("b", AUDIT, not_before=clock() + timedelta(seconds=300))
    writers = fleet.add("c", COMPACTION, waits_for_writers=True)
    paused, windowed = fleet.add("d", AUDIT), fleet.add("e", AUDIT)
    policy = Policy(windows=(Window(moment(3), moment(4)),))
    with writing(fleet.engine) as connection:
        for job_id, held in (
            (paused, standstill(Pause(clock(), "anna", ""), Policy(), clock())),
            (windowed, standstill(None, policy, clock())),
        ):
            assert held is not None
            held_back_store.hold(connection, job_id, until=held.until, because=held.because)
    told = fleet.outlook()
    assert (told.jobs[paused].held_back, told.jobs[paused].start) == (HeldBack.PAUSE, None)
    assert (told.jobs[windowed].held_back, told.jobs[windowed].start) == (HeldBack.WINDOW, None)
    assert told.jobs[due].held_back is None
    assert (told.jobs[again].held_back, told.jobs[again].start) == (HeldBack.NEXT_ATTEMPT, 300.0)
    assert (told.jobs[writers].held_back, told.jobs[writers].start) == (HeldBack.WRITERS, None)
    assert told.group("default").summary == (
        "5 queued, about 30 s with 1 slot; 4 held back (1 until a next attempt, 1 until the writers stop,"
        " 1 until a pause ends, 1 until a window opens); a guess"
    )
    # The forecast guesses unknown durations, and marks them as guesses.
    assert told.jobs[due].cost.basis is Basis.DEFAULT
    assert told.jobs[due].text == (
        "starts now, and takes about 30 s (a guess: no such job of this table has ended yet)"
    )


def test_without_a_worker_the_forecast_has_only_the_amount_of_work(fleet: Fleet) -> None:
    fleet.register("a", "b")
    job = fleet.add("a", AUDIT)
    fleet.add("b", AUDIT)
    told = fleet.forecaster.outlook(fleet.engine, fleet.clock)
    assert (told.jobs[job].start, told.jobs[job].end) == (None, None)
    assert told.group("default").summary == "2 queued, about 1 min of work, no worker is ready; a guess"
    assert told.group("default").wanted_slots == 1


def test_a_queue_of_ten_thousand_jobs_is_forecast_quickly(clock: Clock) -> None:
    now, rng = clock(), Random(1)
    lessons = Lessons()
    for number in range(5000):
        lessons.model.learn(Ended(f"t{number}", "compaction", dry_run=False, seconds=20 * rng.random()))
    queued = [
        QueuedRow(
            id=f"job_{number:05}",
            table_id=f"t{number % 6000}",
            kind="compaction",
            dry_run=False,
            mutating=True,
            worker_group="default",
            priority=rng.choice([0, 0, 5]),
            created_at=now - timedelta(seconds=1000 * rng.random()),
            not_before=now,
            waits_for_writers=False,
        )
        for number in range(10_000)
    ]
    workers = [Worker("w1", WorkerInfo(slots=8), now, now)]
    began = time.thread_time()
    told = outlook(
        queued, [], {}, workers, lessons.of_rows(queued, []), numbers={"default": 10_000}, goals=Goals(), now=now
    )
    seconds = time.thread_time() - began
    assert Counter(each.start is None for each in told.jobs.values()) == {False: 10_000}
    # 0.12 s on a quiet machine.
    assert seconds < 1


def test_the_api_shows_the_forecast_of_each_job_and_group(client: TestClient, table_id: str, clock: Clock) -> None:
    announced = {"worker_id": "w1", "worker": {"group": "default", "slots": 1, "state": "ready"}}
    client.post("/v1/worker/leases", json=announced)
    first = client.post(f"/v1/tables/{table_id}/jobs", json={"kind": "audit"}).json()
    clock.advance(1)
    second = client.post(f"/v1/tables/{table_id}/jobs", json={"kind": "compaction"}).json()
    assert second["forecast"]["learned_from"] == "default"
    assert second["forecast"]["is_guess"] is True
    assert datetime.fromisoformat(second["forecast"]["starts_at"]) - clock() == timedelta(seconds=30)
    lease = client.post("/v1/worker/leases", json=announced).json()
    assert lease["plan"]["job_id"] == first["id"]
    clock.advance(12)
    running = client.get(f"/v1/jobs/{first['id']}").json()["forecast"]
    assert running["starts_at"] is None
    assert datetime.fromisoformat(running["ends_at"]) - clock() == timedelta(seconds=18)
    assert running["text"].startswith("ends in about 18 s")
    listed = {job["id"]: job["forecast"] for job in client.get("/v1/jobs").json()["items"]}
    assert datetime.fromisoformat(listed[second["id"]]["starts_at"]) - clock() == timedelta(seconds=18)
    told = "1 queued, about 48 s with 1 slot; a guess"
    assert client.get("/v1/workers/demand").json()["groups"]["default"]["forecast"] == told
    metrics = client.get("/metrics").text
    assert 'groundskeeper_queue_expected_wait_seconds{group="default"} 18.0' in metrics
    assert 'groundskeeper_queue_expected_work_seconds{group="default"} 30.0' in metrics
    assert 'groundskeeper_worker_slots_wanted{group="default"} 1.0' in metrics
    assert client.get("/v1/overview").json()["jobs"]["forecast"] == {"default": told}
    report = {"attempt": 1, "result": Result(Outcome.SUCCEEDED).to_json()}
    assert client.post(f"/v1/worker/leases/{first['id']}/result", json=report).status_code == 200
    assert client.get(f"/v1/jobs/{first['id']}").json()["forecast"] is None
