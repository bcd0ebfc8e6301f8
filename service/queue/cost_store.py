"""Stores and reads the input of the cost model: ended attempts, and the sizes of tables."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, assert_never
from urllib.parse import urlsplit

import sqlalchemy as sa
from sqlalchemy import Connection

from jobs.contract import JobKind
from jobs.kinds.kind import WorksOn
from jobs.kinds.registry import KINDS
from jobs.kinds.results import Work
from service.catalog import snapshot_store
from service.db import schema
from service.lake.snapshot import Totals
from service.queue.circumstances import UNKNOWN, Circumstances
from service.queue.cost import Cost, CostPart, Ended
from service.queue.cost_model import CostModel
from service.queue.outlook_store import LeasedRow, QueuedRow

_c = schema.attempt_costs
_t = schema.tables

MOST_LEARNED = 50_000
_AT_ONCE = 4000
# Sizes of tables are read again after this time.
_FRESH_SECONDS = 10.0
# A larger number, which only a broken worker reports, is replaced by this one, so that it fits into the column.
_MOST = 2**50
_MOST_GIB = 1e6
_ENDED_AFTER = sa.select(_c).where(_c.c.id > sa.bindparam("after")).order_by(_c.c.id).limit(_AT_ONCE)
_ENDED_BEFORE = sa.select(_c).where(_c.c.id < sa.bindparam("before")).order_by(_c.c.id.desc()).limit(_AT_ONCE)
_KINDS = {each.value: each for each in JobKind}


@dataclass
class Lessons:
    """The cost model, and the positions between which ended attempts were read. A call reads the new attempts and some
    older ones, so it is short."""

    model: CostModel = field(default_factory=CostModel)
    totals: dict[str, Totals] = field(default_factory=dict)
    _first: int | None = None
    _last: int = 0
    _read: int = 0
    _measured_at: float = 0.0

    def look_up_shapes(self, connection: Connection) -> None:
        """Reads the shape of each table: the kind of its storage."""
        rows = connection.execute(sa.select(_t.c.id, _t.c.base_path))
        self.model.shapes = {row.id: urlsplit(row.base_path).scheme for row in rows}

    def measure(self, connection: Connection, table_ids: Collection[str]) -> None:
        """Reads the sizes of these tables as the last poll found them, unless they were read a moment ago."""
        if time.monotonic() - self._measured_at > _FRESH_SECONDS:
            self.totals, self._measured_at = {}, time.monotonic()
        if missing := set(table_ids) - self.totals.keys():
            self.totals.update(snapshot_store.totals(connection, missing))

    def go_on(self, connection: Connection) -> None:
        """Reads the attempts that have ended since the last call, and some thousand older ones as long as fewer than
        MOST_LEARNED were read."""
        if self._first is not None:
            for row in connection.execute(_ENDED_AFTER, {"after": self._last}):
                if _is_sound(row):
                    self.model.learn(_ended(row))
                self._last = row.id
        if self._read >= MOST_LEARNED:
            return
        before = 2**62 if self._first is None else self._first
        rows = connection.execute(_ENDED_BEFORE, {"before": before}).all()
        for row in filter(_is_sound, rows):
            self.model.learn_older(_ended(row))
        self._read += _AT_ONCE if len(rows) == _AT_ONCE else MOST_LEARNED
        self._last = max(self._last, rows[0].id if rows else 0)
        self._first = rows[-1].id if rows else self._first or 0

    def read_all(self, connection: Connection) -> None:
        """Reads in one call what repeated calls of `go_on` read."""
        while self._first is None or self._read < MOST_LEARNED:
            self.go_on(connection)

    def expected(
        self,
        table_id: str,
        kind: str,
        *,
        dry_run: bool,
        work: Work | None = None,
        circumstances: Circumstances = UNKNOWN,
    ) -> Cost:
        """Returns the expected cost of a job. If `work` is None, the work is estimated from the last poll of the
        table."""
        work = work or self._work(table_id, kind)
        return self.model.expected(table_id, kind, work, dry_run=dry_run, circumstances=circumstances)

    def of_rows(self, queued: Iterable[QueuedRow], leased: Iterable[LeasedRow]) -> dict[str, Cost]:
        """Returns the expected costs by id of the job: of queued jobs, and of jobs that workers have, under their
        present circumstances."""
        costs = {each.id: self.expected(each.table_id, each.kind, dry_run=each.dry_run) for each in queued}
        for each in leased:
            found = self.expected(each.table_id, each.kind, dry_run=each.dry_run, circumstances=each.circumstances)
            costs[each.id] = found
        return costs

    def _work(self, table_id: str, kind: str) -> Work:
        totals, known = self.totals.get(table_id), _KINDS.get(kind)
        return Work() if totals is None or known is None else work_of(known, totals)


def record(connection: Connection, ended: Ended, at: datetime) -> None:
    row = {
        "ended_at": at,
        "table_id": ended.table_id,
        "kind": ended.kind,
        "dry_run": ended.dry_run,
        "succeeded": ended.is_good,
        **{part.value: getattr(ended, part.value) for part in CostPart},
        "gib": ended.gib,
        "work_bytes": min(ended.work.bytes, _MOST),
        "work_files": min(ended.work.files, _MOST),
        **ended.circumstances._asdict(),
    }
    connection.execute(_c.insert(), row)


def prune(connection: Connection, before: datetime, limit: int) -> int:
    """Deletes at most `limit` attempts that ended before `before`, and returns how many."""
    old = sa.select(_c.c.id).where(_c.c.ended_at < before).limit(limit)
    return connection.execute(_c.delete().where(_c.c.id.in_(old))).rowcount


def _is_sound(row: sa.Row[Any]) -> bool:
    """Returns whether the figures of an attempt are possible. The model must not learn from a damaged row."""
    amounts = ((part, getattr(row, part.value)) for part in CostPart)
    are_possible = all(amount is None or 0 <= amount < part.most for part, amount in amounts)
    circumstances = all(each is None or 0 <= each < _MOST for each in (row.jobs_before, row.jobs_beside))
    return are_possible and circumstances and 0 <= row.gib < _MOST_GIB and row.work_bytes >= 0 and row.work_files >= 0


def _ended(row: sa.Row[Any]) -> Ended:
    work = Work(row.work_bytes, row.work_files)
    amounts = {part.value: getattr(row, part.value) for part in CostPart}
    given = Circumstances(row.jobs_before, row.jobs_beside)
    known = {"work": work, "gib": row.gib, "is_good": row.succeeded, "circumstances": given}
    return Ended(row.table_id, row.kind, row.dry_run, **known, **amounts)


def work_of(kind: JobKind, totals: Totals) -> Work:
    """Returns an estimate of the work of a job without limits, according to the last poll of its table. The job itself
    finds out the real amount."""
    match works_on := KINDS[kind].works_on:
        case WorksOn.EVERYTHING:
            return Work(totals.base_bytes + totals.log_bytes, totals.base_files + totals.log_files)
        case WorksOn.LOGGED:
            return Work(totals.logged_bytes, totals.log_files + min(totals.log_files, totals.base_files))
        case WorksOn.OUT_OF_USE:
            return Work(totals.freed_bytes, totals.freed_files)
        case WorksOn.TIMELINE:
            return Work()
        case _:
            assert_never(works_on)
