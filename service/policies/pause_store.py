"""Database access to the pause of all jobs that the service starts by itself."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.db.documents import Reading, rows_of
from service.policies.policy import Pause

_a = schema.automation
_ROW = _a.c.id == 1
# Every decision executes this statement, so it is built once.
_GET = sa.select(_a.c.paused_since, _a.c.paused_by, _a.c.reason).where(_ROW)
_GET_LOCKED = _GET.with_for_update()


def pause_of(connection: Connection, *, for_update: bool = False) -> Pause | None:
    """Returns the current pause, or None. If `for_update` is true, no other replica starts jobs of policies, or pauses
    or resumes them, until the transaction ends."""
    if not for_update:
        return PAUSE.read(connection)
    return _pause(*connection.execute(_GET_LOCKED).one())


def _pause(since: datetime | None, by: str, reason: str | None) -> Pause | None:
    return Pause(since, by, reason or "") if since else None


PAUSE: Reading[Pause | None] = rows_of(tuple[datetime | None, str | None, str | None], _GET).then(
    lambda rows: _pause(*rows[0])
)
"""Reads what `pause_of` returns."""


def pause(connection: Connection, pause: Pause) -> None:
    values = {"paused_since": pause.since, "paused_by": pause.by, "reason": pause.reason}
    connection.execute(_a.update().where(_ROW).values(**values))


def resume(connection: Connection) -> None:
    connection.execute(_a.update().where(_ROW).values(paused_since=None, paused_by=None, reason=None))
