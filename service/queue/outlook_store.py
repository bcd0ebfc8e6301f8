"""Reads the data of a forecast: queued jobs, jobs that workers hold, and the durations of ended jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from service.db import schema
from service.queue import lock_sighting_store
from service.queue.durations import Durations
from service.queue.job import HELD, JobState
from service.queue.lock_sighting import FRESH

if TYPE_CHECKING:
    from sqlalchemy import Connection

_j = schema.jobs
_s = schema.snapshots
_t = schema.turns

MOST_QUEUED = 10_000
"""Jobs beyond this number are only counted."""
MOST_LEARNED = 50_000
_AT_ONCE = 4000

# Literals, not parameters: only then does SQLite use the small partial indexes of queued and of held jobs.
_IS_QUEUED = _j.c.state == sa.literal_column(f"'{JobState.QUEUED.value}'")
_IS_HELD = _j.c.state.in_([sa.literal_column(f"'{state.value}'") for state in HELD])
_IS_OF_POLICY = _j.c.reason.is_not(None).label("is_of_policy")
_OF_JOB = (_j.c.id, _j.c.table_id, _j.c.kind, _j.c.dry_run, _j.c.mutating, _j.c.worker_group)
# Every submission executes these statements, so they are built once.
_LOCKED = lock_sighting_store.locked(sa.bindparam("looked_after", type_=schema.UtcDateTime))
_QUEUED: sa.Select[Any] = (
    sa.select(
        *(*_OF_JOB, _j.c.priority, _j.c.created_at, _j.c.not_before, _j.c.waits_for_writers),
        _IS_OF_POLICY,
        (_j.c.mutating & _j.c.table_id.in_(_LOCKED)).label("is_locked"),
        _j.c.held_back,
    )
    .where(_IS_QUEUED)
    .order_by(_j.c.priority.desc(), _j.c.created_at, _j.c.id)
    .limit(MOST_QUEUED)
)
_HELD: sa.Select[Any] = sa.select(*_OF_JOB, _j.c.leased_at, _IS_OF_POLICY).where(_IS_HELD, _j.c.leased_at.is_not(None))
_USED = sa.select(_t.c.table_id, _t.c.used).where(
    _t.c.table_id.in_(sa.select(_j.c.table_id).where(_IS_QUEUED).distinct()), _t.c.used.is_not(None)
)
# The durations of cancelled jobs do not count.
_ENDED: sa.Select[Any] = sa.select(_j.c.table_id, _j.c.kind, _j.c.dry_run, _j.c.leased_at, _j.c.finished_at).where(
    _j.c.finished_at.is_not(None),
    _j.c.leased_at.is_not(None),
    _j.c.state.in_([JobState.SUCCEEDED.value, JobState.FAILED.value]),
)
_ENDED_AFTER = _ENDED.where(_j.c.finished_at > sa.bindparam("after")).order_by(_j.c.finished_at).limit(_AT_ONCE)


@dataclass(frozen=True, slots=True)
class QueuedRow:
    id: str
    table_id: str
    kind: str
    dry_run: bool
    mutating: bool
    worker_group: str
    priority: int
    created_at: datetime
    not_before: datetime
    waits_for_writers: bool
    is_of_policy: bool = False
    is_locked: bool = False
    held_back: str | None = None


@dataclass(frozen=True, slots=True)
class HeldRow:
    id: str
    table_id: str
    kind: str
    dry_run: bool
    mutating: bool
    worker_group: str
    leased_at: datetime
    is_of_policy: bool = False


def queued(connection: Connection, now: datetime) -> list[QueuedRow]:
    """Returns the queued jobs, at most MOST_QUEUED of them, those with the highest priority and the oldest first."""
    return [QueuedRow(*row) for row in connection.execute(_QUEUED, {"looked_after": now - FRESH})]


def held(connection: Connection) -> list[HeldRow]:
    return [HeldRow(*row) for row in connection.execute(_HELD)]


def used(connection: Connection) -> dict[str, float]:
    """Returns the slot use of tables with queued jobs (`service.queue.slot_use`)."""
    return {row.table_id: row.used for row in connection.execute(_USED)}


@dataclass
class Lessons:
    """The durations that have been read so far: of the jobs that ended from `since` until `until`. Both are None before
    the first reading. Each reading is short and reads older jobs than the one before."""

    durations: Durations = field(default_factory=Durations)
    since: datetime | None = None
    until: datetime | None = None
    _read: int = 0

    def go_on(self, connection: Connection) -> None:
        """Reads the jobs that have ended since the last reading, and some thousand older ones until there are
        MOST_LEARNED."""
        if self._read:
            after = datetime.min.replace(tzinfo=UTC) if self.until is None else self.until
            for row in connection.execute(_ENDED_AFTER, {"after": after}):
                self.durations.learn(row.table_id, row.kind, dry_run=row.dry_run, seconds=_seconds(row))
                self.until = row.finished_at
        if self._read >= MOST_LEARNED:
            return
        older = _ENDED if self.since is None else _ENDED.where(_j.c.finished_at < self.since)
        rows = connection.execute(older.order_by(_j.c.finished_at.desc()).limit(_AT_ONCE)).all()
        for row in rows:
            self.durations.learn_older(row.table_id, row.kind, dry_run=row.dry_run, seconds=_seconds(row))
        self._read += _AT_ONCE if len(rows) == _AT_ONCE else MOST_LEARNED
        if rows:
            self.since, self.until = rows[-1].finished_at, self.until or rows[0].finished_at


def _seconds(row: sa.Row[Any]) -> float:
    return float(max(0.0, (row.finished_at - row.leased_at).total_seconds()))


def sizes(connection: Connection) -> dict[str, int]:
    """Returns the bytes of base files and logs of the tables that have been polled."""
    query = sa.select(_s.c.table_id, _bytes("base_bytes") + _bytes("log_bytes"))
    return {table_id: int(number) for table_id, number in connection.execute(query)}


def _bytes(name: str) -> sa.ColumnElement[int]:
    return sa.func.coalesce(sa.cast(_s.c.summary[name].as_string(), sa.BigInteger), 0)
