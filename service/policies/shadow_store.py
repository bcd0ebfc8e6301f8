"""Database access to shadows of policies."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.db.upsert import upsert
from service.policies.errors import ShadowNotFoundError
from service.policies.shadow import MOST, Shadow

_s = schema.policy_shadows


def every(connection: Connection) -> list[Shadow]:
    """Returns all shadows, by pattern."""
    return [Shadow(**row._mapping) for row in connection.execute(sa.select(_s).order_by(_s.c.pattern).limit(MOST))]


def get(connection: Connection, pattern: str) -> Shadow:
    """Raises ShadowNotFoundError."""
    row = connection.execute(sa.select(_s).where(_s.c.pattern == pattern)).one_or_none()
    if row is None:
        raise ShadowNotFoundError(f"The policy of {pattern} has no shadow.")
    return Shadow(**row._mapping)


def number(connection: Connection) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(_s)).scalar_one()


def put(connection: Connection, shadow: Shadow) -> bool:
    """Inserts or replaces the shadow of a pattern, and returns whether it is new. A replaced shadow starts again."""
    changed = {
        "precedence": shadow.precedence,
        "settings": dict(shadow.settings),
        "started_at": shadow.started_at,
    }
    known = connection.execute(sa.select(_s.c.pattern).where(_s.c.pattern == shadow.pattern)).first()
    upsert(connection, _s, {"pattern": shadow.pattern}, changed)
    return known is None


def delete(connection: Connection, pattern: str) -> None:
    """Raises ShadowNotFoundError."""
    if not connection.execute(_s.delete().where(_s.c.pattern == pattern)).rowcount:
        raise ShadowNotFoundError(f"The policy of {pattern} has no shadow.")
