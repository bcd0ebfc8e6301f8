"""The model of webhooks, their deliveries and the attempts."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from service.delivery import open_lineage
from service.model.record import Record

if TYPE_CHECKING:
    from service.events.event import Event


@dataclass(frozen=True)
class Webhook(Record):
    """An address that receives events. `sealed_...` are encrypted (`secret_cipher`)."""

    id: str
    url: str
    created_at: datetime
    updated_at: datetime
    sealed_secret: str  # The signing key.
    sealed_headers: str  # The caller's own headers, as a JSON object.
    sealed_old_secret: str | None = None  # The old signing key, which also signs until `old_secret_until`.
    old_secret_until: datetime | None = None
    types: tuple[str, ...] = ("*",)  # Globs, such as `job.*`.
    tables: tuple[str, ...] = ()  # Ids, or globs of names; if empty, all tables and events without a table.
    description: str = ""
    disabled_because: str | None = None  # None while the webhook is enabled.
    disabled_at: datetime | None = None
    failing_since: datetime | None = None  # The first failure after the last success.
    last_success_at: datetime | None = None

    def evolve(self, **changes: Any) -> Webhook:
        return dataclasses.replace(self, **changes)

    @property
    def is_enabled(self) -> bool:
        return self.disabled_because is None

    def after_attempt(self, at: datetime, *, is_accepted: bool) -> Webhook:
        """Returns the webhook with its health after an attempt."""
        if is_accepted:
            return self.evolve(failing_since=None, last_success_at=at)
        return self.evolve(failing_since=self.failing_since or at)

    @property
    def is_lineage(self) -> bool:
        """True for an OpenLineage endpoint, which gets run events instead of CloudEvents."""
        return self.url.startswith(open_lineage.SCHEME)

    def wants(self, event: Event) -> bool:
        if self.is_lineage and not open_lineage.concerns(event):
            return False
        return self._wants_type(event.type) and self._wants_table(event.table_id, event.table_name)

    def _wants_type(self, type_: str) -> bool:
        return any(fnmatchcase(type_, pattern) for pattern in self.types)

    def _wants_table(self, table_id: str | None, name: str | None) -> bool:
        if not self.tables:
            return True
        return any(pattern == table_id or (name is not None and fnmatchcase(name, pattern)) for pattern in self.tables)


class DeliveryState(StrEnum):
    """State of a delivery. `DEAD` is given up, unless it is replayed."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"


@dataclass(frozen=True)
class Delivery(Record):
    """One event for one webhook."""

    id: str
    webhook_id: str
    event_id: str
    event_type: str
    seq: int
    created_at: datetime
    table_id: str | None = None
    state: DeliveryState = DeliveryState.PENDING
    tries: int = 0  # Starts again with a replay, like `first_tried_at`.
    first_tried_at: datetime | None = None
    ended_at: datetime | None = None

    def evolve(self, **changes: Any) -> Delivery:
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True)
class SendResult:
    """Result of one attempt."""

    seconds: float
    status: int | None = None  # None without an answer, and for Kafka.
    error: str | None = None  # Why there is no answer.
    retry_after: str | None = None  # The unparsed header.
    excerpt: str = ""  # The beginning of the body.
    is_acknowledged: bool = False  # Whether Kafka has accepted it.

    @property
    def is_accepted(self) -> bool:
        """True for a 2xx status, even if the rest of the answer is broken off, or an acknowledgement."""
        return self.is_acknowledged or (self.status is not None and 200 <= self.status < 300)


@dataclass(frozen=True)
class DeliveryAttempt:
    """One attempt."""

    at: datetime  # When it began.
    answer: SendResult
    retry_at: datetime | None = None  # None when no further attempt follows.


@dataclass(frozen=True)
class DeliveryQueue:
    """The delivery queue of one webhook and one table, whose deliveries are sent one after the other."""

    id: int
    webhook_id: str
