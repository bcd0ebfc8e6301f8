"""The objects of the audit trail: their types, and the members of each object that an entry records before and after a
call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from fastapi.encoders import jsonable_encoder
from sqlalchemy import Connection

from service.access.secret_cipher import SecretCipher
from service.api.notification_forms import NotificationIn, NotificationOut
from service.api.policy_models import PatternPolicyOut, PauseOut
from service.api.structs import as_members
from service.api.table_models import TableOut
from service.api.webhook_forms import WebhookOut
from service.catalog import consumer_store, table_store
from service.catalog.registration import Registration
from service.delivery import delivery_store, webhook_store
from service.health import acknowledgement_store
from service.incidents import store as incident_store
from service.model.errors import NotFoundError
from service.notifications import store as notification_store
from service.policies import freeze_store, pause_store, shadow_store, store
from service.policies.policy import TableLevel
from service.queue import job_store

Reader = Callable[[Connection, SecretCipher, str], "tuple[str | None, Any]"]
"""Returns the name and the members of the object with this id. Raises NotFoundError."""

_OF_TABLE = {"profile", "incidents", "clock"}  # Members that are detected, not declared.
_OF_JOB = ("table_id", "kind", "params", "dry_run", "priority", "timeout_seconds", "state", "cancel_requested")
# The whole installation has one pause, which has this id.
_ONLY_ONE = "all"

_BY_PATH = {
    "/v1/tables/{table_id}/policy": ("table-policy", "{table_id}"),
    "/v1/tables/{table_id}/advice": ("table-policy", "{table_id}"),
    "/v1/tables/{table_id}/lock": ("table-lock", "{table_id}"),
    "/v1/tables/{table_id}/consumers/{name}": ("consumer", "{table_id}/{name}"),
    "/v1/policies/{pattern:path}": ("policy", "{pattern}"),
    "/v1/problems/{problem_id}/acknowledgement": ("acknowledgement", "{problem_id}"),
    "/v1/notifications/{name}": ("notification", "{name}"),
    "/v1/notifications/{name}/snooze": ("notification", "{name}"),
    "/v1/notifications/{name}/test": ("notification", "{name}"),
    "/v1/pause": ("pause", _ONLY_ONE),
    "/v1/freezes/{name}": ("freeze", "{name}"),
    "/v1/policy-shadows/{pattern:path}": ("policy-shadow", "{pattern}"),
}


def object_of(path: str, values: Mapping[str, Any]) -> tuple[str, str] | None:
    """Returns the type and the id of the object that a route is about; None if the call creates the object. In a path,
    `{x_id}` names an object of the type x."""
    if path in _BY_PATH:
        kind, text = _BY_PATH[path]
        return kind, text.format(**values)
    named = [(name.removesuffix("_id"), str(value)) for name, value in values.items() if name.endswith("_id")]
    return named[-1] if named else None


def read(connection: Connection, cipher: SecretCipher, kind: str, object_id: str) -> tuple[str | None, Any]:
    """Returns the name of an object and its members as JSON; `(None, None)` if it does not exist. Secrets that are
    stored encrypted are masked."""
    try:
        if (of_models := _OF_MODELS.get(kind)) is not None:
            return of_models(connection, cipher, object_id)
        name, members = _READERS[kind](connection, cipher, object_id) if kind in _READERS else (None, None)
    except NotFoundError:
        return None, None
    return name, jsonable_encoder(members)


def _table(connection: Connection, _: SecretCipher, table_id: str) -> tuple[str | None, Any]:
    table = table_store.get(connection, table_id)
    return table.name, declared(table)


def declared(table: Registration) -> dict[str, Any]:
    """Returns the members of a table that are not detected, as JSON."""
    members = as_members(TableOut.of(table, {}))
    return {name: value for name, value in members.items() if name not in _OF_TABLE}


def _table_policy(connection: Connection, _: SecretCipher, table_id: str) -> tuple[str | None, Any]:
    level = store.of_table(connection, table_id)
    return table_store.get(connection, table_id).name, settings_of(level)


def settings_of(level: TableLevel | None) -> Mapping[str, Any] | None:
    """Returns the members of the own policy of a table."""
    return None if level is None else level.settings


def _table_lock(connection: Connection, _: SecretCipher, table_id: str) -> tuple[str | None, Any]:
    """Returns no members, because the lock is not in the database. The call itself states what the lock was."""
    return table_store.get(connection, table_id).name, None


def _webhook(connection: Connection, cipher: SecretCipher, webhook_id: str) -> tuple[str | None, Any]:
    webhook = webhook_store.get(connection, webhook_id)
    # Members about deliveries are left out, because they change without a call. The path of the URL may be a
    # credential, so a digest of the URL is kept instead, which shows that the URL has changed.
    members = as_members(WebhookOut.of(webhook, cipher, {}, is_whole=False))
    for name in ("pending", "dead", "last_success_at", "failing_since"):
        del members[name]
    return webhook.description or None, {**members, "url_digest": sha256(webhook.url.encode()).hexdigest()[:16]}


def _notification(connection: Connection, cipher: SecretCipher, name: str) -> tuple[str | None, Any]:
    found = notification_store.get(connection, name)
    webhook = webhook_store.get(connection, found.webhook_id)
    shown = as_members(NotificationOut.of(found, webhook, cipher, {}, found.updated_at))
    members = {each: shown[each] for each in (*NotificationIn.model_fields, "snoozed_until", "snoozed_because")}
    # The digest shows that a secret has changed, but does not reveal it.
    return name, {**members, "target_digest": sha256(cipher.open(webhook.sealed_headers).encode()).hexdigest()[:16]}


def _consumer(connection: Connection, _: SecretCipher, key: str) -> tuple[str | None, Any]:
    table_id, name = key.rsplit("/", 1)
    return name, consumer_store.get(connection, table_id, name)


def _job(connection: Connection, _: SecretCipher, job_id: str) -> tuple[str | None, Any]:
    job = job_store.get(connection, job_id)
    members = {name: getattr(job, name) for name in _OF_JOB}
    return job.kind.value, as_members({**members, "hand_over": job.hand_over.state if job.hand_over else None})


def _incident(connection: Connection, _: SecretCipher, incident_id: str) -> tuple[str | None, Any]:
    found = incident_store.get(connection, incident_id)
    members = {"table_id": found.table_id, "instant": found.instant, "state": found.state, "because": found.because}
    return found.kind.value, members


def _delivery(connection: Connection, _: SecretCipher, delivery_id: str) -> tuple[str | None, Any]:
    found = delivery_store.get(connection, delivery_id)
    return found.event_type, {"webhook_id": found.webhook_id, "event_id": found.event_id, "state": found.state}


# The members of these objects are already JSON. FastAPI's encoder would take as long for them as everything else.
_OF_MODELS: dict[str, Reader] = {
    "table": _table,
    "table-policy": _table_policy,
    "table-lock": _table_lock,
    "policy": lambda connection, _, pattern: (pattern, as_members(PatternPolicyOut.of(store.get(connection, pattern)))),
    "pause": lambda connection, _, __: (None, as_members(PauseOut.of(pause_store.pause_of(connection)))),
    "webhook": _webhook,
    "notification": _notification,
    "job": _job,
}
_READERS: dict[str, Reader] = {
    "freeze": lambda connection, _, name: (name, freeze_store.get(connection, name)),
    "policy-shadow": lambda connection, _, pattern: (pattern, shadow_store.get(connection, pattern)),
    "consumer": _consumer,
    "acknowledgement": lambda connection, _, problem: (None, acknowledgement_store.find(connection, problem)),
    "incident": _incident,
    "delivery": _delivery,
}
