"""Takes back the jobs of workers that were not heard of for longer than their lease."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.flows import telling
from service.model.announcement import job_ended, job_queued
from service.model.job import AttemptOutcome
from service.policy.ending import End, Retry, after_lost_lease
from service.store import leases, outbox, planning
from service.store.engine import reading, writing

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from service.flows.bell import Bell
    from service.model.clock import Clock

_AT_ONCE = 100

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recovered:
    """The ids of the jobs that were queued again, and of those that ended."""

    queued: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"queued again: {', '.join(self.queued) or 'none'}; ended: {', '.join(self.ended) or 'none'}"


def run_once(engine: Engine, bell: Bell, clock: Clock) -> Recovered:
    """Every replica may do this at any time: a job that one has locked is passed over by the others."""
    now = clock()
    with reading(engine) as connection:
        # A look first, so that the usual case takes no write lock.
        if not leases.is_any_run_out(connection, now):
            return Recovered()
    queued: list[str] = []
    ended: list[str] = []
    with writing(engine) as connection:
        for job in leases.run_out(connection, now, _AT_ONCE):
            match after_lost_lease(job, now=now):
                case End(state, error):
                    leases.end(
                        connection,
                        job,
                        state=state,
                        outcome=AttemptOutcome.LOST,
                        error=error,
                        result=None,
                        instants=job.instants,
                        now=now,
                    )
                    planning.wake(connection, job.table_id, now)
                    ended.append(job.id)
                case Retry(not_before, error):
                    leases.put_back(
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
            *(telling.of_job(connection, job_id, now, job_queued) for job_id in queued),
            *(telling.of_job(connection, job_id, now, job_ended) for job_id in ended),
        ]
        outbox.publish(connection, events, now=now)
    bell.ring()
    recovered = Recovered(tuple(queued), tuple(ended))
    log.warning("Leases ran out; %s", recovered)
    return recovered
