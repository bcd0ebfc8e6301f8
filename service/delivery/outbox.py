"""The outbox: events and their deliveries, written in the transaction of the change that they report.

Transactions publish one after the other. On PostgreSQL a lock that lasts until the commit ensures this; SQLite has only
one writer at a time anyway. So `seq` grows in the order of the transactions' commits, and a reader that has read up to
some `seq` has not missed an earlier event. All replicas wait for this lock, so a transaction writes its events last,
after everything that needs no lock. A second lock keeps the webhooks unchanged meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import sqlite

from service.db import schema
from service.db.engine import at_end
from service.db.transaction import ENDS
from service.delivery import delivery_store, webhook_store
from service.events import tally
from service.events.event import MOST_DISORDER, Event, Published
from service.events.tally import Count

_e = schema.events

_Counted = tuple[str | None, Count]
"""A count, and optionally the id of an event: the count is added only if that event is new."""

# The keys of the advisory locks may be any numbers that no other lock in the same database has. A transaction takes the
# lock of the webhooks before the lock of the positions (`seq`).
_WEBHOOKS, _POSITIONS = 7_202_611_003, 7_202_611_002


@dataclass(frozen=True)
class _Last:
    """The events and counts that a transaction writes at its end."""

    events: Sequence[Event] = ()
    now: datetime | None = None
    counts: Sequence[Count] = ()
    write: Callable[[Connection], object] | None = None


def publish(connection: Connection, events: Sequence[Event], *, now: datetime) -> None:
    """Writes events at the end of the transaction, with a delivery for each webhook that subscribes to them. An event
    that was published before is not written again. After the commit, call `Notifier.notify`."""
    if events:
        _at_end(connection, _Last(events=events, now=now))


def count(connection: Connection, counts: Iterable[Count]) -> None:
    """Adds to counters at the end of the transaction."""
    if found := list(counts):
        _at_end(connection, _Last(counts=found))


def in_turn(connection: Connection, write: Callable[[Connection], object]) -> None:
    """Calls `write` at the end of the transaction, while no other transaction does so. So the positions of the rows
    that `write` inserts grow in the order of the transactions' commits."""
    _at_end(connection, _Last(write=write))


def _at_end(connection: Connection, last: _Last) -> None:
    at_end(connection, _finish, last, ends=True)


def _finish(connection: Connection, given: Sequence[_Last]) -> None:
    by_id = {event.id: event for each in given for event in each.events}
    wanted = _wanted(connection, by_id.values())
    queues = delivery_store.queues(connection, wanted)
    counts = [(None, count) for each in given for count in each.counts]
    of_events = [(event.id, count) for event in by_id.values() for count in tally.of_events([event])]
    writes = [each.write for each in given if each.write is not None]
    new = _write(connection, list(by_id.values()), [*counts, *of_events], ends=not wanted and not writes)
    positions = {each.event.id: each for each in new}
    now = max((each.now for each in given if each.now), default=None)
    if now is not None:
        pairs = [(webhook_id, positions[event.id]) for webhook_id, event in wanted if event.id in positions]
        delivery_store.enqueue(connection, pairs, now=now, queues=queues)
    for write_more in writes:
        write_more(connection)


def write(connection: Connection, events: Sequence[Event]) -> list[Published]:
    """Writes events without deliveries now, and does not count them. Returns the events that are new."""
    return _write(connection, list({event.id: event for event in events}.values()), ()) if events else []


def _write(
    connection: Connection, events: Sequence[Event], counts: Sequence[_Counted], *, ends: bool = False
) -> list[Published]:
    """Takes the lock of the positions, writes the new ones among the events, and adds `counts`. Returns the new events.
    No two events may have the same id. `ends` says that the transaction writes nothing else before its commit."""
    by_id = {event.id: event for event in events}
    if connection.dialect.name == "postgresql":
        written = connection.execute(_LOCK_AND_WRITE, _arrays(events, counts), execution_options={ENDS: ends})
        return [Published(row.seq, by_id[row.id]) for row in written if row.seq is not None]
    new = []
    if events:
        rows = [
            {"id": each.id, "type": str(each.type), "at": each.at, "table_id": each.table_id, "data": dict(each.data)}
            for each in events
        ]
        new = [Published(row.seq, by_id[row.id]) for row in sorted(connection.execute(_WRITE, rows))]
    are_new = {None, *(each.event.id for each in new)}
    tally.add(connection, (count for event_id, count in counts if event_id in are_new))
    return new


_NEWEST = sa.select(sa.func.max(_e.c.seq))

