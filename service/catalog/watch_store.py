"""Store of watches: the tables to poll next, and the results of the last polls."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from jobs.contract import Problem, TableLock, WriterEngine
from service.catalog import table_store
from service.catalog.watch import Watch
from service.db import schema
from service.db.documents import Reading, pairs_of, rows_of
from service.lake import engine_sighting
from service.lake.engine_sighting import Sighting
from service.lake.table_lock import PolledLock

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from sqlalchemy import Connection

    from service.lake.engine_sighting import Mark, Sightings

_w = schema.watches
_t = schema.tables
_i = schema.incidents
_s = schema.snapshots

_WELL = {"failures": 0, "failing_since": None, "error": None}


def is_any_due(connection: Connection, now: datetime) -> bool:
    """Returns whether any table is due, without taking a write lock."""
    return connection.execute(ANY_DUE, {"now": now}).first() is not None


def claim(
    connection: Connection,
    *,
    now: datetime,
    next_poll_at: datetime,
    limit: int,
    requested: Collection[str] = (),
    insisted: Collection[str] = (),
    without: Collection[str] = (),
    failing_again_at: datetime | None = None,
) -> list[str]:
    """Claims at most `limit` tables that are requested or due, except those in `without`. Requested tables come first,
    then those that have been due for the longest time. A request for a table whose last poll failed counts only if the
    table is among `insisted`, because otherwise a writer could cause many polls of a table that cannot be read.

    Claimed tables are due again at `next_poll_at`. Those whose polls have failed before are due again at
    `failing_again_at`, if that is given. So a claim need not be released. If the process that claimed a table dies, the
    table is polled a little later. Concurrent calls are safe: on PostgreSQL each call skips the rows that another one
    has locked. Returns the ids of the claimed tables; `claimed` returns their watches.
    """
    given: dict[str, Any] = {
        "now": now,
        "again_at": next_poll_at,
        "failing_again_at": failing_again_at or next_poll_at,
        "most": limit,
        "without": list(without),
    }
    if requested:
        given |= {"requested": list(requested), "insisted": list(insisted)}
    return list(connection.execute(_claim_due(are_requested=bool(requested)), given).scalars())


def claimed(connection: Connection, table_ids: Collection[str], *, for_update: bool = False) -> list[Watch]:
    """Returns the watches of claimed tables that still exist. Callers may use another transaction than that of the
    claim, so that nobody has to wait for the claim's row locks. `for_update` is the same as in `get`."""
    query = _CLAIMED_LOCKED if for_update else _CLAIMED
    return [_watch(row) for row in connection.execute(query, {"claimed": list(table_ids)})]


def get(connection: Connection, table_id: str, *, for_update: bool = False) -> Watch:
    """Returns a watch. Raises TableNotFoundError. `for_update` locks it, so that two polls of a table are recorded one
    after the other."""
    row = connection.execute(_GET_LOCKED if for_update else _GET, {"of_table": table_id}).one_or_none()
    return table_store.existing(None if row is None else _watch(row), table_id)


def lock(connection: Connection, table_id: str) -> None:
    """Locks a watch, so that nobody else changes it until the transaction ends, and two polls are recorded one after
    the other. An SQLite database has only one writer at a time anyway."""
    if connection.dialect.name != "sqlite":
        connection.execute(_LOCKED, {"of_table": table_id})


def polled_lock(connection: Connection, table_id: str) -> PolledLock | None:
    """Returns the table's lock if it was held at the last poll."""
    row = connection.execute(_SEEN_LOCK, {"of_table": table_id}).one_or_none()
    return PolledLock(datetime.fromisoformat(row.since), row.holder) if row and row.since else None


def of_tables(connection: Connection, table_ids: Collection[str]) -> dict[str, Watch]:
    return {watch.table_id: watch for watch in claimed(connection, table_ids)}


def record_polls(connection: Connection, watches: Iterable[Watch]) -> None:
    """Records a successful poll of each table. The time of the next poll stays unchanged."""
    connection.execute(
        _UPDATE,
        [
            {
                "of_table": watch.table_id,
                **{name: getattr(watch, name) for name in _POLLED},
                "engines": engine_sighting.to_json(watch.engines),
            }
            for watch in watches
        ],
    )


def record_recovery(connection: Connection, table_id: str) -> None:
    """Records the first successful poll after failures, if it found nothing new."""
    connection.execute(_UPDATE, {"of_table": table_id})


def record_failure(
    connection: Connection, table_id: str, *, error: Problem, now: datetime, next_poll_at: datetime
) -> int:
    """Records a failed poll. Returns the number of failed polls in a row, 0 if the table no longer exists."""
    failures = connection.execute(
        _w.update()
        .where(_w.c.table_id == table_id)
        .values(
            failures=_w.c.failures + 1,
            failing_since=sa.func.coalesce(_w.c.failing_since, sa.literal(now, schema.UtcDateTime)),
            error=error.to_json(),
            next_poll_at=next_poll_at,
        )
        .returning(_w.c.failures)
    ).scalar()
    return failures or 0


def engines(connection: Connection, table_ids: Collection[str]) -> dict[str, Sightings]:
    """Returns the engine sightings of these tables, without the tables that are not watched."""
    return ENGINES.read(connection, {"of_tables": list(table_ids)})


def engines_of(connection: Connection, table_id: str) -> Sightings:
    return engines(connection, [table_id]).get(table_id, {})


def written_by(connection: Connection, table_ids: Collection[str], engine: WriterEngine) -> set[str]:
    """Returns which of these tables the engine writes, according to declarations and sightings."""
    seen = engines(connection, table_ids)
    tables = table_store.get_all(connection, table_ids)
    return {each for each, table in tables.items() if engine in table.writers.known_engines(seen.get(each, {}))}


