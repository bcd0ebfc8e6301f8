"""Store of bearer tokens. Tokens are revoked, but never deleted, because a service that once had tokens must not become
open again."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from service.access.token import Token
from service.db import schema
from service.db.upsert import insert
from service.model.errors import TokenNotFoundError

_t = schema.tokens
# Every call executes one of these statements, so they are built once.
ANY = sa.select(_t.c.id).limit(1)
"""Selects a token."""
_FIND = sa.select(_t).where(_t.c.id == sa.bindparam("of_token"))


_last_change = [object()]


def last_change() -> object:
    """Returns an object. After each change of a token by this process, another object is returned."""
    return _last_change[0]


def _change() -> None:
    _last_change[0] = object()


def add(connection: Connection, token: Token) -> None:
    _change()
    connection.execute(_t.insert().values(token.to_row()))


def add_if_absent(connection: Connection, token: Token) -> bool:
    """Adds the token unless one with the same id exists, even if that one differs or is revoked. Returns whether it was
    added."""
    _change()
    return bool(connection.execute(insert(connection, _t).values(token.to_row()).on_conflict_do_nothing()).rowcount)


def put_person(connection: Connection, person: Token) -> Token:
    """Stores a person, or updates the stored name, role and tables. A revoked person stays revoked. Returns the stored
    token."""
    _change()
    row = person.to_row()
    known = insert(connection, _t).values(row)
    renewed = {name: row[name] for name in ("name", "role", "tables")}
    connection.execute(known.on_conflict_do_update(index_elements=[_t.c.id], set_=renewed))
    stored = find(connection, person.id)
    assert stored is not None
    return stored


def current(connection: Connection, token: Token) -> Token | None:
    """Returns the stored token as it is now; None if it is gone. A person who only uses access tokens is not stored, so
    the given token is returned for such a person."""
    stored = find(connection, token.id)
    is_transient = token.is_person and (stored is None or stored.revoked_at is None)
    return token if is_transient else stored


def exist(connection: Connection) -> bool:
    """Returns whether a token was ever created; if so, every call needs one."""
    return connection.execute(ANY).first() is not None


def find(connection: Connection, token_id: str) -> Token | None:
    row = connection.execute(_FIND, {"of_token": token_id}).one_or_none()
    return Token.of_row(row) if row else None


def every(connection: Connection) -> list[Token]:
    return [Token.of_row(row) for row in connection.execute(sa.select(_t).order_by(_t.c.created_at, _t.c.id))]


def revoke(connection: Connection, token_id: str, now: datetime) -> None:
    """Revokes a token. Raises TokenNotFoundError. A second call keeps the first time."""
    found = find(connection, token_id)
    if found is None:
        raise TokenNotFoundError(f"There is no token {token_id}.")
    if found.revoked_at is None:
        _change()
        connection.execute(_t.update().where(_t.c.id == token_id).values(revoked_at=now))
