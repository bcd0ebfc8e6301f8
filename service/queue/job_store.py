"""Database access to jobs. Changes that only the holder of a lease may make are in `lease_store`."""

from __future__ import annotations

from collections import Counter
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from jobs.contract import TABLE_LOCKED, JobKind
from jobs.kinds.registry import KINDS
from service.catalog import table_store
from service.db import schema
from service.db.documents import Documents, Reading, rows_of, together
from service.db.page import Page, PageRequest, Shape, page_of
from service.db.upsert import insert_into
from service.db.violation import FOREIGN_KEY, violated
from service.model.job_errors import JobConflictError, JobNotFoundError
from service.model.table_errors import TableNotFoundError
from service.queue.job import ACTIVE, WITH_WORKER, Attempt, Job, JobState, mutates

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from sqlalchemy import Connection

    from jobs.contract import Problem
    from service.catalog.ownership import TableSelection

_j = schema.jobs
_a = schema.job_attempts

_ANY: tuple[str | None, ...] = (None,)
JOBS = Documents(Job, _j)
# Every decision or job executes these statements, so they are built once.
_GET = JOBS.select().where(_j.c.id == sa.bindparam("of_job"))
_GET_LOCKED = _GET.with_for_update()
_RECENT = (
    JOBS.select()
    .where(_j.c.table_id == sa.bindparam("of_table"), sa.not_(_j.c.dry_run))
    .order_by(_j.c.created_at.desc(), _j.c.id.desc())
    .limit(sa.bindparam("most"))
)
RECENT: Reading[list[Job]] = JOBS.all_of(_RECENT)
"""Reads what `recent` returns; `most` is the limit."""
_COUNT_ACTIVE = (
    sa.select(_j.c.kind, _j.c.worker_group, sa.func.count())
    .where(_j.c.state.in_([state.value for state in ACTIVE]), sa.not_(_j.c.dry_run))
    .group_by(_j.c.kind, _j.c.worker_group)
)


def submit(connection: Connection, job: Job) -> Job:
    """Adds `job` and returns it, or returns the one that was submitted with the same idempotency key.

    Raises JobConflictError with the `job_id` of the active job that excludes this one, or TableNotFoundError.
    """
    if job.idempotency_key and (earlier := _with_key(connection, job.table_id, job.idempotency_key)):
        return earlier
    # The conflicting job may end between the insertion and the query for it, so both are tried again.
    for _ in range(3):
        try:
            if connection.execute(_new_job(connection.dialect.name), _new_values(job)).first() is not None:
                return job
        except IntegrityError as error:
            if violated(error) == FOREIGN_KEY:
                raise TableNotFoundError(f"There is no table {job.table_id}.") from error
            raise
        if job.idempotency_key and (earlier := _with_key(connection, job.table_id, job.idempotency_key)):
            return earlier
        if other := _excluding(connection, job):
            raise _conflict(other)
    raise JobConflictError("Other jobs of this table change too fast to determine which one conflicts.")


@cache
def _new_job(dialect: str) -> sa.Insert:
    # A conflict is no error of the statement, so the insertion needs no savepoint. A savepoint would double the time.
    return insert_into(dialect, _j).on_conflict_do_nothing().returning(_j.c.id)


def get(connection: Connection, job_id: str, *, for_update: bool = False) -> Job:
    """Raises JobNotFoundError."""
    job = JOBS.one(connection, _GET_LOCKED if for_update else _GET, {"of_job": job_id})
    if job is None:
        raise JobNotFoundError(f"There is no job {job_id}.")
    return job


def state_of(connection: Connection, job_id: str) -> JobState:
    """Raises JobNotFoundError."""
    state = connection.execute(sa.select(_j.c.state).where(_j.c.id == job_id)).scalar_one_or_none()
    if state is None:
        raise JobNotFoundError(f"There is no job {job_id}.")
    return JobState(state)


def attempts(connection: Connection, job_id: str) -> list[Attempt]:
    """Returns all attempts of a job, first to last."""
    rows = connection.execute(sa.select(_a).where(_a.c.job_id == job_id).order_by(_a.c.attempt))
    return [Attempt.of_row(row) for row in rows]


def page(
    connection: Connection,
    asked: PageRequest,
    *,
    table_id: str | None = None,
    kinds: Collection[JobKind] = (),
    states: Collection[JobState] = (),
    selection: TableSelection | None = None,
) -> Page[Job]:
    """Returns a page of jobs, newest first. Empty `kinds` and `states` select all; the times are those of creation."""
    query = _page(
        asked.shape,
        table_id is not None,
        tuple(sorted({each.value for each in kinds})),
        tuple(sorted({each.value for each in states})),
        None if selection is None or selection.is_open else selection,
    )
    jobs = JOBS.many(connection, query, {**asked.given(_j.c.id), "of_table": table_id})
    return page_of(jobs, asked.limit, lambda job: (job.created_at, job.id))


