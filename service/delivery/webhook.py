"""The model of webhooks, their deliveries and the attempts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated

from jobs.spec import Documented, Spec
from service.delivery import open_lineage
from service.delivery.targets import registry
from service.events.event import Event, EventType
from service.model.record import Record


@dataclass(frozen=True)
class Webhook(Record):
    """An address that receives events. `sealed_...` are encrypted (`secret_cipher`)."""

    id: Annotated[str, Spec("Id of the webhook", examples=("wh_5d0c9b8a7f6e4d3c",))]
    url: Annotated[str, Spec("Complete for admins only, because many services accept any caller that knows their URL")]
    created_at: datetime
    updated_at: datetime
    sealed_secret: str  # The signing key.
    sealed_headers: str  # The caller's own headers, as a JSON object.
    sealed_old_secret: str | None = None  # The old signing key, which also signs until `old_secret_until`.
    old_secret_until: Annotated[
        datetime | None, Spec("Until this time messages are also signed with the previous secret")
    ] = None
    types: tuple[str, ...] = ("*",)  # Globs, such as `job.*`.
    tables: tuple[str, ...] = ()  # Ids or globs of names. If empty, events of all tables and those without a table.
    description: str = ""
    disabled_because: Annotated[str | None, Spec("Why nothing is sent; null if the webhook is enabled")] = None
    disabled_at: Annotated[datetime | None, Spec("Since when nothing is sent")] = None
    failing_since: Annotated[datetime | None, Spec("The first failure after the last success")] = None
    last_success_at: Annotated[
        datetime | None, Spec("When a message was last delivered", examples=("2026-01-01T12:00:00Z",))
    ] = None

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

    @property
    def target(self) -> registry.Target | None:
        """The target of the notification that owns this webhook. The webhook's `sealed_headers` are the options of the
        target."""
        return registry.of_url(self.url)

    def wants(self, event: Event) -> bool:
        if self.target is not None:
            return event.type == EventType.NOTIFICATION_SENT and event.data["notification"]["id"] == self.id
        if self.is_lineage and not open_lineage.concerns(event):
            return False
        return self._wants_type(event.type) and concerns(self.tables, event.table_id, event.table_name)

    def _wants_type(self, type_: str) -> bool:
        return any(fnmatchcase(type_, pattern) for pattern in self.types)


def concerns(tables: Collection[str], table_id: str | None, name: str | None) -> bool:
    """Returns whether one of `tables`, which are ids or globs of names, matches this table. If `tables` is empty,
    everything matches."""
    return not tables or any(
        pattern == table_id or (name is not None and fnmatchcase(name, pattern)) for pattern in tables
    )


class DeliveryState(StrEnum):
    """State of a delivery. A `DEAD` delivery was given up, but may be replayed."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"


@dataclass(frozen=True)
class Delivery(Record):
    """One event for one webhook."""

    id: Annotated[str, Spec("Id of the delivery", examples=("dlv_9c1d3e5f7a2b4c6d",))]
    webhook_id: str
    event_id: Annotated[
        str,
        Spec(
            "The `webhook-id` of the message, the same in every attempt and replay", examples=("evt_3b0f2a9d5e7b1c44",)
        ),
    ]
    event_type: Annotated[str, Spec("Type of the event", examples=("commit.published",))]
    seq: int
    created_at: datetime
    table_id: str | None = None
    state: Annotated[
        DeliveryState, Spec("`pending`, `delivered`, or `dead`: given up unless replayed", examples=("delivered",))
    ] = DeliveryState.PENDING
    tries: int = 0  # A replay resets this, and `first_tried_at`.
    first_tried_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True)
class SendResult(Documented):
    """Result of one attempt."""

    seconds: float
    status: Annotated[
        int | None, Spec("HTTP status; null without an answer, and for Kafka and mail", examples=(200,))
    ] = None
    error: Annotated[str | None, Spec("Why the attempt failed; null if there was an HTTP answer")] = None
    retry_after: str | None = None  # The unparsed header.
    excerpt: str = ""  # The beginning of the body.
    is_acknowledged: bool = False  # Whether Kafka or a mail server has accepted it.

    @property
    def is_accepted(self) -> bool:
        """True for an acknowledgement, and for a 2xx status even if the rest of the answer is missing."""
        return self.is_acknowledged or (self.status is not None and 200 <= self.status < 300)


@dataclass(frozen=True)
class DeliveryAttempt:
    at: datetime  # When it began.
    answer: SendResult
    retry_at: datetime | None = None  # None when no further attempt follows.


@dataclass(frozen=True)
class DeliveryQueue:
    """The delivery queue of one webhook and one table, whose deliveries are sent one after the other."""

    id: int
    webhook_id: str
