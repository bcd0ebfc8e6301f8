"""Database access to leases. Every write names job and attempt, so a worker that lost its lease cannot overwrite later
changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import IntegrityError

from jobs.contract import Heartbeat, Problem
from service.db import schema
from service.db.engine import may_find as finds
from service.db.violation import violated
from service.model.job_errors import LeaseLostError
from service.queue import circumstance_store, job_store, lock_sighting_store, repeat_store, slot_use
from service.queue.breaker import slot_seconds
from service.queue.job import NOBODY, WITH_WORKER, AttemptOutcome, Holder, Job, JobState
from service.queue.job_store import JOBS
from service.queue.lock_sighting import FRESH

_j = schema.jobs
_a = schema.job_attempts
_w = schema.workers
_t = schema.turns


def is_any_due(
    connection: Connection, now: datetime, group: str, *, without: str | None = None, only_submitted: bool = False
) -> bool:
    """Returns whether `take` would find a job, other than `without`. No write lock is taken, because workers poll every
    second."""
    query = _any_due(only_submitted)
    found = connection.execute(query if without is None else query.where(_j.c.id != without), _due_now(now, group))
    return found.first() is not None


def may_find(
    engine: Engine, now: datetime, group: str, *, only_submitted: bool = False, request_id: str | None = None
) -> bool:
    """Returns whether a job is due, or leased by this request already, like `service.db.engine.may_find`."""
    is_due = finds(engine, _any_due(only_submitted), **_due_now(now, group))
    return is_due or bool(request_id and finds(engine, repeat_store.ANY_LEASED_WITH, of_request=request_id))


def may_become_due(engine: Engine, group: str) -> bool:
    """Returns whether a job of this worker group is queued, like `service.db.engine.may_find`."""
    return finds(engine, _QUEUED, of_group=group)


def take(
    connection: Connection,
    *,
    worker_id: str,
    token_id: str | None = None,
    request_id: str | None = None,
    group: str,
    now: datetime,
    deadline: datetime,
    may_start: Callable[[Job], bool] = lambda _job: True,
    requested_first: bool = True,
    only_submitted: bool = False,
) -> Job | None:
    """Leases the next due job of this worker group to `worker_id`; None when there is none. `may_start` is called last,
    when the job is locked. A job that it rejects is skipped. `only_submitted` leaves out jobs that the service itself
    has submitted. Two calls with the same `request_id` return the same job.

    Jobs with a higher priority go first. Among equal ones the order is: submitted jobs before those of the service
    (only with `requested_first`); jobs of unknown worth; overdue jobs (`starts_by`); the highest worth; the table that
    has had the fewest slot-seconds of late (`service.queue.slot_use`), so that a table with many or long jobs does not
    starve others; the oldest job.

    Concurrent calls are safe: SQLite serializes writers, and on PostgreSQL each call skips rows that another call has
    locked. If two calls lease jobs of the same table at the same moment, the constraint on leased jobs fails one of the
    calls, and this call repeats the query.
    """
    passed_over: list[str] = []
    first = _first_due(only_submitted, requested_first)
    while True:
        query = first.where(_j.c.id.not_in(passed_over)) if passed_over else first
        found = connection.execute(query, _due_now(now, group)).scalar_one_or_none()
        if found is None:
            return None
        job = job_store.get(connection, found)
        if not may_start(job):
            passed_over.append(job.id)
            continue
        lease: dict[str, Any] = {
            "state": JobState.LEASED,
            "attempt": job.attempt + 1,
            "worker_id": worker_id,
            "lease_token": token_id,
            "lease_deadline": deadline,
            "leased_at": now,
            "progress": None,
            "held_back": None,
        }
        taken = job.evolve(**lease)
        try:
            with _undone_alone(connection):
                connection.execute(
                    _j.update()
                    .where(_j.c.id == job.id, _j.c.attempt == job.attempt, _j.c.state == JobState.QUEUED.value)
                    .values({**lease, "state": JobState.LEASED.value, "lease_request": request_id})
                )
        except IntegrityError as error:
            broken = violated(error)
            if broken == schema.JOB_OF_REQUEST and request_id:
                return repeat_store.leased_with(connection, request_id, Holder(worker_id, token_id))
            if broken != schema.JOB_HOLDING_TABLE:
                raise
            passed_over.append(job.id)
            continue
        values = {"job_id": job.id, "attempt": taken.attempt, "worker_id": worker_id, "started_at": now}
        connection.execute(_ATTEMPT, {**values, "of_worker": worker_id, "of_job": job.id})
        circumstance_store.count_lease(connection, worker_id)
        slot_use.charge(connection, job.table_id, slot_use.AT_LEAST, now)
        return taken


def _undone_alone(connection: Connection) -> AbstractContextManager[object]:
    """Undoes a statement that fails, but not the transaction. SQLite does so without a savepoint."""
    return nullcontext() if connection.dialect.name == "sqlite" else connection.begin_nested()


def slot_seconds_of_others(
    connection: Connection, group: str, since: datetime, now: datetime, *, without: str
) -> float:
    """Returns how many slot-seconds of this worker group jobs have had since `since`. Jobs of the table `without` are
    left out. Only the last attempt of each job counts."""
    taken = sa.select(_j.c.leased_at, _j.c.finished_at).where(
        _j.c.worker_group == group, _j.c.table_id != without, _j.c.leased_at.is_not(None)
    )
    rows = [*connection.execute(taken.where(_j.c.finished_at > since)), *connection.execute(taken.where(_HAS_WORKER))]
    each = [(row.finished_at or now) - max(row.leased_at, since) for row in rows]
    return sum(each, timedelta()).total_seconds()


def tables_of_next(connection: Connection, now: datetime, group: str, limit: int) -> list[str]:
    """Looks at the jobs that would be leased next and that write their tables. Returns these tables, whether their
    locks are free or not."""
    return list(connection.execute(_TABLES_OF_NEXT, {**_due_now(now, group), "most": limit}).scalars())


def job_of_lease(connection: Connection, job_id: str, attempt: int, holder: Holder = NOBODY) -> Job:
    """Returns the job that this attempt holds, locked until the transaction ends. Raises LeaseLostError if the attempt
    or the holder does not have the lease."""
    job = JOBS.one(connection, _OF_LEASE, {"of_job": job_id, "of_attempt": attempt})
    if job is None or not job.is_leased_to(holder):
        raise LeaseLostError(f"Attempt {attempt} does not hold job {job_id}.")
    return job


def beat(connection: Connection, job: Job, heartbeat: Heartbeat, *, now: datetime, deadline: datetime) -> Job:
    """Extends the deadline and records instants and progress. The first heartbeat of an attempt sets the state to
    running. Returns the job after it."""
    after = job.evolve(
        state=JobState.RUNNING,
        lease_deadline=deadline,
        instants=job.with_instants(heartbeat.instants),
        started_at=job.started_at or now,
        progress=heartbeat.progress or job.progress,
    )
    values: dict[str, Any] = {
        "state": after.state.value,
        "lease_deadline": deadline,
        "instants": list(after.instants),
        "started_at": after.started_at,
    }
    if heartbeat.progress is not None:
        values["progress"] = heartbeat.progress.to_json()
    _write(connection, job, values)
    return after


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
    """Ends the attempt and the job."""
    values: dict[str, Any] = {
        "state": state.value,
        "error": error.to_json() if error else None,
        "result": dict(result) if result is not None else None,
        "instants": list(instants),
        "lease_deadline": None,
        "finished_at": now,
    }
    if outcome is not AttemptOutcome.LOST:
        # A short job may end before its first heartbeat; then it started with its lease.
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
    """Ends the attempt and queues the job for the next one. The job keeps the worker's id until then."""
    values = {
        "max_attempts": job.max_attempts,
        "state": JobState.QUEUED.value,
        "not_before": not_before,
        "error": error.to_json(),
        "instants": list(instants),
        "lease_deadline": None,
    }
    _write(connection, job, values)
    _end_attempt(connection, job, outcome, error, now)


