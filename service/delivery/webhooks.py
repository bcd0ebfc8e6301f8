"""Creates, changes and removes webhooks, and replays their deliveries."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from jobs.redaction import MASK
from service.db import audit_record
from service.db.engine import writing
from service.delivery import delivery_store, outbox, signing, transport, webhook_store
from service.delivery import headers as header_rules
from service.delivery.errors import (
    DeliveryEndedError,
    NotificationNeededError,
    WebhookDisabledError,
    WebhookOfNotificationError,
)
from service.delivery.guard import Guard
from service.delivery.targets.registry import chat_of
from service.delivery.webhook import Delivery, DeliveryState, Webhook
from service.delivery.webhook_events import webhook_disabled, webhook_test
from service.events.database import Database
from service.events.event import Published

log = logging.getLogger(__name__)

OLD_SECRET_IS_VALID = timedelta(days=1)
MOST_REPLAYED = 10_000
_REPLAY_BATCH = 1000


@dataclass(frozen=True)
class Created:
    """A webhook and its signing secret, which is shown only at its creation."""

    webhook: Webhook
    secret: str


@dataclass(frozen=True)
class Replayed:
    """The result of a replay: `count` deliveries are sent again. `is_complete` is False if further ones are left, which
    another call sends."""

    count: int
    is_complete: bool


def create(
    database: Database,
    guard: Guard,
    *,
    url: str,
    types: tuple[str, ...],
    tables: tuple[str, ...],
    headers: Mapping[str, str],
    description: str,
) -> Created:
    """Creates a webhook.

    Raises UrlNotAllowedError, NotificationNeededError, KafkaMissingError, HeaderNotAllowedError or
    SecretKeyMissingError.
    """
    now = database.clock()
    secret = signing.new_secret()
    webhook = Webhook(
        id=f"wh_{secrets.token_hex(8)}",
        url=_checked(url, guard),
        created_at=now,
        updated_at=now,
        sealed_secret=database.cipher.seal(secret),
        sealed_headers=_sealed(database, headers),
        types=types,
        tables=tables,
        description=description,
    )
    with changing(database) as connection:
        webhook_store.add(connection, webhook)
        audit_record.about("webhook", webhook.id)
    return Created(webhook, secret)


def change(database: Database, guard: Guard, *, webhook_id: str, changes: Mapping[str, Any]) -> Webhook:
    """Changes a webhook. `changes` maps fields of Webhook to new values, and `headers` to new headers. Pending
    deliveries go to the new URL.

    Raises WebhookNotFoundError, WebhookOfNotificationError, SecretUnreadableError and what `create` raises.
    """
    changes = dict(changes)
    if "url" in changes:
        _checked(changes["url"], guard)
    with changing(database) as connection:
        webhook = _plain(webhook_store.get(connection, webhook_id, for_update=True))
        if (headers := changes.pop("headers", None)) is not None:
            # A caller that sends a mask back wants to keep the stored value.
            stored = json.loads(database.cipher.open(webhook.sealed_headers)) if MASK in headers.values() else {}
            wanted = {name: stored.get(name, value) if value == MASK else value for name, value in headers.items()}
            changes["sealed_headers"] = _sealed(database, wanted)
        webhook = webhook.evolve(**changes, updated_at=database.clock())
        webhook_store.change(connection, webhook)
    return webhook


def remove(database: Database, webhook_id: str) -> None:
    """Removes a webhook with all its deliveries. Raises WebhookNotFoundError, WebhookOfNotificationError."""
    with changing(database) as connection:
        _plain(webhook_store.get(connection, webhook_id))
        webhook_store.remove(connection, webhook_id)


def rotate_secret(database: Database, webhook_id: str) -> Created:
    """Sets a new secret. For a day the old secret signs as well. Raises WebhookNotFoundError, SecretKeyMissingError."""
    now = database.clock()
    secret = signing.new_secret()
    sealed_secret = database.cipher.seal(secret)
    with changing(database) as connection:
        webhook = webhook_store.get(connection, webhook_id, for_update=True)
        webhook = webhook.evolve(
            sealed_secret=sealed_secret,
            sealed_old_secret=webhook.sealed_secret,
            old_secret_until=now + OLD_SECRET_IS_VALID,
            updated_at=now,
        )
        webhook_store.change(connection, webhook)
    return Created(webhook, secret)


def enable(database: Database, webhook_id: str) -> Webhook:
    """Enables a webhook, resets all its pending deliveries and sends them now. A webhook that is enabled but fails is
    treated in the same way.

    Raises WebhookNotFoundError.
    """
    now = database.clock()
    with changing(database) as connection:
        webhook = webhook_store.get(connection, webhook_id, for_update=True).evolve(
            disabled_because=None, disabled_at=None, failing_since=None, updated_at=now
        )
        webhook_store.change(connection, webhook)
        delivery_store.restart_pending(connection, webhook_id, now=now)
    return webhook


def disable(database: Database, webhook_id: str, *, because: str) -> Webhook:
    """Disables a webhook: pending deliveries wait. Publishes `webhook.disabled`. A repeated call changes
    nothing.

    Raises WebhookNotFoundError.
    """
    with changing(database) as connection:
        webhook = webhook_store.get(connection, webhook_id, for_update=True)
        if not webhook.is_enabled:
            return webhook
        now = database.clock()
        webhook = webhook.evolve(disabled_because=because, disabled_at=now, updated_at=now)
        webhook_store.change(connection, webhook)
        outbox.publish(connection, [webhook_disabled(webhook, now)], now=now)
    log.warning("Webhook %s is disabled: %s", webhook_id, because)
    return webhook


def test(database: Database, webhook_id: str) -> Delivery:
    """Sends a test event to this webhook, without retries. Raises WebhookNotFoundError or WebhookDisabledError."""
    now = database.clock()
    with changing(database) as connection:
        webhook = _enabled(connection, webhook_id)
        new = outbox.write(connection, [webhook_test(webhook, now, secrets.token_hex(8))])
        [delivery_id] = delivery_store.enqueue(connection, [(webhook_id, each) for each in new], now=now)
        return delivery_store.get(connection, delivery_id)


def replay_one(database: Database, delivery_id: str) -> Delivery:
    """Sends a delivery again, with the same event id. Raises DeliveryNotFoundError or WebhookDisabledError."""
    with changing(database) as connection:
        _enabled(connection, delivery_store.get(connection, delivery_id).webhook_id)
        delivery_store.send_again(connection, [delivery_id], now=database.clock())
        return delivery_store.get(connection, delivery_id)


def skip(database: Database, delivery_id: str) -> Delivery:
    """Gives up a pending delivery, so that the deliveries behind it are sent. Raises DeliveryNotFoundError, or
    DeliveryEndedError if the delivery is not pending."""
    now = database.clock()
    with changing(database) as connection:
        delivery = delivery_store.get(connection, delivery_id)
        if not delivery_store.give_up(connection, delivery, now=now):
            raise DeliveryEndedError(f"Delivery {delivery_id} is {delivery.state.value}.")
        return delivery_store.get(connection, delivery_id)


def replay(
    database: Database, webhook_id: str, *, since: datetime, until: datetime | None, with_delivered: bool
) -> Replayed:
    """Replays the events from `since` to `until` that match the webhook. Replayed are events whose delivery was given
    up, and events that were never sent because the webhook was disabled or did not exist yet. If `with_delivered` is
    true, delivered events are replayed too.

    Pending deliveries stay unchanged, so a repeated call has no further effect. Raises WebhookNotFoundError or
    WebhookDisabledError.
    """
    now = database.clock()
    with changing(database) as connection:
        webhook = _enabled(connection, webhook_id)
        count, seq = 0, 0
        while count < MOST_REPLAYED:
            found = outbox.between(connection, since, until or now, after_seq=seq, limit=_REPLAY_BATCH)
            if not found:
                break
            count += _replay(connection, webhook, found, with_delivered=with_delivered, now=now)
            seq = found[-1].seq
        is_complete = not outbox.between(connection, since, until or now, after_seq=seq, limit=1)
    return Replayed(count, is_complete)


@contextmanager
def changing(database: Database) -> Iterator[Connection]:
    """Opens a transaction during which no event is published, and afterwards wakes the dispatcher."""
    with writing(database.engine) as connection:
        outbox.lock(connection)
        yield connection
    database.notifier.notify()


def _checked(url: str, guard: Guard) -> str:
    if chat := chat_of(url):
        raise NotificationNeededError(f"The URL's host belongs to {chat.value}.")
    return transport.checked(url, guard)


def _plain(webhook: Webhook) -> Webhook:
    if webhook.target is not None:
        raise WebhookOfNotificationError(f"{webhook.id} sends messages to {webhook.target.value}.")
    return webhook


def _sealed(database: Database, headers: Mapping[str, str]) -> str:
    return database.cipher.seal(json.dumps(header_rules.checked(headers)))


def _replay(
    connection: Connection, webhook: Webhook, found: list[Published], *, with_delivered: bool, now: datetime
) -> int:
    again = {DeliveryState.DEAD, DeliveryState.DELIVERED} if with_delivered else {DeliveryState.DEAD}
    wanted = [each for each in found if webhook.wants(each.event)]
    known = delivery_store.known(connection, webhook.id, wanted)
    missed = [(webhook.id, each) for each in wanted if each.seq not in known]
    ended = [delivery.id for delivery in known.values() if delivery.state in again]
    delivery_store.enqueue(connection, missed, now=now)
    delivery_store.send_again(connection, ended, now=now)
    return len(missed) + len(ended)


def _enabled(connection: Connection, webhook_id: str) -> Webhook:
    webhook = webhook_store.get(connection, webhook_id)
    if not webhook.is_enabled:
        raise WebhookDisabledError(f"{webhook_id} is disabled: {webhook.disabled_because}")
    return webhook
