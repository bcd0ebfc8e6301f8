"""Commits and the state of tables: /v1/commits, and below /v1/tables/{id}"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query
from pydantic import StringConstraints

from service.access.token import Role
from service.api.answers import PageOf
from service.api.dependencies import DatabaseDep, LakeDep, needs
from service.api.observed import (
    BucketsOfPartition,
    BucketsOut,
    CommitOut,
    HistoryOut,
    SampleOut,
    SnapshotOut,
    TimelineOut,
)
from service.api.query_parameters import Asked, OfTable, Since, Until
from service.api.requests import ACTION
from service.api.routes import Routes
from service.api.structs import struct_of
from service.api.tables import STORAGE_ERRORS, TableId
from service.catalog import commit_store, sample_store, snapshot_store, watch_store
from service.catalog.watch import Watch
from service.db.engine import reading
from service.lake.active_timeline import read_active_timeline
from service.model import storage_errors, table_errors
from service.model.formatting import count

router = Routes(prefix="/v1", tags=["commits"], dependencies=[Depends(needs(Role.READER))])

Partitions = Annotated[int, Query(ge=0, le=10_000, description="Maximum number of partitions, largest first")]


@router.on("GET /commits", "List commits, latest first")
def list_commits(
    database: DatabaseDep,
    *,
    table_id: OfTable = None,
    action: Annotated[
        list[Annotated[str, StringConstraints(max_length=32, pattern=ACTION)]],
        Query(description="May be repeated. Default: any", max_length=20, examples=[["deltacommit", "commit"]]),
    ] = [],
    asked: Asked,
) -> PageOf[CommitOut]:
    """Lists the completed instants of all tables, by writers and table services, in the order of completion."""
    with reading(database.engine) as connection:
        page = commit_store.page(connection, asked, table_id=table_id, actions=action)
    return PageOf[CommitOut].of_page(page, CommitOut.of)


@router.on(
    "GET /tables/{table_id}/timeline",
    "Show a table's active timeline",
    storage_errors.PathNotFoundError,
    *STORAGE_ERRORS,
)
def get_timeline(table_id: TableId, database: DatabaseDep, lake: LakeDep) -> TimelineOut:
    """Reads the table's storage now. Pending instants have their age and heartbeat."""
    with reading(database.engine) as connection:
        watch = watch_store.get(connection, table_id)
    found = lake.readers.run(read_active_timeline, watch.base_path, lake.storage_options, lake.permissions.roots)
    return TimelineOut.of(found, watch, database.clock())


@router.on("GET /tables/{table_id}/snapshot", "Show the state of a table", table_errors.SnapshotNotTakenError)
def get_snapshot(table_id: TableId, database: DatabaseDep, partitions: Partitions = 100) -> SnapshotOut:
    """Returns the state as of the last observed change of the timeline."""
    with reading(database.engine) as connection:
        watch = watch_store.get(connection, table_id)
        found = snapshot_store.get(connection, table_id)
    if found is None:
        raise _not_taken(watch)
    return SnapshotOut.of(found, watch, database.clock(), partitions)


@router.on("GET /tables/{table_id}/history", "Show how a table's backlog and files have developed")
def get_history(
    table_id: TableId,
    database: DatabaseDep,
    *,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, Query(ge=1, le=2000, description="Number of samples, the newest of the period")] = 500,
) -> HistoryOut:
    """Returns samples of polls that found the timeline changed: at most one for each five minutes of the last day, for
    each hour of the last 30 days, and for each day before."""
    with reading(database.engine) as connection:
        watch_store.get(connection, table_id)
        found = sample_store.of_table(connection, table_id, database.clock(), since=since, until=until, limit=limit)
    return struct_of(HistoryOut)(items=[SampleOut.of(sample) for sample in found])


@router.on("GET /tables/{table_id}/buckets", "Show the size of each bucket", table_errors.SnapshotNotTakenError)
def get_buckets(table_id: TableId, database: DatabaseDep, partitions: Partitions = 100) -> BucketsOut:
    """Returns bytes, rows and skew of the buckets of each partition."""
    with reading(database.engine) as connection:
        watch = watch_store.get(connection, table_id)
        stored = snapshot_store.find(connection, table_id)
        details = snapshot_store.details(connection, table_id)
    if stored is None:
        raise _not_taken(watch)
    found = [
        BucketsOfPartition.of(each) for each in details.values() if each.state.num_buckets and each.state.has_files
    ]
    found.sort(key=lambda each: (-each.bytes, each.path))
    return BucketsOut(
        taken_at=stored.snapshot.taken_at,
        num_buckets=stored.snapshot.num_buckets,
        num_partitions=len(found),
        partitions=found[:partitions],
    )


def _not_taken(watch: Watch) -> table_errors.SnapshotNotTakenError:
    if watch.error is None:
        return table_errors.SnapshotNotTakenError("The table has not been polled yet.")
    failed = f"{count(watch.failures, 'poll')} failed. {watch.error.title}: {watch.error.detail}"
    return table_errors.SnapshotNotTakenError(failed, hint=watch.error.hint)
