"""Tests the order in which workers get jobs: priorities, and fairness over tables, with real SQL under load."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

import pytest

from jobs.contract import DEFAULT_GROUP, JobKind
from service.catalog import table_store
from service.catalog.registration import Registration
from service.db.engine import writing
from service.queue import job_store, lease_store
from service.queue.job import AttemptOutcome, Job, JobState

if TYPE_CHECKING:
    import sqlalchemy as sa


class Clock(Protocol):
    def __call__(self) -> datetime: ...
    def advance(self, seconds: float) -> None: ...


class Queue:
    def __init__(self, engine: sa.Engine, clock: Clock) -> None:
        self.engine = engine
        self.clock = clock
        self._made = 0

    def register(self, *names: str) -> None:
        with writing(self.engine) as connection:
            for name in names:
                now = self.clock()
                table_store.register(connection, Registration(name, f"/lake/{name}", name, now, now))

    def add(
        self,
        table_id: str,
        *,
        priority: int = 0,
        number: int = 1,
        group: str = DEFAULT_GROUP,
        reason: str | None = None,
    ) -> None:
        """Queues dry runs, of which a table may have many at once."""
        with writing(self.engine) as connection:
            for _ in range(number):
                self._made += 1
                self.clock.advance(0.001)
                now = self.clock()
                job = Job(f"job_{self._made:05}", table_id, JobKind.COMPACTION, now, now, dry_run=True)
                job_store.submit(connection, job.evolve(priority=priority, worker_group=group, reason=reason))

    def take(self, worker: str = "w1", group: str = DEFAULT_GROUP, *, only_submitted: bool = False) -> Job | None:
        now = self.clock()
        lease = {"worker_id": worker, "group": group, "now": now, "deadline": now + timedelta(seconds=30)}
        with writing(self.engine) as connection:
            return lease_store.take(connection, **lease, only_submitted=only_submitted)  # type: ignore[arg-type]

    def finish(self, job: Job) -> None:
        with writing(self.engine) as connection:
            lease_store.end(
                connection,
                lease_store.job_of_lease(connection, job.id, job.attempt),
                state=JobState.SUCCEEDED,
                outcome=AttemptOutcome.SUCCEEDED,
                error=None,
                result=None,
                instants=(),
                now=self.clock(),
            )

    def order(self, number: int) -> list[str]:
        """Returns the tables of the next jobs, each of which is leased and ended before the next one."""
        taken = []
        for _ in range(number):
            self.clock.advance(1)
            job = self.take()
            if job:
                self.finish(job)
                taken.append(job.table_id)
        return taken


@pytest.fixture
def queue(engine: sa.Engine, clock: Clock) -> Queue:
    queue = Queue(engine, clock)
    queue.register("a", "b", "c")
    return queue


def test_tables_take_turns_however_many_jobs_one_of_them_has(queue: Queue) -> None:
    queue.add("a", number=5)
    queue.add("b", number=2)
    queue.add("c", number=1)
    assert queue.order(8) == ["a", "b", "c", "a", "b", "a", "a", "a"]


def test_a_table_that_comes_back_waits_for_the_others(queue: Queue) -> None:
    queue.add("a", number=3)
    assert queue.order(1) == ["a"]
    queue.add("b")
    queue.add("c")
    assert queue.order(3) == ["b", "c", "a"]


def test_a_higher_priority_goes_first_and_equal_ones_take_turns(queue: Queue) -> None:
    queue.add("a", number=2)
    queue.add("b", priority=5, number=2)
    queue.add("c", priority=5, number=1)
    queue.add("a", priority=-5)
    assert queue.order(6) == ["b", "c", "b", "a", "a", "a"]


def test_workers_get_the_jobs_of_their_group_only(queue: Queue) -> None:
    queue.add("a", priority=9, group="large")
    queue.add("b")
    assert queue.order(2) == ["b"]
    taken = queue.take("w2", "large")
    assert taken is not None
    assert taken.table_id == "a"


def test_under_load_every_table_gets_its_share(queue: Queue) -> None:
    """One table has more jobs than all others together; several workers lease concurrently."""
    names = [f"t{number:02}" for number in range(20)]
    queue.register("hot", *names)
    queue.add("hot", number=100)
    for name in names:
        queue.add(name, number=2)
    first: Counter[str] = Counter()
    with ThreadPoolExecutor(4) as pool:
        for _ in range(12):
            queue.clock.advance(1)
            taken = [job for job in pool.map(queue.take, ["w1", "w2", "w3", "w4"]) if job]
            assert len({job.id for job in taken}) == 4
            first.update(job.table_id for job in taken)
            for job in taken:
                queue.finish(job)
    # Within 48 leases each of the 21 tables gets two, and "hot" gets eight more; but four simultaneous leases may see
    # the same order.
    assert all(1 <= first[name] <= 2 for name in names), first
    assert 8 <= first["hot"] <= 12, first


def test_a_spare_slot_gets_what_somebody_has_submitted_whatever_the_priority_of_others(
    engine: sa.Engine, clock: Clock
) -> None:
    queue = Queue(engine, clock)
    queue.register("a", "b")
    queue.add("a", priority=5, reason="12 log files")
    assert queue.take(only_submitted=True) is None
    queue.add("b")
    taken = queue.take(only_submitted=True)
    assert taken is not None
    assert taken.table_id == "b"
    assert queue.take(only_submitted=True) is None
    assert queue.take() is not None
