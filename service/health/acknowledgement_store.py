"""Store of the problems that somebody has acknowledged: they are known, and need nobody's attention until they end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import sqlalchemy as sa

from jobs.spec import Spec, Told
from service.db import schema
from service.db.upsert import insert

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Connection

_a = schema.acknowledgements
_p = schema.standing_problems

_UNTIL_STORED = timedelta(minutes=10)
"""Time after which an acknowledged problem has been stored by a round, if it still exists."""


@dataclass(frozen=True)
class Acknowledgement(Told):
    """Who knows of a problem, and since when."""

    by: Annotated[str, Spec("Name of the caller", examples=("kim",))]
    at: datetime


def every(connection: Connection) -> dict[str, Acknowledgement]:
    """Returns the acknowledgements by the ids of their problems."""
    rows = connection.execute(sa.select(_a))
    return {row.problem_id: Acknowledgement(row.acknowledged_by, row.at) for row in rows}


def add(connection: Connection, problem_ids: Collection[str], by: str, now: datetime) -> int:
    """Returns how many of the problems had not been acknowledged."""
    rows = [{"problem_id": each, "acknowledged_by": by, "at": now} for each in problem_ids]
    statement = insert(connection, _a).on_conflict_do_nothing()
    return sum(connection.execute(statement.values(**row)).rowcount for row in rows)


def remove(connection: Connection, problem_ids: Collection[str]) -> int:
    """Returns how many there were."""
    return connection.execute(_a.delete().where(_a.c.problem_id.in_(problem_ids))).rowcount if problem_ids else 0


def forget_ended(connection: Connection, now: datetime) -> None:
    """Deletes the acknowledgements of problems that are no longer stored, so that one that comes back is shown."""
    is_stored = sa.exists().where(_p.c.id == _a.c.problem_id)
    connection.execute(_a.delete().where(_a.c.at < now - _UNTIL_STORED, sa.not_(is_stored)))
