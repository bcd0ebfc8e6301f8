"""Database access to deliveries: creation, pages and replays. Claims and attempts are in `queue_store`."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from zlib import crc32

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.db.page import Page, PageRequest, among, seq_of
from service.db.upsert import insert
from service.delivery.webhook import Delivery, DeliveryAttempt, DeliveryState, SendResult
from service.events.event import MOST_DISORDER, TESTS, Event, EventType, Published
from service.model.errors import DeliveryNotFoundError

_d = schema.deliveries
_e = schema.events
_q = schema.queues
_a = schema.delivery_attempts

_ALERT_QUEUES = 16

QUERY = sa.select(_d, _e.c.id.label("event_id"), _e.c.type.label("event_type"), _e.c.table_id, _e.c.seq).join(
    _e, _e.c.seq == _d.c.event_seq
)


Queues = Mapping[tuple[str, str], int]
"""The ids of delivery queues by webhook id and key."""


def queues(connection: Connection, wanted: Iterable[tuple[str, Event]]) -> Queues:
    """Returns the existing delivery queues of these pairs of a webhook's id and an event."""
    return _found(connection, {(webhook_id, _key(event)) for webhook_id, event in wanted})


def enqueue(
    connection: Connection, wanted: Sequence[tuple[str, Published]], *, now: datetime, queues: Queues | None = None
) -> list[str]:
    """Creates a delivery for each pair of a webhook's id and an event, and returns the ids of the deliveries. A
    delivery is due now, or after the deliveries that already wait in its queue. `queues` has the delivery queues that
    the caller has already found.

    The caller holds the outbox's lock.
    """
    if not wanted:
        return []
    keys = {(webhook_id, _key(published.event)) for webhook_id, published in wanted}
    queue_ids = _with_missing(connection, keys, _found(connection, keys) if queues is None else queues)
    are_idle = None in _lock(connection, queue_ids.values())
    rows = [
        {
            "id": f"dlv_{secrets.token_hex(8)}",
            "webhook_id": webhook_id,
            "lane_id": queue_ids[webhook_id, _key(published.event)],
            "event_seq": published.seq,
            "state": DeliveryState.PENDING.value,
            "tries": 0,
            "created_at": now,
        }
        for webhook_id, published in wanted
    ]
    connection.execute(_d.insert(), rows)
    if are_idle:
        _wake(connection, queue_ids.values(), now)
    return [str(row["id"]) for row in rows]


def get(connection: Connection, delivery_id: str) -> Delivery:
    """Raises DeliveryNotFoundError."""
    row = connection.execute(QUERY.where(_d.c.id == delivery_id)).one_or_none()
    if row is None:
        raise DeliveryNotFoundError(f"There is no delivery {delivery_id}.")
    return Delivery.of_row(row)


def page(
    connection: Connection, webhook_id: str, asked: PageRequest, *, states: Collection[DeliveryState] = ()
) -> Page[Delivery]:
    """Returns a page of the webhook's deliveries, newest event first. Empty `states` select all; the times are those
    of the events."""
    query = QUERY.where(_d.c.webhook_id == webhook_id).order_by(_d.c.event_seq.desc()).limit(asked.limit + 1)
    # The `seq` of events are nearly in the order of their times, so a range of `seq` limits the search. Both sides of
    # the join get this condition, because PostgreSQL does not derive one from the other.
    numbers = (_d.c.event_seq, _e.c.seq)
    if asked.since is not None:
        first = _first_since(asked.since - MOST_DISORDER)
        query = query.where(_e.c.at >= asked.since, *(number >= first for number in numbers))
    if asked.until is not None:
        last = _last_before(asked.until + MOST_DISORDER)
        query = query.where(_e.c.at < asked.until, *(number <= last for number in numbers))
    query = query.where(*among(_d.c.state, states))
    if states and DeliveryState.DELIVERED not in states:
        query = query.where(schema.DELIVERY_IS_OPEN)
    if asked.cursor:
        query = query.where(*(number < seq_of(asked.cursor) for number in numbers))
    found = [Delivery.of_row(row) for row in connection.execute(query)]
    shown = found[: asked.limit]
    return Page(shown, str(shown[-1].seq) if len(found) > asked.limit else None)


