"""Database access to delivery queues (the table `lanes`): claims and attempts. A claim has a deadline. So if a replica
of the service is killed, another replica later sends what the killed one had claimed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.delivery.delivery_store import QUERY
from service.delivery.webhook import Delivery, DeliveryAttempt, DeliveryQueue, Webhook
from service.events.event import Event, Published

_d = schema.deliveries
_e = schema.events
_q = schema.queues
_a = schema.delivery_attempts
_w = schema.webhooks

_NO_END = 2**62


@dataclass(frozen=True)
class AttemptRecord:
    """An attempt, and the delivery as it is after the attempt."""

    delivery: Delivery
    attempt: DeliveryAttempt


def due(connection: Connection, now: datetime) -> list[Webhook]:
    """Returns the webhooks with delivery queues that can be claimed, the longest waiting first."""
    return [Webhook.of_row(row) for row in connection.execute(DUE, {"now": now})]


def claim(
    connection: Connection, capacity: Mapping[str, int], *, claimant: str, now: datetime, until: datetime
) -> list[DeliveryQueue]:
    """Claims due delivery queues, at most `capacity` of each webhook (by id), the longest waiting first.

    Concurrent calls get different queues, and on PostgreSQL they do not wait for each other.
    """
    place = sa.func.row_number().over(partition_by=_q.c.webhook_id, order_by=(_q.c.next_at, _q.c.id))
    ranked = (
        sa.select(_q.c.id, place.label("place")).where(_q.c.webhook_id.in_(list(capacity)), _is_free(now)).subquery()
    )
    first = sa.select(ranked.c.id).where(ranked.c.place <= max(capacity.values()))
    query = (
        sa.select(_q.c.id, _q.c.webhook_id)
        # The condition is checked again, because another replica may have claimed the queue since the ranks were
        # computed.
        .where(_q.c.id.in_(first), _is_free(now))
        .order_by(_q.c.next_at, _q.c.id)
        .with_for_update(skip_locked=True)
    )
    left = Counter(capacity)
    found = []
    for row in connection.execute(query):
        if left[row.webhook_id] > 0:
            left[row.webhook_id] -= 1
            found.append(DeliveryQueue(row.id, row.webhook_id))
    if found:
        mine = _q.c.id.in_([queue.id for queue in found])
        connection.execute(_q.update().where(mine).values(claimed_by=claimant, claimed_until=until))
    return found


def waiting(
    connection: Connection, queue_ids: Sequence[int], limit: int
) -> Mapping[int, list[tuple[Delivery, Published]]]:
    """Returns the first `limit` pending deliveries of each queue, by the id of the queue, in the order of their events.
    The duration does not depend on the number of further deliveries."""
    other = _d.alias("other")
    beyond = (
        sa.select(other.c.event_seq)
        .where(other.c.lane_id == _q.c.id, other.c.state == sa.literal_column("'pending'"))
        .order_by(other.c.event_seq)
        .offset(limit)
        .limit(1)
        .scalar_subquery()
    )
    query = (
        QUERY.add_columns(_e.c.at, _e.c.data)
        .join(_q, _q.c.id == _d.c.lane_id)
        .where(_q.c.id.in_(queue_ids), schema.DELIVERY_IS_PENDING, _d.c.event_seq < sa.func.coalesce(beyond, _NO_END))
        .order_by(_d.c.lane_id, _d.c.event_seq)
    )
    found: dict[int, list[tuple[Delivery, Published]]] = {queue_id: [] for queue_id in queue_ids}
    for row in connection.execute(query):
        found[row.lane_id].append((Delivery.of_row(row), _published(row)))
    return found


def record(connection: Connection, tried: Sequence[AttemptRecord]) -> None:
    """Writes attempts and the new states of their deliveries. The caller has locked the webhooks (`webhook_store`).

    A replica may record attempts after its claim has expired. So a delivery that no longer exists is skipped, and a
    delivery that has ended meanwhile keeps its state.
    """
    if not tried:
        return
    ids = sorted({each.delivery.id for each in tried})
    existing = set(connection.execute(sa.select(_d.c.id).where(_d.c.id.in_(ids))).scalars())
    tried = [each for each in tried if each.delivery.id in existing]
    if not tried:
        return
    connection.execute(_a.insert(), [_attempt_values(each) for each in tried])
    connection.execute(
        _d.update()
        .where(_d.c.id == sa.bindparam("of"), schema.DELIVERY_IS_PENDING)
        .values({name: sa.bindparam(f"new_{name}") for name in ("state", "tries", "first_tried_at", "ended_at")}),
        [_delivery_values(each.delivery) for each in tried],
    )


def release(connection: Connection, ended: Mapping[int, datetime | None], *, claimant: str, now: datetime) -> None:
    """Ends claims. `ended` has the time when each queue is due again; None means now. A queue without pending
    deliveries does not become due. Queues that another replica has claimed after the deadline are skipped."""
    if not ended:
        return
    ids = sorted(ended)
    mine = set(
        connection.execute(
            sa.select(_q.c.id).where(_q.c.id.in_(ids), _q.c.claimed_by == claimant).order_by(_q.c.id).with_for_update()
        ).scalars()
    )
    has_more = set(
        connection.execute(
            sa.select(_d.c.lane_id).where(_d.c.lane_id.in_(ids), schema.DELIVERY_IS_PENDING).distinct()
        ).scalars()
    )
    values = [
        {"of": queue_id, "new_next_at": (ended[queue_id] or now) if queue_id in has_more else None}
        for queue_id in ids
        if queue_id in mine
    ]
    if values:
        connection.execute(
            _q.update()
            .where(_q.c.id == sa.bindparam("of"))
            .values(next_at=sa.bindparam("new_next_at"), claimed_by=None, claimed_until=None),
            values,
        )


def _is_free(now: datetime | sa.BindParameter[datetime]) -> sa.ColumnElement[bool]:
    is_unclaimed = sa.or_(_q.c.claimed_until.is_(None), _q.c.claimed_until < now)
    return sa.and_(_q.c.next_at <= now, is_unclaimed)


def _due() -> sa.Select[Any]:
    free = _is_free(sa.bindparam("now", type_=schema.UtcDateTime))
    waits = sa.select(_q.c.webhook_id, sa.func.min(_q.c.next_at).label("since")).where(free)
    longest = waits.group_by(_q.c.webhook_id).subquery()
    query = sa.select(_w).join(longest, longest.c.webhook_id == _w.c.id)
    return query.where(_w.c.disabled_because.is_(None)).order_by(longest.c.since)


# Every event makes the dispatcher execute this statement, so it is built once.
ANY_PENDING = sa.select(_q.c.id).where(_q.c.next_at.is_not(None)).limit(1)
"""Selects a queue with pending deliveries, due or not."""
DUE = _due()
"""Selects what `due` returns."""


def _published(row: sa.Row[Any]) -> Published:
    return Published(row.event_seq, Event(row.event_id, row.event_type, row.at, row.table_id, row.data))


def _attempt_values(tried: AttemptRecord) -> dict[str, Any]:
    answer = tried.attempt.answer
    return {
        "delivery_id": tried.delivery.id,
        "at": tried.attempt.at,
        "milliseconds": round(answer.seconds * 1000),
        "status": answer.status,
        "error": answer.error,
        "excerpt": answer.excerpt,
        "retry_at": tried.attempt.retry_at,
    }


def _delivery_values(delivery: Delivery) -> dict[str, Any]:
    return {
        "of": delivery.id,
        "new_state": delivery.state.value,
        "new_tries": delivery.tries,
        "new_first_tried_at": delivery.first_tried_at,
        "new_ended_at": delivery.ended_at,
    }
