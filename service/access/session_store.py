"""Store of the sessions of browsers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from service.access.session import Session
from service.db import schema

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

_s = schema.sessions
MOST_OF_TOKEN = 20


def add(connection: Connection, session: Session) -> None:
    """Adds a session. Sessions of the same token beyond the newest `MOST_OF_TOKEN` end."""
    connection.execute(_s.insert().values(session.to_row()))
    newest = sa.select(_s.c.id).where(_s.c.token_id == session.token_id)
    newest = newest.order_by(_s.c.created_at.desc(), _s.c.id).offset(MOST_OF_TOKEN)
    for session_id in connection.execute(newest).scalars().all():
        remove(connection, session_id)


def find(connection: Connection, session_id: str) -> Session | None:
    row = connection.execute(sa.select(_s).where(_s.c.id == session_id)).one_or_none()
    return Session.of_row(row) if row else None


def remove(connection: Connection, session_id: str) -> None:
    connection.execute(_s.delete().where(_s.c.id == session_id))


def prune(connection: Connection, now: datetime, limit: int) -> int:
    """Removes at most `limit` sessions that have ended, and returns how many."""
    ended = sa.select(_s.c.id).where(_s.c.expires_at <= now).limit(limit)
    return connection.execute(_s.delete().where(_s.c.id.in_(ended))).rowcount
