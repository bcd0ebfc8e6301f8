"""Reads the facts about workers, the jobs that wait for them, and webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.delivery import delivery_store
from service.delivery.attempt_policy import summary
from service.delivery.webhook import DeliveryState, SendResult, Webhook
from service.events.event import EventType
from service.health.problem_facts import Backlog, BlockedDelivery, Lost, WebhookFacts
from service.queue import lock_sighting_store
from service.queue.job import ACTIVE, AttemptOutcome, JobState
from service.queue.lock_sighting import FRESH
from service.queue.worker import Worker

_j = schema.jobs
_a = schema.job_attempts
_w = schema.webhooks
_d = schema.deliveries
_e = schema.events


ANY_QUEUED = sa.select(_j.c.id).where(schema.JOB_IS_QUEUED).limit(1)
"""Selects a queued job."""
ANY_WEBHOOK = sa.select(_w.c.id).limit(1)
"""Selects a webhook."""

_UNFINISHED = [state.value for state in (*ACTIVE, JobState.UNKNOWN)]

_RECENT = timedelta(hours=1)
"""Lost attempts count until this time after the end of their job."""

MOST_WEBHOOKS = 1000
"""Maximum number of webhooks to examine."""


def backlogs(connection: Connection, now: datetime) -> list[Backlog]:
    query = (
        sa.select(
            _j.c.worker_group,
            sa.func.count().label("jobs"),
            sa.func.min(_j.c.not_before, type_=schema.UtcDateTime).label("oldest"),
        )
        .where(
            schema.JOB_IS_QUEUED,
            _j.c.not_before <= now,
            sa.not_(_j.c.waits_for_writers),
            sa.not_(_j.c.mutating & _j.c.table_id.in_(lock_sighting_store.locked(now - FRESH))),
        )
        .group_by(_j.c.worker_group)
    )
    return [Backlog(row.worker_group, row.jobs, row.oldest) for row in connection.execute(query)]


def lost(connection: Connection, workers: Sequence[Worker], now: datetime) -> dict[str, Lost]:
    """Returns the lost attempts of workers that no longer send heartbeats, by worker id. Attempts of jobs that ended
    longer ago than `_RECENT` are left out."""
    gone = [worker.id for worker in workers if not worker.is_alive(now)]
    if not gone:
        return {}
    # One index leads to the jobs and another one from these to the attempts, so the table of attempts is not scanned.
    jobs = sa.union_all(
        sa.select(_j.c.id).where(_j.c.state.in_(_UNFINISHED)),
        sa.select(_j.c.id).where(_j.c.finished_at > now - _RECENT),
    )
    query = (
        sa.select(
            _a.c.worker_id,
            sa.func.count().label("attempts"),
            sa.func.max(_a.c.ended_at, type_=schema.UtcDateTime).label("last_at"),
        )
        .where(_a.c.job_id.in_(jobs), _a.c.worker_id.in_(gone), _a.c.outcome == AttemptOutcome.LOST.value)
        .group_by(_a.c.worker_id)
    )
    return {row.worker_id: Lost(row.attempts, row.last_at) for row in connection.execute(query)}


def webhooks(connection: Connection) -> list[WebhookFacts]:
    """Returns the facts of the webhooks that fail, are disabled, or have deliveries that were given up."""
    dead = _given_up(connection)
    is_ill = sa.or_(_w.c.disabled_because.is_not(None), _w.c.failing_since.is_not(None), _w.c.id.in_(list(dead)))
    query = sa.select(_w).where(is_ill).order_by(_w.c.created_at, _w.c.id).limit(MOST_WEBHOOKS)
    hooks = [Webhook.of_row(row) for row in connection.execute(query)]
    if not hooks:
        return []
    counts = delivery_store.open_counts(connection, [hook.id for hook in hooks])
    blocked = _blocked(connection, [hook for hook in hooks if hook.failing_since])
    found = []
    for hook in hooks:
        given_up, ended_at, event_at = dead.get(hook.id, (0, None, None))
        pending = counts.get(hook.id, {}).get(DeliveryState.PENDING, 0)
        found.append(WebhookFacts(hook, pending, given_up, ended_at, event_at, blocked.get(hook.id)))
    return found


def _given_up(connection: Connection) -> dict[str, tuple[int, datetime | None, datetime | None]]:
    """Returns, by webhook id, the number of the deliveries that were given up, when the first of them was given up, and
    the time of their first event. Test events do not count, because they are never tried again."""
    query = (
        sa.select(
            _d.c.webhook_id,
            sa.func.count().label("number"),
            sa.func.min(_d.c.ended_at, type_=schema.UtcDateTime).label("ended_at"),
            sa.func.min(_e.c.at, type_=schema.UtcDateTime).label("event_at"),
        )
        .join(_e, _e.c.seq == _d.c.event_seq)
        .where(
            schema.DELIVERY_IS_OPEN,
            _d.c.state == DeliveryState.DEAD.value,
            _e.c.type != EventType.WEBHOOK_TEST.value,
        )
        .group_by(_d.c.webhook_id)
    )
    return {row.webhook_id: (row.number, row.ended_at, row.event_at) for row in connection.execute(query)}


def _blocked(connection: Connection, hooks: Sequence[Webhook]) -> dict[str, BlockedDelivery]:
    """Returns the first delivery of each webhook that waits for its next attempt, with the last answer."""
    if not hooks:
        return {}
    other, attempts, earlier = _d.alias("other"), schema.delivery_attempts, schema.delivery_attempts.alias("earlier")
    first = (
        sa.select(sa.func.min(other.c.event_seq))
        .where(other.c.webhook_id == _w.c.id, other.c.state == sa.literal_column("'pending'"), other.c.tries > 0)
        .correlate(_w)
        .scalar_subquery()
    )
    last = sa.select(sa.func.max(earlier.c.id)).where(earlier.c.delivery_id == _d.c.id).correlate(_d).scalar_subquery()
    query = (
        sa.select(_w.c.id, _d.c.id.label("delivery_id"), _d.c.tries, _e.c.type, attempts.c.status, attempts.c.error)
        .select_from(_w)
        .join(_d, sa.and_(_d.c.webhook_id == _w.c.id, _d.c.event_seq == first))
        .join(_e, _e.c.seq == _d.c.event_seq)
        .outerjoin(attempts, attempts.c.id == last)
        .where(_w.c.id.in_([hook.id for hook in hooks]))
    )
    return {
        row.id: BlockedDelivery(
            row.delivery_id, row.type, row.tries, summary(SendResult(0.0, status=row.status, error=row.error))
        )
        for row in connection.execute(query)
    }
