"""Database access to webhooks. Changes need the outbox's lock, so that publishing transactions see all webhooks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.db.page import Page, PageRequest, matches, paged
from service.delivery.webhook import Webhook
from service.model.errors import WebhookNotFoundError

_w = schema.webhooks
# Every transaction that publishes executes this statement, so it is built once.
_ENABLED = sa.select(_w).where(_w.c.disabled_because.is_(None)).order_by(_w.c.created_at, _w.c.id)


def add(connection: Connection, webhook: Webhook) -> None:
    connection.execute(_w.insert().values(webhook.to_row()))


def get(connection: Connection, webhook_id: str, *, for_update: bool = False) -> Webhook:
    """Raises WebhookNotFoundError. `for_update` locks the webhook as `locked` does."""
    query = sa.select(_w).where(_w.c.id == webhook_id)
    row = connection.execute(query.with_for_update(key_share=True) if for_update else query).one_or_none()
    if row is None:
        raise WebhookNotFoundError(f"There is no webhook {webhook_id}.")
    return Webhook.of_row(row)


def page(
    connection: Connection,
    asked: PageRequest,
    *,
    description: str | None = None,
    enabled: bool | None = None,
    failing: bool | None = None,
) -> Page[Webhook]:
    """Returns a page of webhooks in the order of their creation. `description` is a glob; the times are those of the
    creation."""
    query = sa.select(_w).where(*asked.within(_w.c.created_at))
    if description is not None:
        query = query.where(matches(_w.c.description, description))
    if enabled is not None:
        query = query.where(_w.c.disabled_because.is_(None) if enabled else _w.c.disabled_because.is_not(None))
    if failing is not None:
        query = query.where(_w.c.failing_since.is_not(None) if failing else _w.c.failing_since.is_(None))
    created = (_w.c.created_at, _w.c.id)
    return paged(connection, query, Webhook.of_row, *created, asked=asked, ascending=True)


def of_ids(connection: Connection, webhook_ids: Iterable[str]) -> dict[str, Webhook]:
    query = sa.select(_w).where(_w.c.id.in_(list(webhook_ids)))
    return {row.id: Webhook.of_row(row) for row in connection.execute(query)}


def enabled(connection: Connection) -> list[Webhook]:
    return [Webhook.of_row(row) for row in connection.execute(_ENABLED)]


def locked(connection: Connection, webhook_ids: Iterable[str]) -> dict[str, Webhook]:
    """Locks and returns the webhooks that still exist; none of them changes until the transaction ends.

    Webhooks are always locked in the same order. The locks do not block references to webhooks, so transactions that
    publish do not wait for them.
    """
    query = sa.select(_w).where(_w.c.id.in_(sorted(webhook_ids))).order_by(_w.c.id).with_for_update(key_share=True)
    return {row.id: Webhook.of_row(row) for row in connection.execute(query)}


def change(connection: Connection, webhook: Webhook) -> None:
    connection.execute(_w.update().where(_w.c.id == webhook.id).values(webhook.to_row("id", "created_at")))


def note_health(connection: Connection, changed: Iterable[Webhook]) -> None:
    """Stores `failing_since` and `last_success_at`. The caller has locked the webhooks."""
    values = [
        {"of": each.id, "new_failing_since": each.failing_since, "new_last_success_at": each.last_success_at}
        for each in changed
    ]
    if values:
        new: dict[str, Any] = {name: sa.bindparam(f"new_{name}") for name in ("failing_since", "last_success_at")}
        connection.execute(_w.update().where(_w.c.id == sa.bindparam("of")).values(new), values)


def remove(connection: Connection, webhook_id: str) -> None:
    """Deletes a webhook together with its deliveries."""
    connection.execute(_w.delete().where(_w.c.id == webhook_id))
