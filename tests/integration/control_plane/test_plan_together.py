"""Tests many tables and several concurrent planners: no job starts twice, limits hold, and each table gets jobs."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier
from typing import TYPE_CHECKING

import pytest

from service.db.engine import reading
from service.model.job_errors import JobConflictError
from service.policies import policy_registry
from service.policies import store as store_policies
from service.queue import job_store
from service.scheduling import decision_store
from service.scheduling.scheduler import SchedulerConfig, SchedulerResult
from tests.integration.control_plane.planning import CLEANING, COMPACTION, Service, submit_job

if TYPE_CHECKING:
    import sqlalchemy as sa

    from tests.integration.control_plane.conftest import FakeClock


@pytest.mark.parametrize("planners", [2, 4])
def test_planners_that_decide_at_once_start_no_job_twice(engine: sa.Engine, clock: FakeClock, planners: int) -> None:
    service = Service(engine, clock, active=9, at_once=100)
    names = [f"tbl_{number}" for number in range(12)]
    for name in names:
        service.register(name)
        service.poll(name, commits=5, freed=1, since_cleaning=10)
    together = Barrier(planners)

    def run(_: int) -> SchedulerResult:
        together.wait()
        return service.plan()

    with ThreadPoolExecutor(planners) as pool:
        done = list(pool.map(run, range(planners)))
    started = [job_id for planned in done for job_id in planned.jobs]
    assert sum(planned.tables for planned in done) == len(names)
    # One planner decides about each table, and the service's limit holds for all planners together.
    assert len(started) == len(set(started)) == 9
    assert max(Counter(service.job(job_id).table_id for job_id in started).values()) == 1


def test_a_planner_and_a_caller_at_once_start_no_job_twice(engine: sa.Engine, clock: FakeClock) -> None:
    service = Service(engine, clock)
    names = [f"tbl_{number}" for number in range(10)]
    for name in names:
        service.register(name)
        service.poll(name, commits=5)
    together = Barrier(2)

    def post() -> None:
        together.wait()
        for name in reversed(names):
            with suppress(JobConflictError):
                submit_job(service, COMPACTION, name)

    def decide() -> None:
        together.wait()
        service.plan()

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(post), pool.submit(decide)]:
            future.result()
    with reading(engine) as connection:
        assert [len(job_store.active(connection, name)) for name in names] == [1] * len(names)


@pytest.mark.mostly_sqlite
def test_after_a_downtime_jobs_start_a_few_at_a_time_and_every_table_is_served(
    engine: sa.Engine, clock: FakeClock
) -> None:
    """Forty tables are due at once, and one of them is due again after each decision."""
    service = Service(engine, clock, active=6, at_once=4)
    names = [f"tbl_{number}" for number in range(40)]
    for name in names:
        service.register(name)
        policy_registry.put_table(engine, clock, name, {"compaction": {"min_interval_seconds": 0}})
        service.poll(name, commits=5)
    served: Counter[str] = Counter()
    rounds = 0
    while len(served) < len(names):
        rounds += 1
        assert rounds < 40, f"not served: {sorted(set(names) - set(served))}"
        started = service.plan().jobs
        assert len(started) <= 4
        with reading(engine) as connection:
            assert job_store.count_active(connection).total() <= 6
        clock.advance(1)
        for _ in range(2):
            job = service.run()
            served[job.table_id] += 1
            clock.advance(1)
            service.poll(job.table_id, commits=5 if job.table_id == "tbl_0" else 0)
    assert served["tbl_0"] <= 4


def test_tables_are_decided_about_in_the_order_in_which_they_became_due(engine: sa.Engine, clock: FakeClock) -> None:
    """Three tables are decided about at a time, two of which are due again after each decision."""
    service = Service(engine, clock)
    service.config = SchedulerConfig(tables_at_once=3)
    for name in ("a_hot", "z_hot"):
        service.register(name)
        service.poll(name)
    names = [f"t{number}" for number in range(9)]
    for name in names:
        service.register(name)
        clock.advance(1)
        service.poll(name)
    for _ in range(4):
        assert service.plan().tables == 3
        clock.advance(1)
        for name in ("a_hot", "z_hot"):
            service.poll(name)
    with reading(engine) as connection:
        assert all(decision_store.latest(connection, name) for name in names)


def test_a_round_that_has_used_its_time_leaves_the_other_tables_to_the_next(
    engine: sa.Engine, clock: FakeClock
) -> None:
    service = Service(engine, clock)
    service.config = SchedulerConfig(seconds_at_once=0.0)
    for name in ("a", "b", "c"):
        service.register(name)
        service.poll(name)
    assert [service.plan().tables for _ in range(4)] == [1, 1, 1, 0]


def test_tables_of_a_full_worker_group_wait_and_the_others_do_not(engine: sa.Engine, clock: FakeClock) -> None:
    service = Service(engine, clock, per_group={"large": 1})
    for name in ("big_1", "big_2", "small"):
        service.register(name)
        service.poll(name, commits=5)
        clock.advance(1)
    policy_registry.put_pattern(engine, clock, "big_*", precedence=0, settings={"worker_group": "large"})
    assert len(service.plan().jobs) == 2
    waiting = service.decision(table_id="big_2")
    assert waiting.code == "group-limit-reached"
    assert waiting.because.endswith("but 1 job active in worker group 'large', 1 allowed")
    assert service.run().table_id == "small"
    # The job belonged to another group, so no decision is repeated.
    assert service.plan().jobs == ()
    assert service.decision(table_id="big_2").count == waiting.count
    large = service.lease("large")
    assert large is not None
    service.end(large)
    [next_one] = service.plan().jobs
    assert (service.job(next_one).table_id, service.job(next_one).worker_group) == ("big_2", "large")


def test_a_table_that_waits_for_a_free_place_keeps_its_turn(engine: sa.Engine, clock: FakeClock) -> None:
    service = Service(engine, clock, active=1)
    for name in ("first", "second", "third"):
        service.register(name)
        service.poll(name, commits=5)
        clock.advance(1)
    order = []
    for number in range(3):
        [job_id] = service.plan().jobs
        order.append(service.job(job_id).table_id)
        clock.advance(1)
        # Later tables do not overtake the table, and another poll of it changes nothing.
        service.poll("third", commits=6)
        service.plan()
        service.run()
        clock.advance(1)
        service.register(f"late_{number}")
        service.poll(f"late_{number}", commits=5)
    assert order == ["first", "second", "third"]


def test_tables_that_wait_for_one_kind_do_not_block_those_that_wait_for_any(
    engine: sa.Engine, clock: FakeClock
) -> None:
    """Two jobs may be active, one of them a cleaning. The cleanings waited first."""
    service = Service(engine, clock, active=2, per_kind={CLEANING: 1})
    for name, look in [
        ("clean_1", {"freed": 1, "since_cleaning": 10}),
        ("clean_2", {"freed": 1, "since_cleaning": 10}),
        ("compact_1", {"commits": 5}),
        ("compact_2", {"commits": 5}),
    ]:
        service.register(name)
        service.poll(name, **look)
        clock.advance(1)

    def started_tables() -> list[str]:
        return [service.job(job_id).table_id for job_id in service.plan().jobs]

    assert started_tables() == ["clean_1", "compact_1"]
    leased = {job.kind: job for job in (service.lease(), service.lease()) if job}
    clock.advance(1)
    service.end(leased[COMPACTION])
    assert started_tables() == ["compact_2"]
    clock.advance(1)
    service.end(leased[CLEANING])
    assert started_tables() == ["clean_2"]


def test_two_concurrent_calls_that_set_the_same_new_policy_are_serialized(engine: sa.Engine, clock: FakeClock) -> None:
    together = Barrier(4)

    def put(priority: int) -> None:
        together.wait()
        for pattern in ("a*", "b*", "c*"):
            policy_registry.put_pattern(engine, clock, pattern, precedence=0, settings={"priority": priority})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(put, range(4)))
    with reading(engine) as connection:
        assert [each.pattern for each in store_policies.every(connection)] == ["a*", "b*", "c*"]
