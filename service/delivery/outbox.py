"""The outbox: events and their deliveries, written in the transaction of the change that they report.

Transactions publish one after the other: on PostgreSQL under a lock that lasts until the commit, on SQLite there is one
writer anyway. So `seq` grows in the order of the commits: a reader that has read up to some `seq` has not missed an
earlier event. Changes of webhooks take the same lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from service.db import schema
from service.delivery import delivery_store, webhook_store
from service.events import tally
from service.events.event import MOST_DISORDER, Event, Published

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection

_e = schema.events
_KNOWN = sa.select(_e.c.id).where(schema.among(_e.c.id, "ids"))
_WRITE = _e.insert().returning(_e.c.seq, sort_by_parameter_order=True)

# The key of the advisory lock: any number that no other lock in the same database uses.
_POSTGRESQL_LOCK = 7_202_611_002


def publish(connection: Connection, events: Sequence[Event], *, now: datetime) -> list[Published]:
    """Writes events, and a delivery for each webhook that subscribes to them. Returns the events that are new.

    Call it last in a transaction: the lock is then held only briefly, and never while waiting for another lock. After
    the commit, call `Notifier.notify`.
    """
    new = write(connection, events)
    if not new:
        return []
    wanted = [(hook.id, each) for hook in webhook_store.enabled(connection) for each in new if hook.wants(each.event)]
    delivery_store.enqueue(connection, wanted, now=now)
    tally.add(connection, tally.of_events(each.event for each in new))
    return new


def write(connection: Connection, events: Sequence[Event]) -> list[Published]:
    """Writes events without deliveries. Returns the events that are new."""
    if not events:
        return []
    lock(connection)
    ids = [event.id for event in events]
    known = set(connection.execute(_KNOWN, {"ids": ids}).scalars())
    new = list({event.id: event for event in events if event.id not in known}.values())
    if not new:
        return []
    rows = connection.execute(
        _WRITE,
        [
            {
                "id": event.id,
                "type": str(event.type),
                "at": event.at,
                "table_id": event.table_id,
                "data": dict(event.data),
            }
            for event in new
        ],
    )
    return [Published(seq, event) for seq, event in zip(rows.scalars(), new, strict=True)]


def lock(connection: Connection) -> None:
    """Locks the outbox: until the transaction ends no other one publishes, or adds, changes or removes webhooks."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _POSTGRESQL_LOCK})


def has(connection: Connection, event_id: str) -> bool:
    return connection.execute(sa.select(_e.c.seq).where(_e.c.id == event_id)).first() is not None


def newest(connection: Connection) -> int:
    """Returns the `seq` of the newest event, 0 before the first."""
    return connection.execute(sa.select(sa.func.max(_e.c.seq))).scalar() or 0


def after(connection: Connection, seq: int, limit: int) -> list[Published]:
    """Returns the events after `seq`, oldest first."""
    query = sa.select(_e).where(_e.c.seq > seq).order_by(_e.c.seq).limit(limit)
    return [published_of(row) for row in connection.execute(query)]


def of_type(connection: Connection, type_: str, *, after_seq: int, limit: int) -> list[Published]:
    """Returns the events of a type after `after_seq`, oldest first."""
    query = sa.select(_e).where(_e.c.seq > after_seq, _e.c.type == type_).order_by(_e.c.seq).limit(limit)
    return [published_of(row) for row in connection.execute(query)]


def before(connection: Connection, since: datetime) -> int:
    """Returns a `seq` after which all events from `since` on come."""
    first = sa.select(_e.c.seq).where(_e.c.at >= since - MOST_DISORDER).order_by(_e.c.at, _e.c.seq).limit(1)
    found: int | None = connection.execute(first).scalar()
    return newest(connection) if found is None else found - 1


def between(connection: Connection, since: datetime, until: datetime, *, after_seq: int, limit: int) -> list[Published]:
    """Returns the events after `after_seq` from `since` to `until` (exclusive), oldest first."""
    query = sa.select(_e).where(_e.c.at >= since, _e.c.at < until, _e.c.seq > after_seq).order_by(_e.c.seq).limit(limit)
    return [published_of(row) for row in connection.execute(query)]


def prune(connection: Connection, before: datetime, limit: int) -> int:
    """Deletes up to `limit` events before `before` with their deliveries, except events with an open delivery. Returns
    how many."""
    lock(connection)
    is_missing = sa.exists().where(schema.deliveries.c.event_seq == _e.c.seq, schema.DELIVERY_IS_OPEN)
    old = sa.select(_e.c.seq).where(_e.c.at < before, sa.not_(is_missing)).order_by(_e.c.at).limit(limit)
    return connection.execute(_e.delete().where(_e.c.seq.in_(old.scalar_subquery()))).rowcount


def published_of(row: sa.Row[Any]) -> Published:
    return Published(row.seq, Event(row.id, row.type, row.at, row.table_id, row.data))
