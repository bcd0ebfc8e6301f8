"""Pauses and resumes automatic jobs."""

from __future__ import annotations

from sqlalchemy import Engine

from service.catalog import decision_times
from service.db.engine import writing
from service.delivery import outbox
from service.events.notifier import Notifier
from service.model.clock import Clock
from service.policies import pause_store
from service.policies.policy import Pause
from service.queue import held_back_store, job_changes, job_store
from service.queue.job_events import job_ended
from service.queue.unstarted_jobs import WITHDRAWN_BY_PAUSE


def pause(engine: Engine, notifier: Notifier, clock: Clock, *, by: str, reason: str) -> Pause:
    """Stops the service from starting jobs by itself; jobs that have begun continue. A second pause keeps the first."""
    now = clock()
    with writing(engine) as connection:
        if current := pause_store.pause_of(connection, for_update=True):
            return current
        begun = Pause(now, by, reason)
        pause_store.pause(connection, begun)
        withdrawn = job_store.withdraw(connection, error=WITHDRAWN_BY_PAUSE, now=now)
        events = [job_changes.of_job(connection, job_id, now, job_ended) for job_id in withdrawn]
        outbox.publish(connection, events, now=now)
    notifier.notify()
    return begun


def resume(engine: Engine, notifier: Notifier, clock: Clock) -> None:
    """Ends the pause and schedules a new decision about every table. Idempotent."""
    with writing(engine) as connection:
        # The tables are locked before the row of the pause, which is also the scheduler's order.
        decision_times.wake_all(connection, clock())
        pause_store.resume(connection)
        held_back_store.release(connection, clock())
    notifier.notify()
