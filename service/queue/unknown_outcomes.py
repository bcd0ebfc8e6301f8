"""Settles jobs of unknown outcome by the table's timeline."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from jobs.contract import Problem
from jobs.kinds.registry import KINDS
from service.catalog import commit_store, decision_times, watch_store
from service.events.event import Event
from service.queue import job_changes, job_store
from service.queue.job import Job, JobState


def settle(connection: Connection, table_id: str, polled_at: datetime, now: datetime) -> list[Event]:
    """Ends the table's unknown jobs and returns their events. Call it when a poll has recorded the completed instants.

    A job has succeeded if the last instant that it reported has completed, and if jobs of its kind end with such an
    instant; otherwise it has failed. `polled_at` is when the poll began. If the job's last attempt ended after that,
    the poll proves nothing, so the table is polled once more.
    """
    events: list[Event] = []
    for job in job_store.unknown(connection, table_id):
        if job.finished_at is not None and job.finished_at >= polled_at:
            watch_store.start_over(connection, table_id, now)
            continue
        has_committed = commit_store.is_known(connection, table_id, job.instants[-1])
        has_ended = has_committed and KINDS[job.kind].ends_with_instant
        error = _with_rest(job) if has_committed else job.error
        state = JobState.SUCCEEDED if has_ended else JobState.FAILED
        job_store.settle(connection, job.id, state=state, error=None if has_ended else error)
        decision_times.wake(connection, table_id, now)
        events += job_changes.of_settlement(connection, job_store.get(connection, job.id), now)
    return events


def _with_rest(job: Job) -> Problem | None:
    """Returns the job's error with a note that its last instant does not prove that the job is done."""
    note = f"{job.instants[-1]} has completed, but more may be left to do. Start the job again to do the rest."
    return replace(job.error, detail=f"{job.error.detail} {note}".strip()) if job.error else None
