"""Tests what decisions by outcome make of wrong or damaged facts: nothing starves, no decision alternates, and the
reason is shown."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from jobs.contract import JobKind
from jobs.kinds.results import Work
from service.catalog import decision_times
from service.db import schema
from service.db.engine import reading, writing
from service.lake.snapshot import PartitionState, Since, TableSnapshot
from service.lake.table import TableType
from service.outcome import objective_store, read_store
from service.outcome.reads import ReadSource
from service.policies import policy_registry
from service.queue import cost_store
from service.queue.cost import Ended
from service.queue.cost_store import Lessons
from service.queue.forecaster import Forecaster
from service.scheduling import scheduler
from service.scheduling.decision import Verdict
from tests.integration.control_plane.planning import Service, save_poll

if TYPE_CHECKING:
    import sqlalchemy as sa

    from tests.integration.control_plane.conftest import FakeClock

CLEANING, COMPACTION = JobKind.CLEANING, JobKind.COMPACTION
STEP = 1800
MIB = 2**20


@pytest.fixture
def service(engine: sa.Engine, clock: FakeClock) -> Service:
    return Service(engine, clock)


def forecaster() -> Forecaster:
    found = Forecaster()
    for number in range(5):
        found._lessons.model.learn(Ended(f"x{number}", "compaction", dry_run=False, seconds=60.0))
    return found


def read_by(service: Service, table_id: str, number: int) -> None:
    with writing(service.engine) as connection:
        read_store.count(connection, {table_id: number}, ReadSource.LINEAGE, service.clock())


@pytest.mark.mostly_sqlite
def test_wrong_lineage_starves_no_other_table(service: Service, clock: FakeClock) -> None:
    tables = [f"t{number}" for number in range(6)]
    costs = forecaster()
    for name in tables:
        service.register(name)
        # Five of the tables claim a million times a million reads; one slot has half of the time that is wanted.
        if name != tables[0]:
            read_by(service, name, 10**12)
    done: Counter[str] = Counter()
    logs = dict.fromkeys(tables, 0)
    for _ in range(60):
        for name in tables:
            logs[name] += 5
            service.poll(name, commits=logs[name])
        scheduler.run_once(service.database, service.config, costs)
        if job := service.lease():
            done[job.table_id] += 1
            logs[job.table_id] = 0
            service.end(job, log_files=20, log_bytes=2000)
        clock.advance(STEP)
    # More than a day has passed, after which the table that gains the least goes first.
    assert done[tables[0]] >= 1
    assert min(done[name] for name in tables[1:]) >= 8


@pytest.mark.mostly_sqlite
def test_a_burst_a_hundredfold_starts_one_job_after_the_other(service: Service, clock: FakeClock) -> None:
    service.register()
    policy_registry.put_table(service.engine, clock, "tbl_1", {"objective": {"read_overhead": 1.2}})
    started = 0
    for step in range(40):
        service.poll(commits=1 if step < 10 else 100)
        jobs = service.plan().jobs
        started += len(jobs)
        assert len(jobs) <= 1
        if job := service.lease():
            service.end(job, log_files=100, log_bytes=10_000)
        clock.advance(30)
    # The minimum interval holds, and a job at a time is active: no more than one a minute.
    assert 5 <= started <= 20
    decision = service.decision(COMPACTION)
    assert decision.because
    assert decision.verdict in (Verdict.RUN, Verdict.WAIT)


@pytest.mark.mostly_sqlite
@pytest.mark.parametrize(("reads", "least", "most"), [(10**12, 5, 20), (1, 0, 0)])
def test_lineage_that_lies_neither_starts_jobs_all_the_time_nor_stops_them_for_ever(
    service: Service, clock: FakeClock, reads: int, least: int, most: int
) -> None:
    service.register()
    policy_registry.put_table(service.engine, clock, "tbl_1", {"objective": {"least_worth": 1.0}})
    read_by(service, "tbl_1", reads)
    began, started = clock(), 0
    costs = forecaster()

    def poll() -> None:
        files = PartitionState("", base_files=1, base_bytes=1000 * MIB, log_files=9, log_bytes=1000 * MIB)
        snapshot = TableSnapshot("tbl_1", clock(), TableType.MERGE_ON_READ, (files,), last_commit_at=clock())
        with writing(service.engine) as connection:
            save_poll(connection, replace(snapshot, first_commit_at=began, since_compaction=Since(100)))

    for _ in range(40):
        poll()
        started += len(scheduler.run_once(service.database, service.config, costs).jobs)
        if job := service.lease():
            service.end(job, log_files=100, log_bytes=10_000)
        clock.advance(30)
    assert least <= started <= most
    decision = service.decision(COMPACTION)
    assert "readers have paid" in decision.because
    clock.advance(86_400)
    poll()
    assert len(scheduler.run_once(service.database, service.config, costs).jobs) == 1


@pytest.mark.mostly_sqlite
def test_a_clock_that_steps_holds_nothing_up_for_longer_than_the_step(service: Service, clock: FakeClock) -> None:
    service.register()
    service.poll(commits=8)
    service.plan()
    for step in (-6 * 3600, 12 * 3600, -3600, 2 * 86_400):
        clock.advance(step)
        service.poll(commits=8)
        with writing(service.engine) as connection:
            decision_times.wake(connection, "tbl_1", clock())
        service.plan()
        if job := service.lease():
            service.end(job, log_files=8, log_bytes=800)
        assert service.decision(COMPACTION).because
    clock.advance(2 * 3600)
    service.poll(commits=8)
    assert len(service.plan().jobs) == 1


@pytest.mark.mostly_sqlite
def test_a_damaged_row_of_the_cost_model_teaches_nothing(service: Service, clock: FakeClock) -> None:
    service.register()
    with writing(service.engine) as connection:
        for number in range(6):
            work = Work(1024**3, 10)
            cost_store.record(
                connection, Ended("tbl_1", "compaction", dry_run=False, seconds=20.0 + number, work=work), clock()
            )
        damaged = [
            {"seconds": float("inf")},
            {"seconds": -1e9},
            {"seconds": 1e300},
            {"gib": -4.0},
            {"work_bytes": -(2**62)},
            {"jobs_before": -(2**62), "jobs_beside": 0.0},
            {"jobs_before": 0, "jobs_beside": float("inf")},
            {"kind": "no-such-kind", "seconds": 1e300},
        ]
        row = {"ended_at": clock(), "table_id": "tbl_1", "kind": "compaction", "dry_run": False, "succeeded": True}
        sizes = {"seconds": 20.0, "gib": 1.0, "work_bytes": 1024**3, "work_files": 10}
        connection.execute(schema.attempt_costs.insert(), [{**row, **sizes, **each} for each in damaged])
    lessons = Lessons()
    with reading(service.engine) as connection:
        lessons.read_all(connection)
    cost = lessons.model.expected("tbl_1", "compaction", Work(1024**3, 10), dry_run=False)
    assert cost.seconds == pytest.approx(22.5, rel=0.2)
    assert 0 < cost.low <= cost.high < 100
    service.poll(commits=5)
    result = scheduler.run_once(service.database, service.config, Forecaster())
    assert len(result.jobs) == 1
    job = service.job(result.jobs[0])
    assert job.worth is not None
    assert (job.starts_by or clock()) <= clock() + timedelta(days=1)


@pytest.mark.mostly_sqlite
def test_reads_that_stop_while_a_job_waits_let_others_go_first_and_the_job_still_runs(
    service: Service, clock: FakeClock
) -> None:
    costs = forecaster()
    for name in ("tbl_1", "tbl_2"):
        service.register(name)
        read_by(service, name, 1000 if name == "tbl_1" else 10)
        service.poll(name, commits=5)
    scheduler.run_once(service.database, service.config, costs)
    policy_registry.put_table(service.engine, clock, "tbl_1", {"objective": {"read_overhead": 1.01}})
    with writing(service.engine) as connection:
        connection.execute(schema.table_reads.delete().where(schema.table_reads.c.table_id == "tbl_1"))
        read_store.count(connection, {"tbl_1": 1}, ReadSource.LINEAGE, clock() - timedelta(days=30))
    clock.advance(60)
    service.poll("tbl_1", commits=6)
    scheduler.run_once(service.database, service.config, costs)
    first, second = service.lease(), service.lease()
    assert first is not None
    assert second is not None
    assert [first.table_id, second.table_id] == ["tbl_2", "tbl_1"]
    assert second.reason


@pytest.mark.mostly_sqlite
def test_objectives_that_cannot_be_met_together_neither_spin_nor_starve(service: Service, clock: FakeClock) -> None:
    """No cleaning can free what the policy retains, logs may neither wait nor be compacted, and two tags overlap."""
    service.register(tags={"a": "", "b": ""})
    service.register("tbl_2")
    contradicting = {"read_overhead": 1.0001, "log_age_seconds": 60, "storage_overhead": 1.0001, "least_worth": 1e6}
    for pattern, settings in (("tag:a", contradicting), ("tag:b", {"max_gb_hours_per_day": 0.5})):
        policy_registry.put_pattern(
            service.engine, clock, pattern, precedence=0, settings={"objective": settings, "paused": False}
        )
    started: Counter[tuple[str, JobKind]] = Counter()
    began = clock()
    for step in range(48):
        since, files = Since(step + 1), PartitionState("", 1, 1, MIB, log_files=9, log_bytes=MIB)
        state = replace(files, freed_files=9, freed_bytes=9 * MIB)
        for name in ("tbl_1", "tbl_2"):
            found = TableSnapshot(name, clock(), TableType.MERGE_ON_READ, (state,), last_commit_at=clock())
            with writing(service.engine) as connection:
                save_poll(
                    connection, replace(found, first_commit_at=began, since_compaction=since, since_cleaning=since)
                )
        started.update((job.table_id, job.kind) for job in map(service.job, service.plan().jobs))
        while job := service.lease():
            result = (
                {"nothing_to_do": True, "files_deleted": 0}
                if job.kind is CLEANING
                else {"log_files": 1, "log_bytes": 1}
            )
            service.end(job, **result)
        for name in ("tbl_1", "tbl_2"):
            assert service.decision(COMPACTION, name).because
        clock.advance(STEP)
    # A day has passed: cleanings that free nothing start ever more seldom, and the other table has its turn.
    assert 1 <= started["tbl_1", CLEANING] <= 12, started
    assert started["tbl_1", COMPACTION] >= 24, started
    assert started["tbl_2", COMPACTION] >= 24, started
    assert service.decision(CLEANING).code == "gained-nothing"
    with reading(service.engine) as connection:
        [kept] = objective_store.missed(connection, clock()).values()
    assert "; all files have 5.50 times the size of those in use, 1.0001 allowed" in (kept.missed or "")
