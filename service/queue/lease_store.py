"""Leases: a job in the hands of one worker. Every write names job and attempt, so that a worker that lost its lease
cannot write over what came after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from service.db import schema
from service.db.violation import violated
from service.model.errors import LeaseLostError
from service.queue.job import HELD, AttemptOutcome, Job, JobState
from service.queue.job_store import job_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from sqlalchemy import Connection

    from jobs.contract import Heartbeat, Problem

_j = schema.jobs
_a = schema.job_attempts


def is_any_due(connection: Connection, now: datetime, group: str) -> bool:
    """Whether a lease would find a job. A glance that takes no write lock, for those who ask every second."""
    return connection.execute(_due(now, group).limit(1)).first() is not None


def take(
    connection: Connection,
    *,
    worker_id: str,
    group: str,
    now: datetime,
    deadline: datetime,
    may_start: Callable[[Job], bool] = lambda _job: True,
) -> Job | None:
    """Leases the next job of this worker group that is due to `worker_id`, or nothing. `may_start` is asked last, with
    the job locked; a job that it declines is passed over.

    Jobs of a higher priority go first; among equal ones it is the turn of the table whose last lease is the longest
    ago, so that a table with many jobs does not keep others waiting; and then of the oldest job.

    Several may call at once: SQLite lets one writer in after the other; on PostgreSQL each skips what another has
    locked. The one thing neither sees is that a job of the same table is being taken this very moment; the constraint
    on held jobs tells, and we look again.
    """
    passed_over: list[str] = []
    while True:
        query = _due(now, group).where(_j.c.id.not_in(passed_over)).limit(1).with_for_update(skip_locked=True, of=_j)
        row = connection.execute(query).one_or_none()
        if row is None:
            return None
        job = job_of(row)
        if not may_start(job):
            passed_over.append(job.id)
            continue
        taken = job.evolve(
            state=JobState.LEASED,
            attempt=job.attempt + 1,
            worker_id=worker_id,
            lease_deadline=deadline,
            leased_at=now,
            progress=None,
        )
        try:
            with connection.begin_nested():
                connection.execute(
                    _j.update()
                    .where(_j.c.id == job.id, _j.c.attempt == job.attempt, _j.c.state == JobState.QUEUED.value)
                    .values(
                        state=taken.state.value,
                        attempt=taken.attempt,
                        worker_id=worker_id,
                        lease_deadline=deadline,
                        leased_at=now,
                        progress=None,
                    )
                )
        except IntegrityError as error:
            if violated(error) != schema.JOB_HOLDING_TABLE:
                raise
            passed_over.append(job.id)
            continue
        connection.execute(
            _a.insert().values(job_id=job.id, attempt=taken.attempt, worker_id=worker_id, started_at=now)
        )
        return taken


def held(connection: Connection, job_id: str, attempt: int) -> Job:
    """The job as this attempt holds it, locked until the transaction ends. Raises LeaseLostError."""
    row = connection.execute(sa.select(_j).where(*_fence(job_id, attempt)).with_for_update()).one_or_none()
    if row is None:
        raise LeaseLostError(f"Attempt {attempt} does not hold job {job_id}.")
    return job_of(row)


def beat(connection: Connection, job: Job, heartbeat: Heartbeat, *, now: datetime, deadline: datetime) -> None:
    """Moves the deadline and records what the worker told. The first beat of an attempt makes the job running."""
    values: dict[str, Any] = {
        "state": JobState.RUNNING.value,
        "lease_deadline": deadline,
        "instants": list(job.with_instants(heartbeat.instants)),
        "started_at": job.started_at or now,
    }
    if heartbeat.progress is not None:
        values["progress"] = heartbeat.progress.to_json()
    _write(connection, job, values)


def end(
    connection: Connection,
    job: Job,
    *,
    state: JobState,
    outcome: AttemptOutcome,
    error: Problem | None,
    result: Mapping[str, Any] | None,
    instants: tuple[str, ...],
    now: datetime,
) -> None:
    """The attempt is the last one, and the job ends with it."""
    values: dict[str, Any] = {
        "state": state.value,
        "error": error.to_json() if error else None,
        "result": dict(result) if result is not None else None,
        "instants": list(instants),
        "lease_deadline": None,
        "finished_at": now,
    }
    if outcome is not AttemptOutcome.LOST:
        # A short job may end before its first heartbeat; it ran all the same.
        values["started_at"] = job.started_at or job.leased_at
    _write(connection, job, values)
    _end_attempt(connection, job, outcome, error, now)


def put_back(
    connection: Connection,
    job: Job,
    *,
    not_before: datetime,
    outcome: AttemptOutcome,
    error: Problem,
    instants: tuple[str, ...],
    now: datetime,
) -> None:
    """The attempt ended, and the job waits for the next one. It keeps the worker's name until then."""
    values = {
        "state": JobState.QUEUED.value,
        "not_before": not_before,
        "error": error.to_json(),
        "instants": list(instants),
        "lease_deadline": None,
    }
    _write(connection, job, values)
    _end_attempt(connection, job, outcome, error, now)


