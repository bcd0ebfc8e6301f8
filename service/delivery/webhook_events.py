"""Events about webhooks."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from service.delivery.message import Message
from service.delivery.webhook import Webhook
from service.events.event import Event, EventType, event_id


def webhook_disabled(webhook: Webhook, at: datetime) -> Event:
    data = {"webhook": _webhook(webhook), "because": webhook.disabled_because}
    type_ = EventType.WEBHOOK_DISABLED
    return Event(event_id(type_.value, webhook.id, at.isoformat()), type_, at, data=data)


def webhook_test(webhook: Webhook, at: datetime, nonce: str) -> Event:
    """Returns `webhook.test`. Each test is a separate event, because `nonce` differs every time."""
    type_ = EventType.WEBHOOK_TEST
    return Event(event_id(type_.value, webhook.id, nonce), type_, at, data={"webhook": _webhook(webhook)})


def notification(type_: EventType, webhook: Webhook, name: str, message: Message, *, at: datetime, nonce: str) -> Event:
    """Returns the event that carries one message of a notification to its webhook."""
    data = {"notification": {"id": webhook.id, "name": name}, "message": message.to_json()}
    return Event(event_id(type_.value, webhook.id, message.key, nonce), type_, at, data=data)


def _webhook(webhook: Webhook) -> dict[str, Any]:
    # The URL is left out, because other webhooks may receive this event, and URLs of chat services are secrets.
    return {"id": webhook.id, "description": webhook.description}
