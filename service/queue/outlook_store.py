"""Reads from the database what a forecast needs: the queue, what workers hold, and what ended jobs have taken."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from service.db import schema
from service.queue import lock_sighting_store
from service.queue.durations import Durations
from service.queue.job import HELD, JobState

if TYPE_CHECKING:
    from datetime import datetime

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
    is_locked = _j.c.mutating & _j.c.table_id.in_(lock_sighting_store.locked(now))
    columns = (
        *(*_OF_JOB, _j.c.priority, _j.c.created_at, _j.c.not_before, _j.c.waits_for_writers),
        *(_IS_OF_POLICY, is_locked.label("is_locked"), _j.c.held_back),
    )
    order = (_j.c.priority.desc(), _j.c.created_at, _j.c.id)
    query: sa.Select[Any] = sa.select(*columns).where(_IS_QUEUED).order_by(*order).limit(MOST_QUEUED)
    return [QueuedRow(*row) for row in connection.execute(query)]


def held(connection: Connection) -> list[HeldRow]:
    query: sa.Select[Any] = sa.select(*_OF_JOB, _j.c.leased_at, _IS_OF_POLICY)
    return [HeldRow(*row) for row in connection.execute(query.where(_IS_HELD, _j.c.leased_at.is_not(None)))]


def used(connection: Connection) -> dict[str, float]:
    """Returns how the tables that have queued jobs have used slots (`service.queue.slot_use`)."""
    tables = sa.select(_j.c.table_id).where(_IS_QUEUED).distinct()
    query = sa.select(_t.c.table_id, _t.c.used).where(_t.c.table_id.in_(tables), _t.c.used.is_not(None))
    return {row.table_id: row.used for row in connection.execute(query)}


@dataclass
class Lessons:
    """What the jobs tell that ended from `since` until `until`, as far as they have been read: both None before the
    first. Each reading is short, so that none takes long; the oldest jobs come last."""

    durations: Durations = field(default_factory=Durations)
    since: datetime | None = None
    until: datetime | None = None
    _read: int = 0

    def go_on(self, connection: Connection) -> None:
        """Takes in the jobs that have ended since, and some thousand older ones until there are MOST_LEARNED."""
        if self._read:
            newer = _ended() if self.until is None else _ended().where(_j.c.finished_at > self.until)
            for row in connection.execute(newer.order_by(_j.c.finished_at).limit(_AT_ONCE)):
                self.durations.learn(row.table_id, row.kind, dry_run=row.dry_run, seconds=_seconds(row))
                self.until = row.finished_at
        if self._read >= MOST_LEARNED:
            return
        older = _ended() if self.since is None else _ended().where(_j.c.finished_at < self.since)
        rows = connection.execute(older.order_by(_j.c.finished_at.desc()).limit(_AT_ONCE)).all()
        for row in rows:
            self.durations.learn_older(row.table_id, row.kind, dry_run=row.dry_run, seconds=_seconds(row))
        self._read += _AT_ONCE if len(rows) == _AT_ONCE else MOST_LEARNED
        if rows:
            self.since, self.until = rows[-1].finished_at, self.until or rows[0].finished_at


def _ended() -> sa.Select[Any]:
    # What a user has cancelled tells nothing.
    is_ended = _j.c.state.in_([JobState.SUCCEEDED.value, JobState.FAILED.value])
    columns = (_j.c.table_id, _j.c.kind, _j.c.dry_run, _j.c.leased_at, _j.c.finished_at)
    return sa.select(*columns).where(_j.c.finished_at.is_not(None), _j.c.leased_at.is_not(None), is_ended)


def _seconds(row: sa.Row[Any]) -> float:
    return float(max(0.0, (row.finished_at - row.leased_at).total_seconds()))


def sizes(connection: Connection) -> dict[str, int]:
    """Returns the bytes of base files and logs of the tables that have been polled."""
    query = sa.select(_s.c.table_id, _bytes("base_bytes") + _bytes("log_bytes"))
    return {table_id: int(number) for table_id, number in connection.execute(query)}


def _bytes(name: str) -> sa.ColumnElement[int]:
    return sa.func.coalesce(sa.cast(_s.c.summary[name].as_string(), sa.BigInteger), 0)
