"""Store of the sessions of browsers."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from service.access.session import Session
from service.db import schema
from service.db.upsert import insert

_s = schema.sessions
MOST_OF_TOKEN = 20


def add(connection: Connection, session: Session) -> bool:
    """Adds a session; returns False if there is one with its id. Sessions of the same token beyond the newest
    `MOST_OF_TOKEN` end."""
    if not connection.execute(insert(connection, _s).values(session.to_row()).on_conflict_do_nothing()).rowcount:
        return False
    newest = sa.select(_s.c.id).where(_s.c.token_id == session.token_id)
    newest = newest.order_by(_s.c.created_at.desc(), _s.c.id).offset(MOST_OF_TOKEN)
    for session_id in connection.execute(newest).scalars().all():
        remove(connection, session_id)
    return True


def find(connection: Connection, session_id: str) -> Session | None:
    row = connection.execute(sa.select(_s).where(_s.c.id == session_id)).one_or_none()
    return Session.of_row(row) if row else None


def remove(connection: Connection, session_id: str) -> None:
    connection.execute(_s.delete().where(_s.c.id == session_id))


def prune(connection: Connection, now: datetime, limit: int) -> int:
    """Removes at most `limit` sessions that have ended, and returns how many."""
    ended = sa.select(_s.c.id).where(_s.c.expires_at <= now).limit(limit)
    return connection.execute(_s.delete().where(_s.c.id.in_(ended))).rowcount
