"""Withdrawal of jobs that have not begun, and its reasons."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from jobs.contract import JobKind
from service.events.event import Event
from service.incidents.incident import HELD_BACK
from service.queue import job_changes, job_events, job_store
from service.queue.problem_types import WITHDRAWN

WITHDRAWN_BY_PAUSE = WITHDRAWN.because("Upkeep was paused.")
WITHDRAWN_BY_FREEZE = WITHDRAWN.because(
    "A freeze of the table began before a worker was free.", hint="The policy decides again when the freeze ends."
)
WITHDRAWN_BY_WINDOW = WITHDRAWN.because(
    "The maintenance window closed before a worker was free.",
    hint="The policy decides again when the next window opens. Longer windows or more workers help.",
)
WITHDRAWN_BY_INCIDENT = WITHDRAWN.because(
    "Rows of the table are misplaced, and the job might have removed the files that a repair needs.",
    hint="Submit it again when the table's incidents are closed; the job `repair` closes them.",
)
"""Errors of jobs that never began. Such jobs count neither as failures nor as runs."""


def withdraw_beside_incidents(connection: Connection, table_id: str, now: datetime) -> list[Event]:
    """Withdraws the queued jobs that must not start while rows are misplaced, including those that people have
    submitted. Returns the events. A job that replaces file groups and has begun stays, because its next attempt has to
    complete or undo what the last one left. A cleaning leaves nothing to undo, so it is withdrawn even if it has
    begun."""
    queued = [
        job
        for job in job_store.queued(connection, table_id, HELD_BACK)
        if job.attempt == 0 or job.kind is JobKind.CLEANING
    ]
    for job in queued:
        job_store.cancel_queued(connection, job.id, error=WITHDRAWN_BY_INCIDENT, now=now)
    return [job_changes.of_job(connection, job.id, now, job_events.job_ended) for job in queued]
