"""Statistics of all webhooks together, for monitoring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.delivery.webhook import DeliveryState

MOST_COUNTED = 10_000
"""The limit of each count, so that counting stays fast even if a receiver is away for days."""

_d = schema.deliveries
_q = schema.queues
_h = schema.webhooks
_OPEN = (DeliveryState.PENDING, DeliveryState.DEAD)


@dataclass(frozen=True)
class DeliveryStatistics:
    """Figures of all webhooks together."""

    open: Mapping[DeliveryState, int]  # Deliveries that wait or were given up, up to `MOST_COUNTED` each.
    due_at: datetime | None  # When the next delivery is due.
    webhooks: int
    failing: int
    disabled: int


def _statement() -> sa.Select[Any]:
    is_enabled = _h.c.disabled_at.is_(None)
    counts = []
    for state in _OPEN:
        # SQLite uses the partial index only if its condition and the state are literals.
        is_state = _d.c.state == sa.literal_column(f"'{state.value}'")
        some = sa.select(_d.c.id).where(schema.DELIVERY_IS_OPEN, is_state).limit(MOST_COUNTED).subquery()
        counts.append(sa.select(sa.func.count()).select_from(some).scalar_subquery())
    # Deliveries of disabled webhooks are not tried.
    enabled = sa.select(_h.c.id).where(is_enabled)
    due = sa.select(sa.func.min(_q.c.next_at)).where(_q.c.next_at.is_not(None), _q.c.webhook_id.in_(enabled))
    return sa.select(
        due.scalar_subquery(),
        sa.func.count(),
        sa.func.count(sa.case((is_enabled & _h.c.failing_since.is_not(None), 1))),
        sa.func.count(_h.c.disabled_at),
        *counts,
    ).select_from(_h)


_STATISTICS = _statement()


def statistics(connection: Connection) -> DeliveryStatistics:
    due_at, webhooks, failing, disabled, *numbers = connection.execute(_STATISTICS).one()
    return DeliveryStatistics(dict(zip(_OPEN, numbers, strict=True)), due_at, webhooks, failing, disabled)
