"""Makes snapshots for policies, with only the values that a case needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from service.incidents.incident import Incident, IncidentKind, IncidentState
from service.lake.snapshot import PartitionState, Pending, Since, TableSnapshot
from service.lake.table import TableType

if TYPE_CHECKING:
    from collections.abc import Mapping

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
MIB = 1024**2


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)


def since(commits: int = 0, *, hours: float | None = None, bytes_written: int = 0) -> Since:
    return Since(commits, bytes_written, None if hours is None else ago(hours=hours))


def plan(
    action: str = "compaction", state: str = "requested", *, hours: float | None = 0.1, at: str = "001"
) -> Pending:
    requested_at = None if hours is None else ago(hours=hours)
    return Pending(at, action, state, requested_at, is_plan=True)


def a_snapshot(*partitions: PartitionState, **changes: Any) -> TableSnapshot:
    """Returns the snapshot of a merge-on-read table that was written a minute ago."""
    known: dict[str, Any] = {
        "table_id": "tbl_1",
        "taken_at": NOW,
        "table_type": TableType.MERGE_ON_READ,
        "partitions": partitions,
        "last_commit_at": ago(minutes=1),
        "first_commit_at": ago(days=10),
        "small_file_bytes": 100 * MIB,
    }
    return TableSnapshot(**{**known, **changes})


def an_incident(
    kind: IncidentKind = IncidentKind.STALE_WRITE,
    state: IncidentState = IncidentState.OPEN,
    *,
    instant: str = "20260101115900000",
    details: Mapping[str, Any] | None = None,
) -> Incident:
    """Returns an incident that was found half a minute ago."""
    figures = {"rows": 7, **(details or {})}
    return Incident(f"inc_{kind}_{instant}", "tbl_1", kind, instant, state, ago(seconds=30), details=figures)