@lru_cache(maxsize=100)
def _page(
    shape: Shape,
    of_table: bool,
    kinds: tuple[str, ...],
    states: tuple[str, ...],
    selection: TableSelection | None,
) -> sa.Select[Any]:
    conditions = shape.conditions(_j.c.created_at, _j.c.id) + table_store.is_selected(_j.c.table_id, selection)
    if of_table:
        conditions.append(_j.c.table_id == sa.bindparam("of_table"))
    newest = (_j.c.created_at.desc(), _j.c.id.desc())
    most: sa.BindParameter[int] = sa.bindparam("most")
    pairs = [
        [*([_j.c.kind == kind] if kind else []), *([_j.c.state == state] if state else [])]
        for kind in kinds or _ANY
        for state in states or _ANY
    ]
    if len(pairs) == 1:
        conditions += pairs[0]
    else:
        # Each pair of kind and state is a separate query, because an index then leads to its jobs alone.
        parts = [sa.select(_j.c.id).where(*conditions, *each).order_by(*newest).limit(most) for each in pairs]
        conditions = [_j.c.id.in_(sa.union_all(*(sa.select(each.subquery()) for each in parts)))]
    return together(JOBS.select().where(*conditions).order_by(*newest).limit(most))


def active(connection: Connection, table_id: str) -> list[str]:
    """Returns the ids of the table's active jobs, dry runs included, oldest first."""
    query = sa.select(_j.c.id).where(_j.c.table_id == table_id, is_active()).order_by(_j.c.created_at)
    return list(connection.execute(query).scalars())


def recent(connection: Connection, table_id: str, limit: int) -> list[Job]:
    """Returns the table's last `limit` jobs without dry runs, newest first."""
    return RECENT.read(connection, {"of_table": table_id, "most": limit})


def succeeded(connection: Connection, table_id: str, kind: JobKind, limit: int) -> list[Job]:
    """Returns the table's last `limit` successful jobs of a kind, without dry runs, newest first."""
    chosen = _RECENT.where(_j.c.kind == kind.value, _j.c.state == JobState.SUCCEEDED.value)
    return JOBS.many(connection, together(chosen), {"of_table": table_id, "most": limit})


def count_active(connection: Connection) -> Counter[tuple[JobKind, str]]:
    """Counts the active jobs of all tables by kind and worker group, without dry runs."""
    return Counter({(JobKind(kind), group): number for kind, group, number in connection.execute(_COUNT_ACTIVE)})


_RENEW = (
    _j.update().where(_j.c.id == sa.bindparam("of_job"), schema.JOB_IS_QUEUED).values(worth=sa.bindparam("new_worth"))
)


def count_weighed(connection: Connection, group: str, priority: int, worth: float) -> tuple[int, int]:
    """Counts the queued jobs of this group and priority that have a worth. Returns how many have a higher worth than
    `worth`, and how many there are."""
    is_better = sa.func.coalesce(sa.func.sum(sa.case((_j.c.worth > worth, 1), else_=0)), 0)
    found = connection.execute(
        sa.select(is_better, sa.func.count()).where(
            schema.JOB_IS_QUEUED, _j.c.worker_group == group, _j.c.priority == priority, _j.c.worth.is_not(None)
        )
    )
    better, waiting = found.one()
    return int(better), int(waiting)


def renew_worth(connection: Connection, job_id: str, worth: float) -> None:
    """Gives a job another worth, if it is still queued."""
    connection.execute(_RENEW, {"of_job": job_id, "new_worth": worth})


def withdraw(connection: Connection, *, error: Problem, now: datetime, table_id: str | None = None) -> list[str]:
    """Cancels the jobs that the service submitted by itself and that no worker has leased yet, on one table or on all.

    Returns their ids. A job that is being leased at this moment is skipped. A job with a hand-over is skipped too,
    because it counts as begun.
    """
    query = sa.select(_j.c.id).where(
        _j.c.state == JobState.QUEUED.value,
        _j.c.attempt == 0,
        _j.c.reason.is_not(None),
        _j.c.hand_over.is_(None),
    )
    if table_id is not None:
        query = query.where(_j.c.table_id == table_id)
    ids = list(connection.execute(query.with_for_update(skip_locked=True)).scalars())
    for job_id in ids:
        cancel_queued(connection, job_id, error=error, now=now)
    return ids


def active_retry(connection: Connection, job_id: str) -> Job | None:
    """Returns the active job that repeats this job, if there is one. Locks this job, so that of two concurrent calls
    the second one finds the job that the first one creates. Raises JobNotFoundError."""
    get(connection, job_id, for_update=True)
    query = JOBS.select().where(_j.c.retry_of == job_id, is_active()).order_by(_j.c.created_at).limit(1)
    return JOBS.one(connection, query)


def queued(connection: Connection, table_id: str, kinds: Collection[JobKind]) -> list[Job]:
    """Locks and returns the table's queued jobs of these kinds, without dry runs. A job that is being leased at this
    moment is skipped."""
    query = JOBS.select().where(
        _j.c.table_id == table_id,
        _j.c.kind.in_([kind.value for kind in kinds]),
        _j.c.state == JobState.QUEUED.value,
        sa.not_(_j.c.dry_run),
    )
    return JOBS.many(connection, query.with_for_update(skip_locked=True))


