"""Who is told of events, and what became of the telling."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

    from service.events.event import Event


@dataclass(frozen=True)
class Webhook:
    """An address that gets the events of `types` (`*` stands for anything: `job.*`) about `tables` (ids, or patterns of
    names; none: all tables, and what belongs to no table).

    `sealed_...` are secrets as they are stored (`secret_cipher`): the key that signs, the one that signs too until
    `old_secret_until`, and the caller's own headers as a JSON object. `disabled_because` is None while it is
    enabled. `failing_since`: the first failure after the last success.
    """

    id: str
    url: str
    created_at: datetime
    updated_at: datetime
    sealed_secret: str
    sealed_headers: str
    sealed_old_secret: str | None = None
    old_secret_until: datetime | None = None
    types: tuple[str, ...] = ("*",)
    tables: tuple[str, ...] = ()
    description: str = ""
    disabled_because: str | None = None
    disabled_at: datetime | None = None
    failing_since: datetime | None = None
    last_success_at: datetime | None = None

    def evolve(self, **changes: Any) -> Webhook:
        return dataclasses.replace(self, **changes)

    @property
    def is_enabled(self) -> bool:
        return self.disabled_because is None

    def heard(self, at: datetime, *, is_accepted: bool) -> Webhook:
        """After an answer."""
        if is_accepted:
            return self.evolve(failing_since=None, last_success_at=at)
        return self.evolve(failing_since=self.failing_since or at)

    def wants(self, event: Event) -> bool:
        return self._wants_type(event.type) and self._wants_table(event.table_id, event.table_name)

    def _wants_type(self, type_: str) -> bool:
        return any(fnmatchcase(type_, pattern) for pattern in self.types)

    def _wants_table(self, table_id: str | None, name: str | None) -> bool:
        if not self.tables:
            return True
        return any(pattern == table_id or (name is not None and fnmatchcase(name, pattern)) for pattern in self.tables)


class DeliveryState(StrEnum):
    """`DEAD`: given up, until somebody asks for it again."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"


@dataclass(frozen=True)
class Delivery:
    """One event on its way to one webhook. `tries` counts since it was last asked for; `first_tried_at` likewise."""

    id: str
    webhook_id: str
    event_id: str
    event_type: str
    seq: int
    created_at: datetime
    table_id: str | None = None
    state: DeliveryState = DeliveryState.PENDING
    tries: int = 0
    first_tried_at: datetime | None = None
    ended_at: datetime | None = None

    def evolve(self, **changes: Any) -> Delivery:
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True)
class SendResult:
    """What a receiver answered to one attempt. `status` is None when there was no answer: then `error` says why; or
    when there are no statuses, as with Kafka: then it `is_acknowledged`.

    `retry_after` is the header as it came. `excerpt` is the beginning of the body.
    """

    seconds: float
    status: int | None = None
    error: str | None = None
    retry_after: str | None = None
    excerpt: str = ""
    is_acknowledged: bool = False

    @property
    def is_accepted(self) -> bool:
        """The status decides, also when the rest of the answer is broken off: the receiver has said that it took it."""
        return self.is_acknowledged or (self.status is not None and 200 <= self.status < 300)


@dataclass(frozen=True)
class DeliveryAttempt:
    """`at` is when it began. `retry_at` is None when nothing follows."""

    at: datetime
    answer: SendResult
    retry_at: datetime | None = None


@dataclass(frozen=True)
class DeliveryQueue:
    """The deliveries of one table to one webhook, which go one after the other."""

    id: int
    webhook_id: str
