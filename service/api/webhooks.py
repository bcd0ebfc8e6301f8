"""/v1/webhooks and /v1/deliveries"""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Response

from service.access import errors as secret_errors
from service.access.token import Role
from service.api.answers import PageOf
from service.api.dependencies import Caller, CallerDep, DatabaseDep, GuardDep
from service.api.entity_tags import set_tag
from service.api.query_parameters import AnyOf, Asked, Glob
from service.api.requests import SOME_TEXT
from service.api.routes import Routes
from service.api.statuses import ACCEPTED, CREATED
from service.api.structs import struct_of
from service.api.webhook_forms import (
    BlockedOut,
    DeliveryOut,
    ReplayIn,
    ReplayOut,
    WebhookChange,
    WebhookCreated,
    WebhookDetail,
    WebhookIn,
    WebhookOut,
)
from service.db.engine import reading
from service.delivery import delivery_store, webhook_store
from service.delivery import errors as delivery_errors
from service.delivery import webhooks as flows
from service.delivery.webhook import Delivery, DeliveryState, Webhook
from service.events.database import Database

router = Routes(prefix="/v1", tags=["webhooks"])

WebhookId = Annotated[str, Path(max_length=64, pattern=SOME_TEXT, examples=["wh_5d0c9b8a7f6e4d3c"])]
DeliveryId = Annotated[str, Path(max_length=64, pattern=SOME_TEXT, examples=["dlv_9c1d3e5f7a2b4c6d"])]

_MOST_BLOCKED = 20

_FORM_ERRORS = (
    delivery_errors.UrlNotAllowedError,
    delivery_errors.NotificationNeededError,
    delivery_errors.HeaderNotAllowedError,
    delivery_errors.KafkaMissingError,
    secret_errors.SecretKeyMissingError,
)


@router.admin(
    "POST /webhooks",
    "Create a webhook: send events to a URL, or write them to a Kafka topic",
    *_FORM_ERRORS,
    status_code=CREATED,
)
def create_webhook(wanted: WebhookIn, database: DatabaseDep, guard: GuardDep, response: Response) -> WebhookCreated:
    """Sends CloudEvents 1.0, signed as in Standard Webhooks with `secret`, which only this answer shows. Each event is
    delivered at least once, with the same `webhook-id` in every attempt. The events of a table are sent in their
    order."""
    created = flows.create(
        database,
        guard,
        url=wanted.url,
        types=tuple(wanted.types),
        tables=tuple(wanted.tables),
        headers=wanted.headers,
        description=wanted.description,
    )
    response.headers["Location"] = f"/v1/webhooks/{created.webhook.id}"
    return WebhookCreated.of(created.webhook, database.cipher, {}, is_whole=True, secret=created.secret)


@router.reader("GET /webhooks", "List the webhooks")
def list_webhooks(
    database: DatabaseDep,
    caller: CallerDep,
    *,
    description: Annotated[
        Glob | None,
        Query(description="A pattern with `*` and `?`, in upper or lower case", examples=["*invalidation*"]),
    ] = None,
    enabled: Annotated[bool | None, Query(description="Only enabled webhooks, or only disabled ones")] = None,
    failing: Annotated[
        bool | None, Query(description="Only webhooks whose last delivery failed, or only those where it succeeded")
    ] = None,
    asked: Asked,
) -> PageOf[WebhookOut]:
    """`since` and `until` are times of creation."""
    with reading(database.engine) as connection:
        page = webhook_store.page(connection, asked, description=description, enabled=enabled, failing=failing)
        counts = delivery_store.open_counts(connection, [webhook.id for webhook in page.items])
    is_whole = caller.may(Role.ADMIN)
    return PageOf[WebhookOut].of_page(
        page, lambda each: WebhookOut.of(each, database.cipher, counts.get(each.id, {}), is_whole=is_whole)
    )


@router.reader("GET /webhooks/{webhook_id}", "Show a webhook")
def get_webhook(webhook_id: WebhookId, database: DatabaseDep, caller: CallerDep, response: Response) -> WebhookDetail:
    with reading(database.engine) as connection:
        set_tag(response, connection, database.cipher, "webhook", webhook_id)
        webhook = webhook_store.get(connection, webhook_id)
        counts = delivery_store.open_counts(connection, [webhook_id])
        blocking = delivery_store.blocking(connection, webhook_id, _MOST_BLOCKED)
        attempts = delivery_store.attempts(connection, [delivery.id for delivery, _ in blocking])
    blocked = [
        struct_of(BlockedOut)(delivery=DeliveryOut.of(delivery, attempts.get(delivery.id, [])), waiting_behind=behind)
        for delivery, behind in blocking
    ]
    is_whole = caller.may(Role.ADMIN)
    return WebhookDetail.of(webhook, database.cipher, counts.get(webhook_id, {}), is_whole=is_whole, blocked=blocked)


@router.admin(
    "PATCH /webhooks/{webhook_id}", "Change a webhook", *_FORM_ERRORS, delivery_errors.WebhookOfNotificationError
)
def change_webhook(
    webhook_id: WebhookId, wanted: WebhookChange, database: DatabaseDep, guard: GuardDep, caller: CallerDep
) -> WebhookOut:
    """Pending deliveries go to the new URL, with the new headers."""
    sent = wanted.model_dump(include=wanted.model_fields_set)
    changes = {name: tuple(value) if isinstance(value, list) else value for name, value in sent.items()}
    webhook = flows.change(database, guard, webhook_id=webhook_id, changes=changes)
    return _shown(webhook, database, caller)