def mark(connection: Connection, table_id: str, marks: Iterable[Mark]) -> None:
    """Adds marks that were not found by a poll. Concurrent calls are recorded one after the other."""
    sightings = engine_sighting.with_marks(get(connection, table_id, for_update=True).engines, marks)
    connection.execute(_w.update().where(_w.c.table_id == table_id).values(engines=engine_sighting.to_json(sightings)))


def start_over(connection: Connection, table_id: str, now: datetime) -> None:
    """Makes the next poll due now, and clears the fingerprint, so that the poll reads the whole timeline."""
    connection.execute(_w.update().where(_w.c.table_id == table_id).values(fingerprint=None, next_poll_at=now))


class _Row(NamedTuple):
    """The columns of a watch, with values as in JSON."""

    table_id: str
    next_poll_at: datetime
    fingerprint: str | None
    looked_at: datetime | None
    timeline_path: str | None
    active_from: str | None
    schema_digest: str | None
    has_pending: bool
    gap_at: datetime | None
    failures: int
    failing_since: datetime | None
    error: dict[str, Any] | None
    engines: dict[str, Any] | None
    base_path: str
    lock: dict[str, Any]
    has_late_files: bool
    since: str | None
    holder: str | None


def _joined() -> sa.Select[Any]:
    late = sa.exists().where(
        _i.c.table_id == _w.c.table_id, schema.INCIDENT_IS_STANDING, schema.INCIDENT_IS_OF_LATE_FILES
    )
    seen = [
        sa.select(_s.c.summary["lock", name].as_string()).where(_s.c.table_id == _w.c.table_id).scalar_subquery()
        for name in ("since", "holder")
    ]
    columns = (_t.c.base_path, _t.c.lock, late.label("has_late_files"), *map(sa.Label, ("since", "holder"), seen))
    return sa.select(_w, *columns).join_from(_w, _t, _w.c.table_id == _t.c.id)


# Every poll executes these statements, so they are built once.
_GET = _joined().where(_w.c.table_id == sa.bindparam("of_table"))
_GET_LOCKED = _GET.with_for_update(of=_w)
OF_TABLE: Reading[Watch | None] = rows_of(
    _Row, _GET.with_only_columns(*(_GET.selected_columns[name] for name in _Row._fields))
).then(lambda rows: next(map(_watch, rows), None))
"""Reads a watch, None if there is none."""
_LOCKED = sa.select(_w.c.table_id).where(_w.c.table_id == sa.bindparam("of_table")).with_for_update()
_CLAIMED = _joined().where(schema.among(_w.c.table_id, "claimed"))
_CLAIMED_LOCKED = _CLAIMED.order_by(_w.c.table_id).with_for_update(of=_w)
ENGINES: Reading[dict[str, Sightings]] = pairs_of(
    dict[WriterEngine, Sighting],
    sa.select(_w.c.table_id, _w.c.engines).where(schema.among(_w.c.table_id, "of_tables")),
)
"""Reads what `engines` returns."""
ANY_DUE = sa.select(_w.c.table_id).where(_w.c.next_poll_at <= sa.bindparam("now")).limit(1)
"""Selects a table whose poll is due `now`."""
_LOCK = [_s.c.summary["lock", name].as_string().label(name) for name in ("since", "holder")]
_SEEN_LOCK = sa.select(*_LOCK).where(_s.c.table_id == sa.bindparam("of_table"))


@cache
def _claim_due(*, are_requested: bool) -> sa.Update:
    def among(name: str) -> sa.ColumnElement[bool]:
        return schema.among(_w.c.table_id, name)

    is_due = _w.c.next_poll_at <= sa.bindparam("now")
    due = sa.select(_w.c.table_id).where(sa.not_(among("without"))).limit(sa.bindparam("most"))
    if are_requested:
        is_requested = among("requested") & ((_w.c.failures == 0) | among("insisted"))
        due = due.where(sa.or_(is_due, is_requested)).order_by(sa.case((is_requested, 0), else_=1), _w.c.next_poll_at)
    else:
        due = due.where(is_due).order_by(_w.c.next_poll_at)
    again, failing_again = (sa.bindparam(name, type_=schema.UtcDateTime) for name in ("again_at", "failing_again_at"))
    claimed = _w.update().where(_w.c.table_id.in_(due.with_for_update(skip_locked=True)))
    next_at = sa.case((_w.c.failures > 0, failing_again), else_=again)
    return claimed.values(next_poll_at=next_at).returning(_w.c.table_id)


_POLLED = ("timeline_path", "fingerprint", "looked_at", "active_from", "schema_digest", "has_pending", "gap_at")
_UPDATE = _w.update().where(_w.c.table_id == sa.bindparam("of_table")).values(**_WELL)


def _watch(row: sa.Row[Any] | _Row) -> Watch:
    return Watch(
        table_id=row.table_id,
        base_path=row.base_path,
        next_poll_at=row.next_poll_at,
        timeline_path=row.timeline_path,
        fingerprint=row.fingerprint,
        looked_at=row.looked_at,
        active_from=row.active_from,
        schema_digest=row.schema_digest,
        has_pending=row.has_pending,
        gap_at=row.gap_at,
        failures=row.failures,
        failing_since=row.failing_since,
        error=Problem.from_json(row.error) if row.error else None,
        has_late_files=row.has_late_files,
        engines=engine_sighting.from_json(row.engines),
        lock=TableLock.from_json(row.lock),
        polled_lock=PolledLock(datetime.fromisoformat(row.since), str(row.holder)) if row.since else None,
    )
