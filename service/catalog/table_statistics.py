"""Statistics of all tables for monitoring."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from jobs.spec import Documented, Spec
from service.catalog.table_events import UNHEALTHY_AFTER
from service.db import schema
from service.db.engine import decoded

_s = schema.snapshots
_w = schema.watches


@dataclass(frozen=True)
class TableStatistics:
    """Figures of all tables together."""

    tables: int = 0
    unreadable: int = 0  # Tables whose last polls failed.
    with_gap: int = 0  # Tables with commits that were archived before a poll saw them.
    next_poll_at: datetime | None = None  # When the first poll is due.
    log_bytes: int = 0
    base_bytes: int = 0
    largest_log_bytes: int = 0
    delta_commits: int = 0  # The largest number of commits since the last compaction of a merge-on-read table.
    timeline_commits: int = 0  # The largest number of completed commits on an active timeline.


@dataclass(frozen=True)
class TableBacklog(Documented):
    """The work that the table services of a table have not done yet."""

    log_bytes: Annotated[int, Spec("Size of the log files of all partitions", examples=(3328599654,))]
    base_bytes: Annotated[int, Spec("Size of the latest base files of all partitions", examples=(2040109465,))]
    commits: Annotated[int, Spec("Commits since the last compaction", examples=(21,))]
    last_commit_at: datetime | None
    metadata_commits: Annotated[
        int | None, Spec("Commits of the metadata table since its last compaction; null without one", examples=(3,))
    ] = None

    @property
    def log_ratio(self) -> float | None:
        """Log bytes divided by base bytes; None without base files."""
        return round(self.log_bytes / self.base_bytes, 4) if self.base_bytes else None


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
    found = connection.execute(_SUMS).one()
    return TableStatistics(**watched._mapping, **found._mapping)


def backlogs(connection: Connection) -> dict[str, TableBacklog]:
    """Returns the backlogs of the tables that were polled, by table id."""
    query = sa.select(_s.c.table_id, sa.cast(_s.c.summary, sa.Text))
    found = {}
    for table_id, text in connection.execute(query):
        summary = decoded(text, _Summary)
        totals, since = summary.totals or _Totals(), summary.since_compaction
        own = summary.metadata_table.commits if summary.metadata_table else None
        found[table_id] = TableBacklog(totals.log_bytes, totals.base_bytes, since.commits, summary.last_commit_at, own)
    return found


class _Totals(msgspec.Struct):
    log_bytes: int = 0
    base_bytes: int = 0


class _Since(msgspec.Struct):
    commits: int


class _Summary(msgspec.Struct):
    """The members of a stored snapshot that a backlog needs. Parsing the snapshot here is several times as fast as
    parsing it in the database."""

    since_compaction: _Since
    totals: _Totals | None = None
    last_commit_at: datetime | None = None
    metadata_table: _Since | None = None


def _whole(value: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    return sa.cast(sa.func.coalesce(value, 0), sa.BigInteger)


# A figure is null if an earlier version of the service wrote the summary without it.
_SUMS = sa.select(
    *(_whole(sa.func.sum(_s.c[name])).label(name) for name in ("log_bytes", "base_bytes")),
    _whole(sa.func.max(_s.c.log_bytes)).label("largest_log_bytes"),
    *(_whole(sa.func.max(_s.c[name])).label(name) for name in ("delta_commits", "timeline_commits")),
)
