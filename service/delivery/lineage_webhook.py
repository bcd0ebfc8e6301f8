"""The webhook that the settings make for an OpenLineage endpoint."""

from __future__ import annotations

import json

from sqlalchemy import Engine

from service.access.secret_cipher import SecretCipher
from service.db.engine import writing
from service.delivery import headers as header_rules
from service.delivery import open_lineage, outbox, signing, transport, webhook_store
from service.delivery.guard import Guard
from service.delivery.webhook import Webhook
from service.model.clock import Clock
from service.model.errors import GroundskeeperError, SettingsError, WebhookNotFoundError

ID = "wh_openlineage"
_DESCRIPTION = "GROUNDSKEEPER_OPENLINEAGE_URL"


def ensure(
    engine: Engine, clock: Clock, cipher: SecretCipher, guard: Guard, *, url: str | None, api_key: str | None
) -> None:
    """Creates, changes or removes the webhook, according to the settings. An unchanged webhook keeps its deliveries and
    its state. Replicas with the same settings may call this at the same time.

    Raises SettingsError if no webhook can be made from the settings.
    """
    now = clock()
    with writing(engine) as connection:
        outbox.lock(connection)
        try:
            stored = webhook_store.get(connection, ID, for_update=True)
        except WebhookNotFoundError:
            stored = None
        if url is None:
            if stored is not None:
                webhook_store.remove(connection, ID)
            return
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        try:
            target = open_lineage.SCHEME + url.removeprefix(open_lineage.SCHEME)
            transport.checked(target, guard)
            sealed_headers = cipher.seal(json.dumps(header_rules.checked(headers)))
            if stored is None:
                sealed_secret = cipher.seal(signing.new_secret())
        except GroundskeeperError as error:
            raise SettingsError(
                f"GROUNDSKEEPER_OPENLINEAGE_URL cannot be used: {error.title}: {error.detail}",
                hint=error.hint or "GROUNDSKEEPER_WEBHOOK_ALLOWED_HOSTS allows hosts that are not public, and http.",
            ) from error
        if stored is None:
            webhook = Webhook(ID, target, now, now, sealed_secret, sealed_headers, description=_DESCRIPTION)
            webhook_store.add(connection, webhook)
        elif stored.url != target or _opened(cipher, stored) != headers:
            # The webhook is enabled again, because the old address or key may have been the cause of its failures.
            changed = stored.evolve(
                url=target,
                sealed_headers=sealed_headers,
                disabled_because=None,
                disabled_at=None,
                failing_since=None,
                updated_at=now,
            )
            webhook_store.change(connection, changed)


def _opened(cipher: SecretCipher, webhook: Webhook) -> object:
    try:
        return json.loads(cipher.open(webhook.sealed_headers))
    except GroundskeeperError:
        return None
