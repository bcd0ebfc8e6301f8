"""Statistics of the jobs that have not ended, for monitoring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema

_j = schema.jobs

_GROUPS = sa.select(_j.c.worker_group).where(schema.JOB_IS_QUEUED, _j.c.not_before <= sa.bindparam("now")).distinct()

# Statements are built once, because building takes longer than executing. There is one query for each partial index.
_ACTIVE = sa.union_all(
    *(
        sa.select(_j.c.kind, _j.c.state, sa.func.count()).where(each).group_by(_j.c.kind, _j.c.state)
        for each in (schema.JOB_IS_QUEUED, schema.JOB_HAS_WORKER, schema.JOB_IS_UNKNOWN)
    )
)
_OLDEST = (
    sa.select(_j.c.worker_group, sa.func.min(_j.c.not_before).label("due"))
    .where(schema.JOB_IS_QUEUED, _j.c.not_before <= sa.bindparam("now"), sa.not_(_j.c.waits_for_writers))
    .group_by(_j.c.worker_group)
)


@dataclass(frozen=True)
class QueueStatistics:
    """`active` counts the jobs that have not ended or are of unknown outcome, by kind and state. `oldest` has the time
    at which the oldest due job of each worker group became due. Jobs that wait for a retry or for the writers are not
    due."""

    active: Mapping[tuple[str, str], int]
    oldest: Mapping[str, datetime]


def groups(connection: Connection, now: datetime) -> list[str]:
    """Returns the worker groups that have a due job."""
    return list(connection.execute(_GROUPS, {"now": now}).scalars())


def statistics(connection: Connection, now: datetime) -> QueueStatistics:
    """Reads only the jobs that have not ended, by the partial indexes."""
    active = {(kind, state): number for kind, state, number in connection.execute(_ACTIVE)}
    oldest = {row.worker_group: row.due for row in connection.execute(_OLDEST, {"now": now})}
    return QueueStatistics(active, oldest)
