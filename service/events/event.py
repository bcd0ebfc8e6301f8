"""The events that webhooks and event streams get."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

MOST_DISORDER = timedelta(minutes=5)
"""Numbers of events are in the order of the events' times, with one exception: two events that are less than this time
apart may have the opposite order, because transactions may overlap."""


class EventType(StrEnum):
    """Types of events. `service.api.event_catalogue` describes each."""

    COMMIT_PUBLISHED = "commit.published"
    JOB_QUEUED = "job.queued"
    JOB_STARTED = "job.started"
    JOB_SUCCEEDED = "job.succeeded"
    JOB_FAILED = "job.failed"
    JOB_CANCELLED = "job.cancelled"
    EXPANSION_DRAINING = "expansion.draining"
    EXPANSION_COMMITTED = "expansion.committed"
    EXPANSION_ABORTED = "expansion.aborted"
    TABLE_REGISTERED = "table.registered"
    TABLE_UNHEALTHY = "table.unhealthy"
    TABLE_RECOVERED = "table.recovered"
    TABLE_INCIDENT_OPENED = "table.incident_opened"
    TABLE_INCIDENT_CLOSED = "table.incident_closed"
    TABLE_SUGGESTED = "table.suggested"
    ADVICE_APPLIED = "advice.applied"
    ADVICE_TAKEN_BACK = "advice.taken_back"
    PROBLEM_OPENED = "problem.opened"
    PROBLEM_RESOLVED = "problem.resolved"
    WEBHOOK_DISABLED = "webhook.disabled"
    WEBHOOK_TEST = "webhook.test"
    NOTIFICATION_SENT = "notification.sent"
    NOTIFICATION_TEST = "notification.test"


TESTS = frozenset({EventType.WEBHOOK_TEST, EventType.NOTIFICATION_TEST})
"""Types of events that a person requests as a test. Such an event is sent once."""


@dataclass(frozen=True)
class Event:
    """An event. `id` is the same each time it is sent. `type` is in the catalogue, `data` conforms to its JSON Schema.

    `table_id` is None for an event that belongs to no table; else `data["table"]` has the table's id, name and base
    path.
    """

    id: str
    type: str
    at: datetime
    table_id: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def table_name(self) -> str | None:
        return None if self.table_id is None else str(self.data["table"]["name"])


@dataclass(frozen=True)
class Published:
    """An event and its position in the outbox. An event with a higher `seq` was committed later."""

    seq: int
    event: Event


def event_id(*parts: object) -> str:
    """Returns the id of an event. The same parts always give the same id, so that an event that is reported twice is
    published once.

    The id contains no full stop, because Standard Webhooks separates the signed parts of a message with full stops.
    """
    return f"evt_{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}"
