"""Facts of the database about the table and the job of an event, for OpenLineage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from jobs.kinds.results import KindResult
from service.catalog import table_store
from service.delivery.open_lineage import Facts, Statistics
from service.events.event import Event
from service.model.job_errors import JobNotFoundError
from service.model.table_errors import TableNotFoundError
from service.queue import job_store


def facts(connection: Connection, event: Event) -> Facts:
    """Returns what is known about the event's table and job; empty if they were deleted."""
    if event.table_id is None:
        return Facts()
    try:
        columns = _columns(table_store.get(connection, event.table_id).profile)
        job = job_store.get(connection, event.data["job"]["id"]) if "job" in event.data else None
    except (TableNotFoundError, JobNotFoundError):
        return Facts()
    if job is None or not job.result:
        return Facts(columns)
    parsed = job.parsed_result
    return Facts(
        columns,
        # A compaction's `bytes` and `files` are what it read.
        read=Statistics(None, _count(parsed, "bytes_read", "bytes"), _count(parsed, "files_read", "files")),
        written=Statistics(_count(parsed, "rows"), _count(parsed, "bytes_written"), _count(parsed, "files_written")),
    )


def _columns(profile: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    found = [column for column in profile.get("columns") or () if isinstance(column, dict)]
    return tuple((str(column.get("name")), str(column.get("type"))) for column in found)


def _count(parsed: KindResult, *names: str) -> int | None:
    """Returns the first of these members of the result that is set to a number."""
    found = (getattr(parsed, name, None) for name in names)
    return next((each for each in found if isinstance(each, int) and each >= 0), None)
