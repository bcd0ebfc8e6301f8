"""Request and response models of /v1/webhooks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, Field, StringConstraints, model_validator

from jobs.kinds.words import NO_NUL
from jobs.redaction import MASK
from service.access.errors import SecretUnreadableError
from service.access.secret_cipher import SecretCipher
from service.api.answers import Declared
from service.api.requests import EVENT_TYPE, Moment, Request, Word
from service.api.structs import made
from service.delivery.webhook import Delivery, DeliveryAttempt, DeliveryState, SendResult, Webhook
from service.events.event import EventType
from service.model.shown_url import shown_url


def _of_catalogue(pattern: str) -> str:
    if not any(fnmatchcase(known.value, pattern) for known in EventType):
        raise ValueError("matches no type of event; GET /v1/event-types lists them")
    return pattern


_TypePattern = Annotated[str, StringConstraints(pattern=EVENT_TYPE, max_length=64), AfterValidator(_of_catalogue)]
_Types = Annotated[list[_TypePattern], Field(min_length=1, max_length=50)]
_Tables = Annotated[list[Word], Field(max_length=1000)]
_Url = Annotated[str, StringConstraints(min_length=1, max_length=2048)]
_Headers = Annotated[dict[str, str], Field(max_length=100)]
_Description = Annotated[str, StringConstraints(max_length=1000, pattern=NO_NUL)]


_WEBHOOK = {
    "url": "https://hooks.example.com/lake",
    "types": ["commit.published", "job.failed"],
    "tables": ["orders*"],
    "headers": {"Authorization": "Bearer ..."},
    "description": "cache invalidation",
}


class WebhookIn(Request, json_schema_extra={"examples": [_WEBHOOK]}):
    url: _Url = Field(
        description="https; a Kafka topic: `kafka+ssl://broker-1:9093,broker-2:9093/topic`; or an OpenLineage endpoint,"
        " which gets run events of jobs: `openlineage+https://marquez.example.com/api/v1/lineage`"
    )
    types: _Types = Field(default=["*"], description="Types of events, such as `job.*`; `*` matches anything")
    tables: _Tables = Field(
        default_factory=list,
        description="Ids of tables, or patterns of their names. Default: all tables, and events without a table",
    )
    headers: _Headers = Field(
        default_factory=dict,
        description="Sent with every message, never shown again. To Kafka, `Authorization: Basic ...` logs in (SASL)",
    )
    description: _Description = ""


class WebhookChange(Request, json_schema_extra={"examples": [{"types": ["job.*"]}]}):
    """Members that are left out do not change."""

    url: _Url | None = None
    types: _Types | None = None
    tables: _Tables | None = None
    headers: _Headers | None = Field(None, description="Replaces all headers; a masked value stands for the stored one")
    description: _Description | None = None

    @model_validator(mode="after")
    def _says_something(self) -> WebhookChange:
        if any(getattr(self, name) is None for name in self.model_fields_set):
            raise ValueError("null is not a value; leave a member out to keep it")
        return self


class ReplayIn(Request, json_schema_extra={"examples": [{"since": "2026-01-01T00:00:00Z"}]}):
    since: Moment = Field(description="Events from this time on", examples=["2026-01-01T00:00:00Z"])
    until: Moment | None = Field(None, description="Default: now")
    with_delivered: bool = Field(False, description="Whether to send events again that were already delivered")


class WebhookOut(Declared, declared=Webhook):
    types: list[str]
    tables: list[str]
    headers: dict[str, str] = Field(description="The values are masked")
    description: str
    enabled: bool = Field(description="Whether anything is sent", examples=[True])
    pending: int = Field(description="Deliveries that wait for an attempt or a retry", examples=[0])
    dead: int = Field(description="Deliveries that were given up and not replayed", examples=[0])
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(
        cls, webhook: Webhook, cipher: SecretCipher, counts: Mapping[DeliveryState, int], *, is_whole: bool, **more: Any
    ) -> Self:
        """Returns the answer about a webhook. If `is_whole` is true, it shows the URL with its path. `more` are the
        members that only a subclass has."""
        try:
            # The webhook of a notification keeps members of its target here instead of headers.
            names = [] if webhook.target else list(json.loads(cipher.open(webhook.sealed_headers)))
        except SecretUnreadableError:
            names = []
        return made(
            cls,
            webhook,
            url=webhook.url if is_whole else shown_url(webhook.url),
            headers=dict.fromkeys(names, MASK),
            enabled=webhook.is_enabled,
            pending=counts.get(DeliveryState.PENDING, 0),
            dead=counts.get(DeliveryState.DEAD, 0),
            **more,
        )


class WebhookCreated(WebhookOut):
    secret: str = Field(description="Secret for checking signatures. Not shown again", examples=["whsec_C2FVsBQIh..."])


class DeliveryAttemptOut(Declared, declared=SendResult):
    at: datetime
    milliseconds: int = Field(description="Until the status arrived, or the attempt was given up")
    response: str = Field(description="The beginning of the answer's body; for Kafka, partition and offset")
    retry_at: datetime | None = Field(description="When the next attempt is due; null if there is none")

    @classmethod
    def of(cls, attempt: DeliveryAttempt) -> DeliveryAttemptOut:
        answer = attempt.answer
        milliseconds = round(answer.seconds * 1000)
        return made(
            cls, answer, at=attempt.at, milliseconds=milliseconds, response=answer.excerpt, retry_at=attempt.retry_at
        )


class DeliveryOut(Declared, declared=Delivery):
    webhook_id: str
    table_id: str | None
    created_at: datetime
    ended_at: datetime | None
    attempts: list[DeliveryAttemptOut]

    @classmethod
    def of(cls, delivery: Delivery, attempts: list[DeliveryAttempt]) -> DeliveryOut:
        return made(cls, delivery, attempts=[DeliveryAttemptOut.of(attempt) for attempt in attempts])


class BlockedOut(BaseModel):
    """A delivery that has failed and will be tried again. Events of the same table wait behind it."""

    delivery: DeliveryOut = Field(description="The delivery")
    waiting_behind: int = Field(description="Number of deliveries that wait for this one", examples=[17])


class WebhookDetail(WebhookOut):
    blocked: list[BlockedOut] = Field(description="Deliveries that hold others up, the oldest event first; at most 20")


class ReplayOut(BaseModel):
    replayed: int = Field(description="Number of deliveries that will be sent again")
    is_complete: bool = Field(description="False if there are more: repeat the same call")


class EventTypeOut(BaseModel):
    type: EventType = Field(description="The type", examples=["commit.published"])
    description: str = Field(
        description="When such an event is sent", examples=["A commit was seen on a table's timeline."]
    )
    data_schema: dict[str, Any] = Field(
        description="JSON Schema (2020-12) of the event's `data`", examples=[{"type": "object"}]
    )
    example: dict[str, Any] = Field(description="A whole event: CloudEvents 1.0, JSON")
