"""Statistics of the jobs that have not ended, for monitoring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.queue.job import HELD, JobState

_j = schema.jobs

_IS_QUEUED = _j.c.state == sa.literal_column(f"'{JobState.QUEUED.value}'")
_GROUPS = sa.select(_j.c.worker_group).where(_IS_QUEUED, _j.c.not_before <= sa.bindparam("now")).distinct()


def _active() -> sa.CompoundSelect[Any]:
    # There is one query for each partial index, because SQLite uses such an index only if the query has its states as
    # literals.
    queries = []
    for states in ((JobState.QUEUED,), HELD, (JobState.UNKNOWN,)):
        literals: list[sa.ColumnElement[str]] = [sa.literal_column(f"'{state.value}'") for state in states]
        is_in = _j.c.state == literals[0] if len(literals) == 1 else _j.c.state.in_(literals)
        queries.append(sa.select(_j.c.kind, _j.c.state, sa.func.count()).where(is_in).group_by(_j.c.kind, _j.c.state))
    return sa.union_all(*queries)


# Statements are built once, because building takes longer than executing.
_ACTIVE = _active()
_OLDEST = (
    sa.select(_j.c.worker_group, sa.func.min(_j.c.not_before).label("due"))
    .where(_IS_QUEUED, _j.c.not_before <= sa.bindparam("now"), sa.not_(_j.c.waits_for_writers))
    .group_by(_j.c.worker_group)
)


@dataclass(frozen=True)
class QueueStatistics:
    """`active` counts the jobs that have not ended or are of unknown outcome, by kind and state. `oldest` has, for each
    worker group, when its oldest due job became due; jobs that wait for a retry or for the writers are left out."""

    active: Mapping[tuple[str, str], int]
    oldest: Mapping[str, datetime]


def groups(connection: Connection, now: datetime) -> list[str]:
    """Returns the worker groups that have a job whose time has come."""
    return list(connection.execute(_GROUPS, {"now": now}).scalars())


def statistics(connection: Connection, now: datetime) -> QueueStatistics:
    """Reads only the jobs that have not ended, by the partial indexes."""
    active = {(kind, state): number for kind, state, number in connection.execute(_ACTIVE)}
    oldest = {row.worker_group: row.due for row in connection.execute(_OLDEST, {"now": now})}
    return QueueStatistics(active, oldest)
