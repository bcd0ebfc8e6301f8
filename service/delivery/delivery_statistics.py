"""Statistics of all webhooks together, for monitoring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

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
    due_at: datetime | None  # When the first delivery is due to be tried.
    webhooks: int
    failing: int
    disabled: int


def statistics(connection: Connection) -> DeliveryStatistics:
    is_enabled = _h.c.disabled_at.is_(None)
    webhooks = connection.execute(
        sa.select(
            sa.func.count().label("webhooks"),
            sa.func.count(sa.case((is_enabled & _h.c.failing_since.is_not(None), 1))).label("failing"),
            sa.func.count(_h.c.disabled_at).label("disabled"),
        )
    ).one()
    found = {}
    for state in _OPEN:
        # The condition of the partial index and the state are literals, because SQLite uses the index only then.
        is_state = _d.c.state == sa.literal_column(f"'{state.value}'")
        some = sa.select(_d.c.id).where(schema.DELIVERY_IS_OPEN, is_state).limit(MOST_COUNTED).subquery()
        found[state] = connection.execute(sa.select(sa.func.count()).select_from(some)).scalar_one()
    # Deliveries of disabled webhooks are not tried.
    due = (
        sa.select(sa.func.min(_q.c.next_at))
        .join(_h, _h.c.id == _q.c.webhook_id)
        .where(_q.c.next_at.is_not(None), is_enabled)
    )
    return DeliveryStatistics(found, connection.execute(due).scalar(), **webhooks._mapping)