# The database inserts the rows of one statement in their order.
_WRITE = sqlite.insert(_e).on_conflict_do_nothing(index_elements=["id"]).returning(_e.c.seq, _e.c.id)

# All replicas wait while a transaction holds the lock, so one statement of PostgreSQL takes the lock and writes
# everything. The insertions read `locked`, so they get their positions and change the counters only under the lock.
# While the statement waits for the lock, another transaction may commit rows that the statement does not see. So the
# statement must not depend on a condition on such rows. Conflicts with such rows are detected nevertheless. A count
# with an `event` is added if that event is new. Counters are changed in a fixed order, which prevents deadlocks.
_LOCK_AND_WRITE = sa.text("""
WITH locked AS MATERIALIZED (SELECT pg_advisory_xact_lock(:positions)),
written AS (
    INSERT INTO events (id, type, at, table_id, data)
    SELECT id, type, at, table_id, CAST(data AS json) FROM locked, unnest(
        CAST(:ids AS text[]), CAST(:types AS text[]), CAST(:times AS timestamptz[]), CAST(:tables AS text[]),
        CAST(:documents AS text[])
    ) WITH ORDINALITY AS given (id, type, at, table_id, data, number)
    ORDER BY number
    ON CONFLICT (id) DO NOTHING RETURNING seq, id
),
counted AS (
    INSERT INTO tallies (name, labels, value)
    SELECT name, labels, sum(amount) FROM locked, unnest(
        CAST(:of AS text[]), CAST(:names AS text[]), CAST(:labels AS text[]), CAST(:amounts AS float8[])
    ) AS given (event, name, labels, amount)
    WHERE event IS NULL OR event IN (SELECT id FROM written)
    GROUP BY name, labels HAVING sum(amount) <> 0 ORDER BY name, labels
    ON CONFLICT (name, labels) DO UPDATE SET value = tallies.value + excluded.value
)
SELECT seq, id FROM locked LEFT JOIN written ON true ORDER BY seq
""").columns(_e.c.seq, _e.c.id)


def _arrays(events: Sequence[Event], counts: Sequence[_Counted]) -> dict[str, Any]:
    return {
        "positions": _POSITIONS,
        "ids": [each.id for each in events],
        "types": [str(each.type) for each in events],
        "times": [each.at for each in events],
        "tables": [each.table_id for each in events],
        "documents": [json.dumps(dict(each.data)) for each in events],
        "of": [event_id for event_id, _ in counts],
        "names": [each.name for _, each in counts],
        "labels": [tally.text_of(each) for _, each in counts],
        "amounts": [float(each.amount) for _, each in counts],
    }


def _wanted(connection: Connection, events: Iterable[Event]) -> list[tuple[str, Event]]:
    """Returns a pair for each event and each webhook that subscribes to it: the webhook's id and the event. No webhook
    changes until the transaction ends."""
    if not events:
        return []
    _take(connection, _WEBHOOKS, "_shared")
    return [(hook.id, event) for hook in webhook_store.enabled(connection) for event in events if hook.wants(event)]


def lock(connection: Connection) -> None:
    """Locks the outbox: until the transaction ends, no other one publishes, and none adds, changes or removes webhooks.
    Call this first in a transaction."""
    _take(connection, _WEBHOOKS)
    _take(connection, _POSITIONS)


def _take(connection: Connection, key: int, mode: str = "") -> None:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock{mode}({key})")


def has(connection: Connection, event_id: str) -> bool:
    return connection.execute(sa.select(_e.c.seq).where(_e.c.id == event_id)).first() is not None


def newest(connection: Connection) -> int:
    """Returns the `seq` of the newest event, 0 before the first."""
    return connection.execute(_NEWEST).scalar() or 0


def after(connection: Connection, seq: int, limit: int) -> list[Published]:
    """Returns the events after `seq`, oldest first."""
    query = sa.select(_e).where(_e.c.seq > seq).order_by(_e.c.seq).limit(limit)
    return [published_of(row) for row in connection.execute(query)]


def of_type(connection: Connection, type_: str, *, after_seq: int, limit: int) -> list[Published]:
    """Returns the events of a type after `after_seq`, oldest first."""
    query = sa.select(_e).where(_e.c.seq > after_seq, _e.c.type == type_).order_by(_e.c.seq).limit(limit)
    return [published_of(row) for row in connection.execute(query)]


def before(connection: Connection, since: datetime) -> int:
    """Returns a `seq` that is smaller than those of all events at `since` or later."""
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
