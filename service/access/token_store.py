"""Store of bearer tokens. Rows are revoked, never deleted: a service that once had tokens must not become open
again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from service.access.token import Role, Token
from service.db import schema
from service.model.errors import TokenNotFoundError

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

_t = schema.tokens


def add(connection: Connection, token: Token) -> None:
    connection.execute(_t.insert().values(_row(token)))


def add_if_absent(connection: Connection, token: Token) -> bool:
    """Adds the token unless there is one with its id, whatever that is. Returns whether it was added."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    return bool(connection.execute(insert(_t).values(_row(token)).on_conflict_do_nothing()).rowcount)


def exist(connection: Connection) -> bool:
    """Returns whether a token was ever created; if so, every call needs one."""
    return connection.execute(sa.select(_t.c.id).limit(1)).first() is not None


def find(connection: Connection, token_id: str) -> Token | None:
    row = connection.execute(sa.select(_t).where(_t.c.id == token_id)).one_or_none()
    return _token(row) if row else None


def every(connection: Connection) -> list[Token]:
    return [_token(row) for row in connection.execute(sa.select(_t).order_by(_t.c.created_at, _t.c.id))]


def revoke(connection: Connection, token_id: str, now: datetime) -> None:
    """Revokes a token. Raises TokenNotFoundError. A second call keeps the first time."""
    found = find(connection, token_id)
    if found is None:
        raise TokenNotFoundError(f"There is no token {token_id}.")
    if found.revoked_at is None:
        connection.execute(_t.update().where(_t.c.id == token_id).values(revoked_at=now))


def _row(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "role": token.role.value,
        "digest": token.digest,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "groups": None if token.groups is None else list(token.groups),
    }


def _token(row: sa.Row[Any]) -> Token:
    return Token(
        id=row.id,
        name=row.name,
        role=Role(row.role),
        digest=row.digest,
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        groups=None if row.groups is None else tuple(row.groups),
    )
