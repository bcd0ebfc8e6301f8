"""Facts of the database beside an event about a job, for OpenLineage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.catalog import table_store
from service.delivery.open_lineage import Facts, Statistics
from service.model.job_errors import JobNotFoundError
from service.model.table_errors import TableNotFoundError
from service.queue import job_store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

    from service.events.event import Event


def facts(connection: Connection, event: Event) -> Facts:
    """Returns what is known of the event's table and job now; nothing if they are gone."""
    if event.table_id is None:
        return Facts()
    try:
        columns = _columns(table_store.get(connection, event.table_id).profile)
        result = job_store.get(connection, event.data["job"]["id"]).result if "job" in event.data else None
    except (TableNotFoundError, JobNotFoundError):
        return Facts()
    if not result:
        return Facts(columns)
    return Facts(
        columns,
        # A compaction's `bytes` and `files` are what it read.
        read=Statistics(None, _count(result, "bytes_read", "bytes"), _count(result, "files_read", "files")),
        written=Statistics(_count(result, "rows"), _count(result, "bytes_written"), _count(result, "files_written")),
    )


def _columns(profile: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    found = [column for column in profile.get("columns") or () if isinstance(column, dict)]
    return tuple((str(column.get("name")), str(column.get("type"))) for column in found)


def _count(result: Mapping[str, Any], *names: str) -> int | None:
    """Returns the first that is there and a number; a worker may send anything."""
    for name in names:
        value = result.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None