# Every poll executes these statements, so they are built once.
_UNKNOWN = (
    JOBS.select()
    .where(_j.c.table_id == sa.bindparam("of_table"), schema.JOB_IS_UNKNOWN)
    .order_by(_j.c.created_at)
    .with_for_update()
)
WITH_UNKNOWN: Reading[set[str]] = rows_of(
    tuple[str], sa.select(_j.c.table_id).where(schema.among(_j.c.table_id, "of_tables"), schema.JOB_IS_UNKNOWN)
).then(lambda rows: {table_id for (table_id,) in rows})
"""Reads what `with_unknown` returns."""


def unknown(connection: Connection, table_id: str) -> list[Job]:
    """Returns the table's jobs of unknown outcome, the oldest first, and locks them."""
    return JOBS.many(connection, _UNKNOWN, {"of_table": table_id})


def with_unknown(connection: Connection, table_ids: Collection[str]) -> set[str]:
    """Returns which of these tables have jobs of unknown outcome."""
    return WITH_UNKNOWN.read(connection, {"of_tables": list(table_ids)})


def begun(connection: Connection, table_ids: Collection[str] | None = None) -> list[Job]:
    """Returns the jobs that have begun, of all tables or of these, oldest first: those that workers hold, those of
    unknown outcome, and those that are queued again because they found their table's lock held."""
    states = [JobState.UNKNOWN.value, *(state.value for state in WITH_WORKER)]
    locked_out = sa.and_(_j.c.state == JobState.QUEUED.value, _j.c.error["type"].as_string() == TABLE_LOCKED)
    query = JOBS.select().where(sa.or_(_j.c.state.in_(states), locked_out)).order_by(_j.c.created_at, _j.c.id)
    if table_ids is not None:
        query = query.where(_j.c.table_id.in_(table_ids))
    return JOBS.many(connection, together(query))


def is_known(connection: Connection, job_id: str) -> bool:
    return connection.execute(sa.select(_j.c.id).where(_j.c.id == job_id)).first() is not None


def settle(connection: Connection, job_id: str, *, state: JobState, error: Problem | None) -> None:
    """Ends a job of unknown outcome."""
    values = {"state": state.value, "error": error.to_json() if error else None}
    connection.execute(_j.update().where(_j.c.id == job_id, schema.JOB_IS_UNKNOWN).values(values))


def prune(connection: Connection, before: datetime, limit: int) -> int:
    """Deletes at most `limit` jobs that ended before `before`, with their attempts, and returns how many."""
    old = sa.select(_j.c.id).where(_j.c.finished_at < before, sa.not_(is_active())).limit(limit)
    return connection.execute(_j.delete().where(_j.c.id.in_(old))).rowcount


def cancel_queued(connection: Connection, job_id: str, *, error: Problem | None, now: datetime) -> None:
    """Cancels a job that no worker holds. The caller has locked and read it."""
    connection.execute(
        _j.update()
        .where(_j.c.id == job_id, _j.c.state == JobState.QUEUED.value)
        .values(
            state=JobState.CANCELLED.value,
            cancel_requested=True,
            error=error.to_json() if error else None,
            finished_at=now,
        )
    )


def fail_queued(connection: Connection, job_id: str, *, error: Problem, now: datetime) -> None:
    """Fails a job that no worker holds and that no worker could run. The caller has locked it."""
    connection.execute(
        _j.update().where(_j.c.id == job_id).values(state=JobState.FAILED.value, error=error.to_json(), finished_at=now)
    )


def request_cancel(connection: Connection, job_id: str) -> None:
    """Requests cancellation from the worker, which gets the request with its next heartbeat."""
    connection.execute(_j.update().where(_j.c.id == job_id).values(cancel_requested=True))


def is_active() -> sa.ColumnElement[bool]:
    return _j.c.state.in_([state.value for state in ACTIVE])


def _new_values(job: Job) -> dict[str, Any]:
    is_rewriting = KINDS[job.kind].rewrites and not job.dry_run
    return {
        **job.to_row(),
        "mutating": mutates(job.kind, dry_run=job.dry_run),
        "rewriting": True if is_rewriting else None,
    }


def _with_key(connection: Connection, table_id: str, key: str) -> Job | None:
    return JOBS.one(connection, JOBS.select().where(_j.c.table_id == table_id, _j.c.idempotency_key == key))


def _excluding(connection: Connection, job: Job) -> Job | None:
    """Returns the active job of the same kind, or else another active job that replaces file groups; None if there is
    neither."""
    query = JOBS.select().where(_j.c.table_id == job.table_id, is_active(), sa.not_(_j.c.dry_run))
    others = JOBS.many(connection, query)
    same_kind = [other for other in others if other.kind is job.kind]
    rewriting = [other for other in others if KINDS[other.kind].rewrites and KINDS[job.kind].rewrites]
    return next(iter(same_kind + rewriting), None)


def _conflict(other: Job) -> JobConflictError:
    detail = f"Job {other.id} ({other.kind.value}) is {other.state.value}."
    return JobConflictError(detail, extensions={"job_id": other.id})
