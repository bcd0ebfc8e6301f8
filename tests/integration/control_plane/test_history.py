"""The service deletes old history, but nothing that is still active."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from jobs.contract import DEFAULT_GROUP, JobKind, WorkerInfo
from service.db.engine import reading, writing
from service.db.page import PageRequest
from service.queue import job_store, lease_store, worker_store
from service.queue.job import AttemptOutcome, Job, JobState
from service.runtime import retention
from service.scheduling import decision_store
from service.scheduling.decision import Decision, Verdict

if TYPE_CHECKING:
    import sqlalchemy as sa

    from service.catalog.registration import Registration

MONTH = timedelta(days=30)
KEEP = retention.Keep(history=MONTH, commits=MONTH, events=MONTH)


class Clock(Protocol):
    def __call__(self) -> datetime: ...
    def advance(self, seconds: float) -> None: ...


def a_job(engine: sa.Engine, clock: Clock, job_id: str, **changes: Any) -> Job:
    job = Job(job_id, "tbl_1", JobKind.AUDIT, clock(), clock(), dry_run=True).evolve(**changes)
    with writing(engine) as connection:
        return job_store.submit(connection, job)


def run(engine: sa.Engine, clock: Clock) -> None:
    with writing(engine) as connection:
        job = lease_store.take(connection, worker_id="w1", group=DEFAULT_GROUP, now=clock(), deadline=clock())
        assert job is not None
        lease_store.end(
            connection,
            job,
            state=JobState.SUCCEEDED,
            outcome=AttemptOutcome.SUCCEEDED,
            error=None,
            result=None,
            instants=(),
            now=clock(),
        )


def ids(engine: sa.Engine) -> set[str]:
    with reading(engine) as connection:
        return {job.id for job in job_store.page(connection, PageRequest(500)).items}


def test_ended_jobs_go_with_their_attempts_and_active_ones_stay(
    engine: sa.Engine, a_table: Registration, clock: Clock
) -> None:
    a_job(engine, clock, "old")
    run(engine, clock)
    a_job(engine, clock, "waits", not_before=clock() + timedelta(days=400))
    clock.advance(MONTH.total_seconds())
    a_job(engine, clock, "young")
    run(engine, clock)
    assert retention.run_once(engine, clock, KEEP) == {}
    clock.advance(1)
    assert retention.run_once(engine, clock, KEEP) == {"jobs": 1}
    assert ids(engine) == {"waits", "young"}
    with reading(engine) as connection:
        assert job_store.attempts(connection, "old") == []
        assert len(job_store.attempts(connection, "young")) == 1
    clock.advance(300 * 86_400)
    retention.run_once(engine, clock, KEEP)
    assert ids(engine) == {"waits"}


def test_many_old_rows_are_deleted_in_several_steps(engine: sa.Engine, a_table: Registration, clock: Clock) -> None:
    for number in range(1100):
        with writing(engine) as connection:
            decision = Decision(JobKind.CLEANING, Verdict.RUN, "due", f"the {number}th", clock(), clock())
            decision_store.record(connection, "tbl_1", [decision], {})
    clock.advance(MONTH.total_seconds() + 1)
    assert retention.run_once(engine, clock, KEEP) == {"decisions": 1100}
    assert retention.run_once(engine, clock, KEEP) == {}


def test_a_decision_that_is_still_current_is_kept(engine: sa.Engine, a_table: Registration, clock: Clock) -> None:
    first = Decision(JobKind.CLEANING, Verdict.SKIP, "off", "cleaning is switched off", clock(), clock())
    with writing(engine) as connection:
        decision_store.record(connection, "tbl_1", [first], {})
    clock.advance(MONTH.total_seconds() + 1)
    with writing(engine) as connection:
        again = Decision(JobKind.CLEANING, Verdict.SKIP, "off", "cleaning is switched off", clock(), clock())
        decision_store.record(connection, "tbl_1", [again], decision_store.latest(connection, "tbl_1"))
    assert retention.run_once(engine, clock, KEEP) == {}
    with reading(engine) as connection:
        assert decision_store.latest(connection, "tbl_1")[JobKind.CLEANING].count == 2


def test_workers_that_were_not_seen_for_a_day_are_forgotten(engine: sa.Engine, clock: Clock) -> None:
    for name, pause in (("gone", 3600), ("here", 0)):
        with writing(engine) as connection:
            worker_store.announce(connection, name, WorkerInfo(), clock())
        clock.advance(pause)
    clock.advance(86_400 - 3600)
    assert retention.run_once(engine, clock, KEEP) == {}
    clock.advance(1)
    assert retention.run_once(engine, clock, KEEP) == {"workers": 1}
    with reading(engine) as connection:
        assert [worker.id for worker in worker_store.every(connection)] == ["here"]