def is_any_expired(connection: Connection, now: datetime) -> bool:
    return connection.execute(ANY_EXPIRED, {"now": now}).first() is not None


def expired(connection: Connection, now: datetime, limit: int) -> list[Job]:
    """Locks and returns the leased jobs whose deadline has passed; skips those that another replica has locked."""
    query = (
        JOBS.select()
        .where(_HAS_WORKER, _j.c.lease_deadline < now)
        .order_by(_j.c.lease_deadline)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return JOBS.many(connection, query)


def give_up(connection: Connection, worker_ids: str, token_id: str, at: datetime) -> int:
    """Moves the deadlines of a dead worker's jobs to `at`, and returns their number. `worker_ids` is the beginning of
    the worker's id. Jobs that were leased with another token than `token_id` belong to other workers."""
    is_its = sa.or_(_j.c.lease_token.is_(None), _j.c.lease_token == token_id)
    is_its &= _j.c.worker_id.startswith(worker_ids, autoescape=True)
    return connection.execute(_j.update().where(_HAS_WORKER, is_its).values(lease_deadline=at)).rowcount


def _due(*, locked_out: bool = False, only_submitted: bool = False) -> sa.Select[Any]:
    """Selects the jobs that a free slot could take, in no order. `only_submitted` selects those that a spare slot could
    take. `locked_out` includes jobs of tables whose lock was held at its last check. `_due_now` has the parameters of
    the statement."""
    other = schema.jobs.alias("other")
    # States are literals, because SQLite uses the small partial index of leased jobs only with literals.
    states: list[sa.ColumnElement[str]] = [sa.literal_column(f"'{state.value}'") for state in WITH_WORKER]
    busy = sa.select(other.c.table_id).where(other.c.state.in_(states), other.c.mutating)
    is_blocked = _j.c.mutating & _j.c.table_id.in_(busy)
    if not locked_out:
        looked_after: sa.BindParameter[datetime] = sa.bindparam("looked_after", type_=schema.UtcDateTime)
        is_blocked = is_blocked | (_j.c.mutating & _j.c.table_id.in_(lock_sighting_store.locked(looked_after)))
    due = sa.select(_j).where(
        _j.c.state == sa.literal_column(f"'{JobState.QUEUED.value}'"),
        _j.c.not_before <= sa.bindparam("now"),
        _j.c.worker_group == sa.bindparam("of_group"),
        sa.not_(_j.c.waits_for_writers),
        sa.not_(is_blocked),
    )
    return due.where(_j.c.reason.is_(None)) if only_submitted else due


def _due_now(now: datetime, group: str) -> dict[str, Any]:
    return {"now": now, "of_group": group, "looked_after": now - FRESH}


# Statements are kept, because building takes far longer than executing.
@cache
def _any_due(only_submitted: bool) -> sa.Select[Any]:
    return _due(only_submitted=only_submitted).with_only_columns(_j.c.id).limit(1)


@cache
def _first_due(only_submitted: bool, requested_first: bool) -> sa.Select[Any]:
    """Selects the id of the first due job. Whole rows are read afterwards, since sorting thousands of them would take
    long."""
    due = in_turn(_due(only_submitted=only_submitted), requested_first=requested_first).with_only_columns(_j.c.id)
    return due.limit(1).with_for_update(skip_locked=True, of=_j)


def in_turn(due: sa.Select[Any], *, requested_first: bool = True) -> sa.Select[Any]:
    """Puts due jobs in the order in which they are leased."""
    is_of_policy = [sa.case((_j.c.reason.is_(None), 0), else_=1)] if requested_first else []
    return due.outerjoin(_t, _t.c.table_id == _j.c.table_id).order_by(
        _j.c.priority.desc(),
        *is_of_policy,
        sa.case((_j.c.worth.is_(None), 0), else_=1),
        sa.case((_j.c.starts_by <= sa.bindparam("now"), _j.c.starts_by)).asc().nulls_last(),
        _j.c.worth.desc(),
        _t.c.used.asc().nulls_first(),
        _j.c.created_at,
        _j.c.id,
    )


_HAS_WORKER = _j.c.state.in_(schema.literals(WITH_WORKER))
_IS_OF_ATTEMPT = sa.and_(_j.c.id == sa.bindparam("of_job"), _j.c.attempt == sa.bindparam("of_attempt"), _HAS_WORKER)
_OF_LEASE = JOBS.select().where(_IS_OF_ATTEMPT).with_for_update()
WITH_WORKER_ON_TABLES = JOBS.all_of(
    JOBS.select().where(schema.among(_j.c.table_id, "of_tables"), _HAS_WORKER).order_by(_j.c.leased_at)
)
"""Reads the jobs of tables that workers hold, dry runs included, the earliest taken first."""
_WRITE = _j.update().where(_IS_OF_ATTEMPT)
_QUEUED = (
    sa.select(_j.c.id)
    .where(_j.c.state == sa.literal_column(f"'{JobState.QUEUED.value}'"), _j.c.worker_group == sa.bindparam("of_group"))
    .limit(1)
)
ANY_EXPIRED = sa.select(_j.c.id).where(_HAS_WORKER, _j.c.lease_deadline < sa.bindparam("now")).limit(1)
"""Selects a job whose lease has ended `now`."""
_NEXT_DUE = in_turn(_due(locked_out=True)).where(_j.c.mutating).limit(sa.bindparam("most"))
_TABLES_OF_NEXT = _NEXT_DUE.with_only_columns(_j.c.table_id)
# The worker's row names the Spark application that runs the attempt, because a worker that starts again has another
# id.
_ATTEMPT = _a.insert().values(
    {
        each.name: sa.select(each).where(_w.c.id == sa.bindparam("of_worker")).scalar_subquery()
        for each in (_w.c.application_id, _w.c.ui_url)
    }
    | circumstance_store.AT_LEASE
)
_END_ATTEMPT = _a.update().where(_a.c.job_id == sa.bindparam("of_job"), _a.c.attempt == sa.bindparam("of_attempt"))


def _write(connection: Connection, job: Job, values: dict[str, Any]) -> None:
    written = connection.execute(_WRITE, {"of_job": job.id, "of_attempt": job.attempt, **values})
    if written.rowcount == 0:
        raise LeaseLostError(f"Attempt {job.attempt} does not hold job {job.id}.")


def _end_attempt(
    connection: Connection, job: Job, outcome: AttemptOutcome, error: Problem | None, now: datetime
) -> None:
    ended = {"ended_at": now, "outcome": outcome.value, "error": error.to_json() if error else None}
    connection.execute(_END_ATTEMPT, {"of_job": job.id, "of_attempt": job.attempt, **ended})
    slot_use.charge(connection, job.table_id, slot_seconds(job, now) - slot_use.AT_LEAST, now)
