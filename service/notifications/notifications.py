"""Creates, changes, snoozes, tests and removes notifications."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from service.delivery import delivery_store, outbox, signing, webhook_store
from service.delivery.errors import WebhookDisabledError
from service.delivery.guard import Guard
from service.delivery.message import Entry, Message, MessageState
from service.delivery.targets import registry
from service.delivery.targets.registry import Target
from service.delivery.webhook import Delivery, Webhook
from service.delivery.webhook_events import notification as event_of
from service.delivery.webhooks import changing
from service.events.database import Database
from service.events.event import EventType
from service.notifications import store
from service.notifications.notification import Notification


@dataclass(frozen=True)
class Put:
    """The stored notification. `secret` signs the messages to a webhook. It is shown only in the answer to the call
    that created the secret."""

    notification: Notification
    is_new: bool
    secret: str | None = field(default=None, repr=False)


def put(
    database: Database,
    guard: Guard,
    name: str,
    *,
    target: Target,
    options: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> Put:
    """Creates or replaces a notification. `options` are the target's options, `settings` are fields of Notification.

    Problems that are already open are reported soon, as if they had just opened. Raises UrlNotAllowedError,
    HeaderNotAllowedError, SecretKeyMissingError or SecretUnreadableError.
    """
    now, secret = database.clock(), signing.new_secret()
    with changing(database) as connection:
        known = store.find(connection, name)
        if known is None:
            options = _checked(target, options, guard)
            webhook = Webhook(
                id=f"wh_{secrets.token_hex(8)}",
                url=registry.address(target, options),
                created_at=now,
                updated_at=now,
                sealed_secret=database.cipher.seal(secret),
                sealed_headers=database.cipher.seal(json.dumps(options)),
                types=(EventType.NOTIFICATION_SENT.value,),
                description=name,
            )
            webhook_store.add(connection, webhook)
            read_to = outbox.newest(connection)
            notification = Notification(name, webhook.id, now, now, read_to=read_to, reported_at=now).evolve(**settings)
            store.add(connection, notification)
            return Put(notification, True, secret if target is registry.Target.WEBHOOK else None)
        webhook = webhook_store.get(connection, known.webhook_id, for_update=True)
        stored = json.loads(database.cipher.open(webhook.sealed_headers))
        if webhook.target is target:
            options = registry.unmasked(target, options, stored)
        options = _checked(target, options, guard)
        if webhook.target is not target or options != stored:
            # A disabled webhook is enabled again, because the old address or key may have caused its failures.
            webhook = webhook.evolve(
                url=registry.address(target, options),
                sealed_headers=database.cipher.seal(json.dumps(options)),
                disabled_because=None,
                disabled_at=None,
                failing_since=None,
                updated_at=now,
            )
            webhook_store.change(connection, webhook)
        notification = known.evolve(**settings)
        if notification != known:
            is_kept = (notification.report, notification.time_zone) == (known.report, known.time_zone)
            notification = notification.evolve(updated_at=now, reported_at=known.reported_at if is_kept else now)
            store.change(connection, notification)
    return Put(notification, False)


def remove(database: Database, name: str) -> None:
    """Removes a notification with its webhook and the webhook's deliveries. Raises NotificationNotFoundError."""
    with changing(database) as connection:
        webhook_store.remove(connection, store.get(connection, name).webhook_id)


def snooze(database: Database, name: str, *, until: datetime | None, because: str | None) -> Notification:
    """Lets the notification send nothing until `until`. None ends the snooze. Raises NotificationNotFoundError."""
    with changing(database) as connection:
        notification = store.get(connection, name).evolve(snoozed_until=until, snoozed_because=because)
        store.change(connection, notification)
    return notification


def test(database: Database, name: str) -> Delivery:
    """Sends a test message once. A target that keeps alerts also gets the end of the alert, so that the alert does not
    stay open.

    Raises NotificationNotFoundError or WebhookDisabledError.
    """
    now, nonce = database.clock(), secrets.token_hex(8)
    with changing(database) as connection:
        notification = store.get(connection, name)
        webhook = webhook_store.get(connection, notification.webhook_id)
        if not webhook.is_enabled or webhook.target is None:
            raise WebhookDisabledError(f"{webhook.id} is disabled: {webhook.disabled_because}")
        states = [MessageState.TEST, *([MessageState.RESOLVED] if webhook.target.keeps_alerts else [])]
        events = [
            event_of(
                EventType.NOTIFICATION_TEST,
                webhook,
                name,
                _test(notification, state, now, nonce),
                at=now,
                nonce=nonce + state,
            )
            for state in states
        ]
        new = outbox.write(connection, events)
        ids = delivery_store.enqueue(connection, [(webhook.id, each) for each in new], now=now)
        return delivery_store.get(connection, ids[0])


def _test(notification: Notification, state: MessageState, now: datetime, nonce: str) -> Message:
    return Message(
        key=f"groundskeeper-test-{nonce}",
        state=state,
        kind="test",
        severity="notice",
        title=f"Test of the notification {notification.name}",
        since=now,
        entries=(
            Entry("There is no problem", "Somebody requested this message as a test.", link=notification.link or None),
        ),
        ended_at=now if state is MessageState.RESOLVED else None,
        link=notification.link or None,
    )


def _checked(target: Target, options: Mapping[str, Any], guard: Guard) -> dict[str, Any]:
    registry.check(target, options, guard)
    return dict(options)
