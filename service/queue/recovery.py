"""Takes back the jobs of workers whose lease has expired without a heartbeat."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.catalog import decision_times
from service.db.engine import reading, writing
from service.delivery import outbox
from service.queue import job_changes, lease_store
from service.queue.job import AttemptOutcome
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
    """The ids of the jobs that were queued again, and of those that have ended."""

    queued: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"queued again: {', '.join(self.queued) or 'none'}; ended: {', '.join(self.ended) or 'none'}"


def run_once(engine: Engine, notifier: Notifier, clock: Clock) -> Recovered:
    """Takes back up to 100 jobs. Every replica may run this at any time: each skips jobs that another has locked."""
    now = clock()
    with reading(engine) as connection:
        # Read first, so that the usual case takes no write lock.
        if not lease_store.is_any_run_out(connection, now):
            return Recovered()
    queued: list[str] = []
    ended: list[str] = []
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
        events = [
            *(job_changes.of_job(connection, job_id, now, job_queued) for job_id in queued),
            *(job_changes.of_job(connection, job_id, now, job_ended) for job_id in ended),
        ]
        outbox.publish(connection, events, now=now)
    notifier.notify()
    recovered = Recovered(tuple(queued), tuple(ended))
    log.warning("Leases expired; %s", recovered)
    return recovered