def _first_since(moment: datetime) -> sa.ColumnElement[int]:
    found = sa.select(_e.c.seq).where(_e.c.at >= moment).order_by(_e.c.at, _e.c.seq).limit(1)
    return sa.func.coalesce(found.scalar_subquery(), 0)


def _last_before(moment: datetime) -> sa.ColumnElement[int]:
    found = sa.select(_e.c.seq).where(_e.c.at < moment).order_by(_e.c.at.desc(), _e.c.seq.desc()).limit(1)
    return sa.func.coalesce(found.scalar_subquery(), 0)


def attempts(connection: Connection, delivery_ids: Iterable[str]) -> Mapping[str, list[DeliveryAttempt]]:
    """Returns all attempts by delivery id, first to last."""
    query = sa.select(_a).where(_a.c.delivery_id.in_(list(delivery_ids))).order_by(_a.c.id)
    found: dict[str, list[DeliveryAttempt]] = defaultdict(list)
    for row in connection.execute(query):
        answer = SendResult(
            row.milliseconds / 1000,
            row.status,
            row.error,
            excerpt=row.excerpt,
            is_acknowledged=row.status is None and row.error is None,
        )
        found[row.delivery_id].append(DeliveryAttempt(row.at, answer, row.retry_at))
    return found


def open_counts(connection: Connection, webhook_ids: Iterable[str]) -> Mapping[str, Mapping[DeliveryState, int]]:
    """Counts the deliveries that wait and those that were given up, by webhook id."""
    query = (
        sa.select(_d.c.webhook_id, _d.c.state, sa.func.count())
        .where(_d.c.webhook_id.in_(list(webhook_ids)), schema.DELIVERY_IS_OPEN)
        .group_by(_d.c.webhook_id, _d.c.state)
    )
    found: dict[str, dict[DeliveryState, int]] = defaultdict(dict)
    for webhook_id, state, count in connection.execute(query):
        found[webhook_id][DeliveryState(state)] = count
    return found


def blocking(connection: Connection, webhook_id: str, limit: int) -> list[tuple[Delivery, int]]:
    """Returns the deliveries of a webhook that have failed and will be retried, the oldest event first, each with the
    number of deliveries that wait behind it in its queue."""
    other = _d.alias("other")
    behind = (
        sa.select(sa.func.count())
        .where(
            other.c.lane_id == _d.c.lane_id,
            other.c.event_seq > _d.c.event_seq,
            other.c.state == sa.literal_column("'pending'"),
        )
        .correlate(_d)
        .scalar_subquery()
    )
    query = (
        QUERY.add_columns(behind.label("behind"))
        .where(_d.c.webhook_id == webhook_id, schema.DELIVERY_IS_PENDING, _d.c.tries > 0)
        .order_by(_d.c.event_seq)
        .limit(limit)
    )
    return [(Delivery.of_row(row), row.behind) for row in connection.execute(query)]


def give_up(connection: Connection, delivery: Delivery, *, now: datetime) -> bool:
    """Ends a pending delivery as dead, and makes its queue due. Returns False if it has ended already. An attempt in
    progress is still recorded, but has no effect. The caller holds the outbox's lock."""
    queue_ids = list(connection.execute(sa.select(_d.c.lane_id).where(_d.c.id == delivery.id)).scalars())
    _lock(connection, queue_ids)
    ended = connection.execute(
        _d.update()
        .where(_d.c.id == delivery.id, schema.DELIVERY_IS_PENDING)
        .values(state=DeliveryState.DEAD.value, ended_at=now)
    )
    if not ended.rowcount:
        return False
    connection.execute(_q.update().where(_q.c.id.in_(queue_ids)).values(next_at=now))
    return True