@router.admin(
    "DELETE /webhooks/{webhook_id}",
    "Delete a webhook and its deliveries",
    delivery_errors.WebhookOfNotificationError,
)
def delete_webhook(webhook_id: WebhookId, database: DatabaseDep) -> None:
    flows.remove(database, webhook_id)


@router.operator("POST /webhooks/{webhook_id}/enable", "Enable a webhook, and retry pending deliveries at once")
def enable_webhook(webhook_id: WebhookId, database: DatabaseDep, caller: CallerDep) -> WebhookOut:
    """Events that were published while it was disabled are not sent; a replay sends them."""
    webhook = flows.enable(database, webhook_id)
    return _shown(webhook, database, caller)


@router.operator("POST /webhooks/{webhook_id}/disable", "Disable a webhook")
def disable_webhook(webhook_id: WebhookId, database: DatabaseDep, caller: CallerDep) -> WebhookOut:
    webhook = flows.disable(database, webhook_id, because=f"{caller.name} disabled it.")
    return _shown(webhook, database, caller)


@router.operator(
    "POST /webhooks/{webhook_id}/test",
    "Send a test event to a webhook",
    delivery_errors.WebhookDisabledError,
    status_code=ACCEPTED,
)
def test_webhook(webhook_id: WebhookId, database: DatabaseDep) -> DeliveryOut:
    """Sends one event of the type `webhook.test` once; GET /v1/deliveries/{id} shows the outcome."""
    return _delivery(database, flows.test(database, webhook_id))


@router.admin(
    "POST /webhooks/{webhook_id}/rotate-secret", "Give a webhook a new secret", secret_errors.SecretKeyMissingError
)
def rotate_webhook_secret(webhook_id: WebhookId, database: DatabaseDep) -> WebhookCreated:
    """For a day messages carry the signatures of both secrets."""
    created = flows.rotate_secret(database, webhook_id)
    with reading(database.engine) as connection:
        counts = delivery_store.open_counts(connection, [webhook_id])
    return WebhookCreated.of(
        created.webhook, database.cipher, counts.get(webhook_id, {}), is_whole=True, secret=created.secret
    )


@router.operator(
    "POST /webhooks/{webhook_id}/replay",
    "Send missed events to a webhook",
    delivery_errors.WebhookDisabledError,
    status_code=ACCEPTED,
)
def replay_webhook(webhook_id: WebhookId, wanted: ReplayIn, database: DatabaseDep) -> ReplayOut:
    """Sends deliveries that were given up, and events that were published before the webhook was created or while it
    was disabled. Pending deliveries stay unchanged, so a repeated call sends nothing twice."""
    replayed = flows.replay(
        database, webhook_id, since=wanted.since, until=wanted.until, with_delivered=wanted.with_delivered
    )
    return ReplayOut(replayed=replayed.count, is_complete=replayed.is_complete)


@router.reader("GET /webhooks/{webhook_id}/deliveries", "List the deliveries to a webhook, newest first")
def list_deliveries(
    webhook_id: WebhookId,
    database: DatabaseDep,
    *,
    state: AnyOf[DeliveryState] = [],
    asked: Asked,
) -> PageOf[DeliveryOut]:
    """`since` and `until` are times of the events."""
    with reading(database.engine) as connection:
        webhook_store.get(connection, webhook_id)
        page = delivery_store.page(connection, webhook_id, asked, states=state)
        attempts = delivery_store.attempts(connection, [delivery.id for delivery in page.items])
    return PageOf[DeliveryOut].of_page(page, lambda each: DeliveryOut.of(each, attempts.get(each.id, [])))


@router.reader("GET /deliveries/{delivery_id}", "Show a delivery and its attempts")
def get_delivery(delivery_id: DeliveryId, database: DatabaseDep) -> DeliveryOut:
    with reading(database.engine) as connection:
        delivery = delivery_store.get(connection, delivery_id)
    return _delivery(database, delivery)


@router.operator(
    "POST /deliveries/{delivery_id}/replay",
    "Send an event again",
    delivery_errors.WebhookDisabledError,
    status_code=ACCEPTED,
)
def replay_delivery(delivery_id: DeliveryId, database: DatabaseDep) -> DeliveryOut:
    """The delivery keeps its `webhook-id`, and gets a new schedule of attempts."""
    return _delivery(database, flows.replay_one(database, delivery_id))


@router.operator(
    "POST /deliveries/{delivery_id}/skip",
    "Give up a delivery that blocks others",
    delivery_errors.DeliveryEndedError,
    status_code=ACCEPTED,
)
def skip_delivery(delivery_id: DeliveryId, database: DatabaseDep) -> DeliveryOut:
    """The delivery becomes `dead`, as after its last attempt, and the deliveries behind it are sent at once. A replay
    can send it later."""
    return _delivery(database, flows.skip(database, delivery_id))


def _shown(webhook: Webhook, database: Database, caller: Caller) -> WebhookOut:
    with reading(database.engine) as connection:
        counts = delivery_store.open_counts(connection, [webhook.id])
    return WebhookOut.of(webhook, database.cipher, counts.get(webhook.id, {}), is_whole=caller.may(Role.ADMIN))


def _delivery(database: Database, delivery: Delivery) -> DeliveryOut:
    with reading(database.engine) as connection:
        attempts = delivery_store.attempts(connection, [delivery.id])
    return DeliveryOut.of(delivery, attempts.get(delivery.id, []))
