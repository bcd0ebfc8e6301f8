"""Takes back the jobs of workers whose lease has expired without a heartbeat."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import assert_never

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from jobs.kinds.results import KindResult
from service.catalog import decision_times, watch_store
from service.db.engine import reading, writing
from service.delivery import outbox
from service.events.database import Database
from service.events.notifier import Notifier
from service.events.tally import Count
from service.model.clock import Clock
from service.queue import attempt_figures, failing_work, job_changes, job_tally, job_trace, lease_store
from service.queue.job import AttemptOutcome, Job, JobState
from service.queue.job_events import job_ended, job_queued
from service.queue.retry import End, Retry, after_lost_lease

_AT_ONCE = 100

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recovered:
    """The ids of the jobs that were queued again, of those that have ended, and of those that a poll must settle."""

    queued: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()

    def __str__(self) -> str:
        named = {"queued again": self.queued, "ended": self.ended, "unknown": self.undecided}
        return "; ".join(f"{what}: {', '.join(ids) or 'none'}" for what, ids in named.items())


def run_once(engine: Engine, notifier: Notifier, clock: Clock) -> Recovered:
    """Takes back up to 100 jobs. Every replica may run this at any time: it skips jobs that another replica has
    locked."""
    now = clock()
    with reading(engine) as connection:
        # The read comes first, so that the usual case takes no write lock.
        if not lease_store.is_any_expired(connection, now):
            return Recovered()
    ends: dict[str, JobState] = {}
    counts: list[Count] = []
    lost: list[Job] = []
    with writing(engine) as connection:
        for job in lease_store.expired(connection, now, _AT_ONCE):
            try:
                with connection.begin_nested():
                    ends[job.id] = _take_back(connection, job, now)
                lost.append(job)
                counts += job_tally.of_attempt(job, AttemptOutcome.LOST, KindResult(), now)
            except DBAPIError:
                raise  # The database failed, not the job.
            except Exception:
                # An error with one job must not prevent the recovery of others.
                log.exception("Job %s could not be taken back", job.id)
        by_state = {state: tuple(job_id for job_id in ends if ends[job_id] is state) for state in set(ends.values())}
        queued, undecided = by_state.pop(JobState.QUEUED, ()), by_state.pop(JobState.UNKNOWN, ())
        recovered = Recovered(queued, tuple(chain(*by_state.values())), undecided)
        events = [
            *(job_changes.of_job(connection, job_id, now, job_queued) for job_id in recovered.queued),
            *(job_changes.of_job(connection, job_id, now, job_ended) for job_id in recovered.ended),
        ]
        outbox.publish(connection, events, now=now)
        # The totals of tables are locked in the same order as by other transactions.
        for job in sorted(lost, key=lambda job: (job.table_id, job.kind)):
            attempt_figures.record(connection, job, AttemptOutcome.LOST, KindResult(), now)
        outbox.count(connection, counts)
    notifier.notify()
    job_trace.have_ended(engine, recovered.ended)
    log.warning("Leases expired; %s", recovered)
    return recovered


def take_back(database: Database, worker_ids: str, token_id: str) -> None:
    """Takes back the jobs of a worker that is known to be gone, before its leases expire. `worker_ids` is the beginning
    of the worker's id, and `token_id` is its token."""
    with writing(database.engine) as connection:
        given_up = lease_store.give_up(connection, worker_ids, token_id, database.clock() - timedelta(seconds=1))
    if given_up:
        run_once(database.engine, database.notifier, database.clock)


def _take_back(connection: Connection, job: Job, now: datetime) -> JobState:
    """Ends the lost attempt; returns the state of the job."""
    then = after_lost_lease(job, now=now)
    next_try_at = failing_work.next_try_at(connection, job, outcome=AttemptOutcome.LOST, error=then.error, now=now)
    match then:
        case End(state, error):
            lease_store.end(
                connection,
                job,
                state=state,
                outcome=AttemptOutcome.LOST,
                error=error,
                result=None,
                instants=job.instants,
                now=now,
            )
            if state is JobState.UNKNOWN:
                watch_store.start_over(connection, job.table_id, now)
            # A poll locks these rows in the same order, so there is no deadlock.
            decision_times.wake(connection, job.table_id, now)
            return state
        case Retry(not_before, error, _):
            lease_store.put_back(
                connection,
                job,
                not_before=max(not_before, next_try_at),
                outcome=AttemptOutcome.LOST,
                error=error,
                instants=job.instants,
                now=now,
            )
            return JobState.QUEUED
        case never:
            assert_never(never)