def known(connection: Connection, webhook_id: str, events: Iterable[Published]) -> Mapping[int, Delivery]:
    """Returns the webhook's deliveries of these events, by the events' `seq`."""
    query = QUERY.where(_d.c.webhook_id == webhook_id, _d.c.event_seq.in_([each.seq for each in events]))
    return {row.event_seq: Delivery.of_row(row) for row in connection.execute(query)}


def send_again(connection: Connection, delivery_ids: Sequence[str], *, now: datetime) -> None:
    """Resets deliveries and makes them due now, in the order of their events. The caller holds the outbox's lock."""
    if not delivery_ids:
        return
    queue_ids = list(connection.execute(sa.select(_d.c.lane_id).where(_d.c.id.in_(delivery_ids)).distinct()).scalars())
    _lock(connection, queue_ids)
    connection.execute(_d.update().where(_d.c.id.in_(delivery_ids)).values(**_RESET))
    connection.execute(_q.update().where(_q.c.id.in_(queue_ids)).values(next_at=now))


def restart_pending(connection: Connection, webhook_id: str, *, now: datetime) -> None:
    """Resets all pending deliveries of a webhook and makes them due now. The caller holds the outbox's lock."""
    queue_ids = list(
        connection.execute(sa.select(_q.c.id).where(_q.c.webhook_id == webhook_id, _q.c.next_at.is_not(None))).scalars()
    )
    _lock(connection, queue_ids)
    is_waiting = sa.and_(_d.c.webhook_id == webhook_id, schema.DELIVERY_IS_PENDING)
    connection.execute(_d.update().where(is_waiting).values(**_RESET))
    connection.execute(_q.update().where(_q.c.id.in_(queue_ids)).values(next_at=now))


_RESET = {"state": DeliveryState.PENDING.value, "tries": 0, "first_tried_at": None, "ended_at": None}


def _key(event: Event) -> str:
    """Returns the key of an event's delivery queue: the table's id, an empty text without a table, and `test` for
    tests.

    The messages of a notification about one alert share a queue, so that a message that fails holds up few others.
    """
    if event.type in TESTS:
        return "test"
    if event.type == EventType.NOTIFICATION_SENT:
        return f"alert-{crc32(event.data['message']['key'].encode()) % _ALERT_QUEUES}"
    return event.table_id or ""


def _found(connection: Connection, keys: Collection[tuple[str, str]]) -> Queues:
    if not keys:
        return {}
    query = sa.select(_q.c.webhook_id, _q.c.key, _q.c.id).where(
        _q.c.webhook_id.in_({webhook_id for webhook_id, _ in keys}), _q.c.key.in_({key for _, key in keys})
    )
    return {(row.webhook_id, row.key): row.id for row in connection.execute(query)}


def _with_missing(connection: Connection, keys: set[tuple[str, str]], found: Queues) -> Queues:
    """Returns the delivery queues with these keys, and creates those that were not found."""
    if missing := sorted(keys - found.keys()):
        # Another transaction may have created some of them meanwhile.
        new = insert(connection, _q).on_conflict_do_nothing(index_elements=["webhook_id", "key"])
        connection.execute(new, [{"webhook_id": webhook_id, "key": key} for webhook_id, key in missing])
        found = {**found, **_found(connection, missing)}
    return {key: found[key] for key in keys}


def _lock(connection: Connection, queue_ids: Iterable[int]) -> list[datetime | None]:
    """Locks delivery queues, always in the same order. Because of the locks, a transaction that ends a claim and
    another one that adds deliveries see each other's changes. Returns when each queue is due."""
    locked = sa.select(_q.c.next_at).where(_q.c.id.in_(sorted(queue_ids))).order_by(_q.c.id).with_for_update()
    return list(connection.execute(locked).scalars())


def _wake(connection: Connection, queue_ids: Iterable[int], now: datetime) -> None:
    """Makes idle delivery queues due. A queue whose first delivery waits for its next try stays unchanged."""
    connection.execute(_q.update().where(_q.c.id.in_(list(queue_ids)), _q.c.next_at.is_(None)).values(next_at=now))
