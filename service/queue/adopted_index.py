"""Updates the registered bucket index of a table after a job that has given the table such an index, or removed it."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from jobs.contract import BucketIndex
from jobs.kinds.bucket_index import BucketIndexResult
from jobs.kinds.results import KindResult
from service.catalog import snapshot_store, table_store, watch_store
from service.queue.job import Job


def register(connection: Connection, job: Job, found: KindResult, now: datetime) -> None:
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
