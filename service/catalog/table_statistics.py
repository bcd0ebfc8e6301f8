"""Statistics of all tables together, for monitoring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from service.catalog.table_events import UNHEALTHY_AFTER
from service.db import schema
from service.lake.table import TableType

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

_s = schema.snapshots
_w = schema.watches


@dataclass(frozen=True)
class TableStatistics:
    """Figures of all tables together."""

    tables: int = 0
    unreadable: int = 0  # Tables whose last polls failed.
    with_gap: int = 0  # Tables whose commits were missed once.
    next_poll_at: datetime | None = None  # When the first poll is due.
    log_bytes: int = 0
    base_bytes: int = 0
    largest_log_bytes: int = 0
    delta_commits: int = 0  # Most commits since the last compaction of a merge-on-read table.
    timeline_commits: int = 0  # Most completed commits on an active timeline.


def statistics(connection: Connection) -> TableStatistics:
    """Reads one row of each table."""
    watched = connection.execute(
        sa.select(
            sa.func.count().label("tables"),
            sa.func.count(sa.case((_w.c.failures >= UNHEALTHY_AFTER, 1))).label("unreadable"),
            sa.func.count(_w.c.gap_at).label("with_gap"),
            sa.func.min(_w.c.next_poll_at).label("next_poll_at"),
        )
    ).one()
    is_merged = _s.c.summary["table_type"].as_string() == TableType.MERGE_ON_READ.value
    found = connection.execute(
        sa.select(
            _number(sa.func.sum(_field("log_bytes"))).label("log_bytes"),
            _number(sa.func.sum(_field("base_bytes"))).label("base_bytes"),
            _number(sa.func.max(_field("log_bytes"))).label("largest_log_bytes"),
            _number(sa.func.max(sa.case((is_merged, _field("since_compaction", "commits"))))).label("delta_commits"),
            _number(sa.func.max(_field("timeline_commits"))).label("timeline_commits"),
        )
    ).one()
    return TableStatistics(**watched._mapping, **found._mapping)


def backlogs(connection: Connection) -> dict[str, tuple[int, int]]:
    """Returns the bytes in logs and the commits since the last compaction, by table id."""
    query = sa.select(_s.c.table_id, _number(_field("log_bytes")), _number(_field("since_compaction", "commits")))
    return {table_id: (log_bytes, commits) for table_id, log_bytes, commits in connection.execute(query)}


def _field(*names: str) -> sa.ColumnElement[int]:
    """Returns a number of the summary; null where an earlier version of the service has not stored it."""
    found = _s.c.summary[names[0]] if len(names) == 1 else _s.c.summary[names]
    return sa.cast(found.as_string(), sa.BigInteger)


def _number(value: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    return sa.cast(sa.func.coalesce(value, 0), sa.BigInteger)
