"""Database access to freezes."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.db.documents import Documents
from service.db.upsert import upsert
from service.policies.errors import FreezeNotFoundError
from service.policies.freeze import MOST, Freeze

_f = schema.freezes
_freezes = Documents(Freeze, _f)
NOT_ENDED = _freezes.all_of(_freezes.select().where(_f.c.ends_at > sa.bindparam("now")).order_by(_f.c.name))
"""Reads the freezes that have not ended `now`."""


def every(connection: Connection) -> list[Freeze]:
    """Returns all freezes, including ended ones, sorted by name."""
    return [Freeze.of_row(row) for row in connection.execute(sa.select(_f).order_by(_f.c.name).limit(MOST))]


def not_ended(connection: Connection, now: datetime) -> list[Freeze]:
    return NOT_ENDED.read(connection, {"now": now})


def get(connection: Connection, name: str) -> Freeze:
    """Raises FreezeNotFoundError."""
    row = connection.execute(sa.select(_f).where(_f.c.name == name)).one_or_none()
    if row is None:
        raise FreezeNotFoundError(f"There is no freeze {name}.")
    return Freeze.of_row(row)


def number(connection: Connection) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(_f)).scalar_one()


def put(connection: Connection, freeze: Freeze) -> bool:
    """Inserts or replaces a freeze, and returns whether it is new. A replacement keeps `created_at`."""
    known = connection.execute(sa.select(_f.c.name).where(_f.c.name == freeze.name)).first()
    changed = freeze.to_row("name", "created_at")
    upsert(connection, _f, {"name": freeze.name}, changed, only_new={"created_at": freeze.created_at})
    return known is None


def delete(connection: Connection, name: str) -> None:
    """Raises FreezeNotFoundError."""
    if not connection.execute(_f.delete().where(_f.c.name == name)).rowcount:
        raise FreezeNotFoundError(f"There is no freeze {name}.")