def on_table(connection: Connection, table_id: str) -> list[Job]:
    """The table's jobs that workers hold, dry runs included."""
    query = sa.select(_j).where(_j.c.table_id == table_id, _is_held()).order_by(_j.c.leased_at)
    return [job_of(row) for row in connection.execute(query)]


def is_any_run_out(connection: Connection, now: datetime) -> bool:
    query = sa.select(_j.c.id).where(_is_held(), _j.c.lease_deadline < now).limit(1)
    return connection.execute(query).first() is not None


def run_out(connection: Connection, now: datetime, limit: int) -> list[Job]:
    """Held jobs whose deadline is over, locked; those that another replica has locked are left to it."""
    query = (
        sa.select(_j)
        .where(_is_held(), _j.c.lease_deadline < now)
        .order_by(_j.c.lease_deadline)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return [job_of(row) for row in connection.execute(query)]


def _due(now: datetime, group: str) -> sa.Select[Any]:
    other = schema.jobs.alias("other")
    # Written out, not as parameters: only then SQLite sees that the small index of held jobs answers this.
    states: sa.BindParameter[str] = sa.bindparam(
        "held", [state.value for state in HELD], expanding=True, literal_execute=True
    )
    busy = sa.select(other.c.table_id).where(other.c.state.in_(states), other.c.mutating)
    is_blocked = _j.c.mutating & _j.c.table_id.in_(busy)
    of_table = schema.jobs.alias("of_table")
    last_lease = (
        sa.select(sa.func.max(of_table.c.leased_at)).where(of_table.c.table_id == _j.c.table_id).scalar_subquery()
    )
    return (
        sa.select(_j)
        .where(
            _j.c.state == JobState.QUEUED.value,
            _j.c.not_before <= now,
            _j.c.worker_group == group,
            sa.not_(_j.c.waits_for_writers),
            sa.not_(is_blocked),
        )
        .order_by(_j.c.priority.desc(), last_lease.asc().nulls_first(), _j.c.created_at, _j.c.id)
    )


def _fence(job_id: str, attempt: int) -> tuple[sa.ColumnElement[bool], ...]:
    return (_j.c.id == job_id, _j.c.attempt == attempt, _is_held())


def _is_held() -> sa.ColumnElement[bool]:
    return _j.c.state.in_([state.value for state in HELD])


def _write(connection: Connection, job: Job, values: dict[str, Any]) -> None:
    written = connection.execute(_j.update().where(*_fence(job.id, job.attempt)).values(**values))
    if written.rowcount == 0:
        raise LeaseLostError(f"Attempt {job.attempt} does not hold job {job.id}.")


def _end_attempt(
    connection: Connection, job: Job, outcome: AttemptOutcome, error: Problem | None, now: datetime
) -> None:
    connection.execute(
        _a.update()
        .where(_a.c.job_id == job.id, _a.c.attempt == job.attempt)
        .values(ended_at=now, outcome=outcome.value, error=error.to_json() if error else None)
    )
