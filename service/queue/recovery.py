"""Takes back the jobs of workers whose lease has expired without a heartbeat."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from service.catalog import decision_times, watch_store
from service.db.engine import reading, writing
from service.delivery import outbox
from service.queue import job_changes, lease_store
from service.queue.job import AttemptOutcome, JobState
from service.queue.job_events import job_ended, job_queued
from service.queue.retry import End, Retry, after_lost_lease

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from service.events.notifier import Notifier
    from service.model.clock import Clock

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
    """Takes back up to 100 jobs. Every replica may run this at any time: each skips jobs that another has locked."""
    now = clock()
    with reading(engine) as connection:
        # Read first, so that the usual case takes no write lock.
        if not lease_store.is_any_run_out(connection, now):
            return Recovered()
    queued: list[str] = []
    ended: list[str] = []
    undecided: list[str] = []
    with writing(engine) as connection:
        for job in lease_store.run_out(connection, now, _AT_ONCE):
            match after_lost_lease(job, now=now):
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
                    decision_times.wake(connection, job.table_id, now)
                    if state is JobState.UNKNOWN:
                        watch_store.start_over(connection, job.table_id, now)
                        undecided.append(job.id)
                    else:
                        ended.append(job.id)
                case Retry(not_before, error):
                    lease_store.put_back(
                        connection,
                        job,
                        not_before=not_before,
                        outcome=AttemptOutcome.LOST,
                        error=error,
                        instants=job.instants,
                        now=now,
                    )
                    queued.append(job.id)
                case never:
                    assert_never(never)
        events = [
            *(job_changes.of_job(connection, job_id, now, job_queued) for job_id in queued),
            *(job_changes.of_job(connection, job_id, now, job_ended) for job_id in ended),
        ]
        outbox.publish(connection, events, now=now)
    notifier.notify()
    recovered = Recovered(tuple(queued), tuple(ended), tuple(undecided))
    log.warning("Leases expired; %s", recovered)
    return recovered
