"""Changes of tokens, each with its entry in the audit trail."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from service.access import audit_store, token_store
from service.access.audit_entry import AuditEntry
from service.access.token import Token

_CREATE, _REVOKE = "createToken", "revokeToken"


def create(connection: Connection, token: Token, *, by: str, route: str) -> None:
    """Stores a new token. `by` is the person who creates the token, `route` the command or the setting."""
    token_store.add(connection, token)
    audit_store.add(connection, _entry(_CREATE, None, token, token.created_at, by=by, route=route))


def create_if_absent(connection: Connection, token: Token, *, by: str, route: str) -> None:
    """Stores a token unless one with the same id exists, even if that one differs or is revoked."""
    if token_store.add_if_absent(connection, token):
        audit_store.add(connection, _entry(_CREATE, None, token, token.created_at, by=by, route=route))


def revoke(connection: Connection, token_id: str, at: datetime, *, by: str, route: str) -> None:
    """Revokes a token. Raises TokenNotFoundError. A second call changes nothing."""
    before = token_store.find(connection, token_id)
    token_store.revoke(connection, token_id, at)
    if before is not None and before.revoked_at is None:
        after = replace(before, revoked_at=at)
        audit_store.add(connection, _entry(_REVOKE, before, after, at, by=by, route=route))


def _entry(operation: str, before: Token | None, after: Token, at: datetime, *, by: str, route: str) -> AuditEntry:
    return AuditEntry(
        at=at,
        who=by,
        method="CLI",
        route=route,
        operation=operation,
        object_type="token",
        object_id=after.id,
        object_name=after.name,
        before=None if before is None else _shown(before),
        after=_shown(after),
    )


def _shown(token: Token) -> dict[str, Any]:
    """Returns the token's members without the hash of the secret."""

    def moment(at: datetime | None) -> str | None:
        return None if at is None else at.isoformat()

    return {
        "name": token.name,
        "role": token.role.value,
        "groups": None if token.groups is None else list(token.groups),
        "tables": None if token.tables is None else list(token.tables),
        "expires_at": moment(token.expires_at),
        "revoked_at": moment(token.revoked_at),
    }
