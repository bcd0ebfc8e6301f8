"""Events that result from a poll of a table: its new commits, and whether the table can be read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection

from jobs.contract import Problem
from service.catalog import table_store
from service.catalog.registration import Registration
from service.catalog.table_events import UNHEALTHY_AFTER, event_of_table, table_recovered, table_unhealthy
from service.catalog.watch import Watch
from service.events.event import Event, EventType
from service.lake.commit import Commit

MOST_PARTITIONS = 100
"""Maximum number of partitions that an event names. Receivers can read the others from the table."""


def of_poll(
    table: Registration, watch: Watch, commits: Sequence[Commit], open_incidents: int, now: datetime
) -> list[Event]:
    """Returns events for new commits, and for the recovery of the table if it can be polled and has no open incidents.

    `watch` still counts the polls that failed before this one.
    """
    published = [commit for commit in commits if commit.is_news]
    is_back = watch.failures >= UNHEALTHY_AFTER and not open_incidents
    if not published and not is_back:
        return []
    events = [table_recovered(table, now)] if is_back else []
    return [*events, *(commit_published(commit, table) for commit in published)]


def of_failed_poll(
    connection: Connection, table_id: str, failures: int, problem: Problem, now: datetime
) -> list[Event]:
    """Returns the events of a failed poll; `failures` polls in a row have failed, including this one."""
    if failures != UNHEALTHY_AFTER:
        return []
    return [table_unhealthy(table_store.get(connection, table_id), problem, now)]


def commit_published(commit: Commit, table: Registration) -> Event:
    data = {
        "instant": commit.requested_time,
        "action": commit.action,
        "operation": commit.operation,
        "completion_time": commit.completion_time,
        "rows_written": commit.rows_written,
        "rows_deleted": commit.rows_deleted,
        "bytes_written": commit.bytes_written,
        "partitions": list(commit.partitions[:MOST_PARTITIONS]),
        "partition_count": len(commit.partitions),
        "file_groups": commit.file_groups,
        "schema_changed": commit.schema_changed,
    }
    return event_of_table(
        EventType.COMMIT_PUBLISHED,
        table,
        commit.seen_at,
        (commit.table_id, commit.requested_time, commit.action),
        {"commit": data},
    )
