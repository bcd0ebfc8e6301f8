"""Database access to the pause of all jobs that the service starts by itself."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.policies.policy import Pause

_a = schema.automation
_ROW = _a.c.id == 1
# Every decision executes this statement, so it is built once.
_GET = sa.select(_a).where(_ROW)
_GET_LOCKED = _GET.with_for_update()


def pause_of(connection: Connection, *, for_update: bool = False) -> Pause | None:
    """Returns the current pause, or None. If `for_update` is set, no other replica starts jobs of policies, or sets a
    pause, until the transaction ends."""
    row = connection.execute(_GET_LOCKED if for_update else _GET).one()
    return Pause(row.paused_since, row.paused_by, row.reason or "") if row.paused_since else None


def pause(connection: Connection, pause: Pause) -> None:
    values = {"paused_since": pause.since, "paused_by": pause.by, "reason": pause.reason}
    connection.execute(_a.update().where(_ROW).values(**values))


def resume(connection: Connection) -> None:
    connection.execute(_a.update().where(_ROW).values(paused_since=None, paused_by=None, reason=None))
