"""History goes after a while, and what is active never."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from jobs.contract import DEFAULT_GROUP, JobKind, WorkerInfo
from service.flows import prune
from service.model.decision import Decision, Verdict
from service.model.job import AttemptOutcome, Job, JobState
from service.store import decisions, jobs, leases, workers
from service.store.engine import reading, writing

if TYPE_CHECKING:
    import sqlalchemy as sa

    from service.model.registration import Registration

MONTH = timedelta(days=30)
KEEP = prune.Keep(history=MONTH, commits=MONTH, events=MONTH)


class Clock(Protocol):
    def __call__(self) -> datetime: ...
    def advance(self, seconds: float) -> None: ...


def a_job(engine: sa.Engine, clock: Clock, job_id: str, **changes: Any) -> Job:
    job = Job(job_id, "tbl_1", JobKind.AUDIT, clock(), clock(), dry_run=True).evolve(**changes)
    with writing(engine) as connection:
        return jobs.submit(connection, job)


def run(engine: sa.Engine, clock: Clock) -> None:
    with writing(engine) as connection:
        job = leases.take(connection, worker_id="w1", group=DEFAULT_GROUP, now=clock(), deadline=clock())
        assert job is not None
        leases.end(
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
        return {job.id for job in jobs.page(connection, limit=500).items}


def test_ended_jobs_go_with_their_attempts_and_active_ones_stay(
    engine: sa.Engine, a_table: Registration, clock: Clock
) -> None:
    a_job(engine, clock, "old")
    run(engine, clock)
    a_job(engine, clock, "waits", not_before=clock() + timedelta(days=400))
    clock.advance(MONTH.total_seconds())
    a_job(engine, clock, "young")
    run(engine, clock)
    assert prune.run_once(engine, clock, KEEP) == prune.Pruned()
    clock.advance(1)
    assert prune.run_once(engine, clock, KEEP) == prune.Pruned(jobs=1)
    assert ids(engine) == {"waits", "young"}
    with reading(engine) as connection:
        assert jobs.attempts(connection, "old") == []
        assert len(jobs.attempts(connection, "young")) == 1
    clock.advance(300 * 86_400)
    prune.run_once(engine, clock, KEEP)
    assert ids(engine) == {"waits"}


def test_much_that_is_old_goes_in_several_steps(engine: sa.Engine, a_table: Registration, clock: Clock) -> None:
    for number in range(1100):
        with writing(engine) as connection:
            decision = Decision(JobKind.CLEANING, Verdict.RUN, "due", f"the {number}th", clock(), clock())
            decisions.record(connection, "tbl_1", decision, None)
    clock.advance(MONTH.total_seconds() + 1)
    assert prune.run_once(engine, clock, KEEP) == prune.Pruned(decisions=1100)
    assert prune.run_once(engine, clock, KEEP) == prune.Pruned()


def test_a_decision_that_still_stands_is_not_old(engine: sa.Engine, a_table: Registration, clock: Clock) -> None:
    first = Decision(JobKind.CLEANING, Verdict.SKIP, "off", "cleaning is switched off", clock(), clock())
    with writing(engine) as connection:
        decisions.record(connection, "tbl_1", first, None)
    clock.advance(MONTH.total_seconds() + 1)
    with writing(engine) as connection:
        again = Decision(JobKind.CLEANING, Verdict.SKIP, "off", "cleaning is switched off", clock(), clock())
        decisions.record(connection, "tbl_1", again, decisions.latest(connection, "tbl_1")[JobKind.CLEANING])
    assert prune.run_once(engine, clock, KEEP) == prune.Pruned()
    with reading(engine) as connection:
        assert decisions.latest(connection, "tbl_1")[JobKind.CLEANING].count == 2


def test_workers_that_were_not_seen_for_a_day_are_forgotten(engine: sa.Engine, clock: Clock) -> None:
    for name, pause in (("gone", 3600), ("here", 0)):
        with writing(engine) as connection:
            workers.announce(connection, name, WorkerInfo(), clock())
        clock.advance(pause)
    clock.advance(86_400 - 3600)
    assert prune.run_once(engine, clock, KEEP) == prune.Pruned()
    clock.advance(1)
    assert prune.run_once(engine, clock, KEEP) == prune.Pruned(workers=1)
    with reading(engine) as connection:
        assert [worker.id for worker in workers.every(connection)] == ["here"]
