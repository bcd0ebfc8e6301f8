"""Stores what the report of a job shows about its table: whether workers can write to the table, and the bucket index
that the job has given it, or has removed."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from jobs.contract import BucketIndex, Outcome, Result
from jobs.kinds.bucket_index import BucketIndexResult
from jobs.kinds.results import KindResult
from service.catalog import snapshot_store, table_store, watch_store
from service.lake.snapshot import NotWritable
from service.queue import breaker_store
from service.queue.job import Job, mutates

_REFUSED = frozenset({"storage-access-denied", "storage-read-only"})
"""Types of errors (`jobs.errors`) that say that the storage refused a write."""


def record_writability(connection: Connection, job: Job, result: Result, parsed: KindResult, now: datetime) -> None:
    """Stores with the table's snapshot whether workers can write the table, if the report of an attempt shows it. A
    worker tests this before its first job on a table and after a refusal. A job that has committed shows it too."""
    error = result.error
    is_writing = mutates(job.kind, dry_run=job.dry_run)
    reported = parsed.not_writable
    problem = reported or None
    if problem is None and is_writing and error is not None and error.type in _REFUSED:
        problem = error
    is_well = reported is None or (is_writing and result.outcome is Outcome.SUCCEEDED and bool(result.instants))
    if problem is None and not is_well:
        return
    stored = snapshot_store.find(connection, job.table_id)
    if stored is None or (problem is None and stored.snapshot.not_writable is None):
        return
    before = stored.snapshot.not_writable
    found = None
    if problem is not None:
        since = before.since if before else now
        found = NotWritable(problem.type, problem.title, problem.detail, problem.hint, since, job.id)
    else:
        # Jobs that failed because the storage refused a write may be retried at once.
        breaker_store.mended(connection, job.table_id, now)
    snapshot_store.save(connection, replace(stored, snapshot=replace(stored.snapshot, not_writable=found)))


def register_index(connection: Connection, job: Job, found: KindResult, now: datetime) -> None:
    """Changes the table's `index` according to the result of a job that has succeeded. Jobs of other kinds change
    nothing.

    Hudi does not store the index in the table, so the next job must learn it from the registration.
    """
    if job.dry_run or not isinstance(found, BucketIndexResult):
        return
    if found.action == "drop":
        index = None
    elif isinstance(found.num_buckets, int) and isinstance(found.hash_fields, tuple):
        index = BucketIndex(found.num_buckets, found.hash_fields)
    else:
        return
    table = table_store.get(connection, job.table_id, for_update=True)
    table_store.change(connection, table.evolve(index=index, updated_at=now))
    snapshot_store.forget(connection, job.table_id)
    watch_store.start_over(connection, job.table_id, now)
