"""Store of the acknowledgements of problems. Somebody already knows of an acknowledged problem, so this problem needs
no attention until it ends."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

import sqlalchemy as sa
from sqlalchemy import Connection

from jobs.spec import Documented, Spec
from service.db import schema
from service.db.upsert import insert, upsert

_a = schema.acknowledgements
_p = schema.standing_problems

_UNTIL_STORED = timedelta(minutes=10)
"""How long after an acknowledgement a round has certainly stored the problem, if the problem still exists."""


@dataclass(frozen=True)
class Acknowledgement(Documented):
    """An acknowledgement: who knows of the problem, since when, until when, and why it may wait."""

    by: Annotated[str, Spec("Name of the caller", examples=("kim",))]
    at: datetime
    until: Annotated[
        datetime | None,
        Spec("When the acknowledgement ends, if the problem has not ended before; null: when the problem ends"),
    ] = None
    reason: Annotated[str | None, Spec("Why, for others", examples=("the storage is being moved",))] = None

    def to_row(self) -> dict[str, object]:
        return {"acknowledged_by": self.by, "at": self.at, "until": self.until, "reason": self.reason}


def every(connection: Connection, now: datetime) -> dict[str, Acknowledgement]:
    """Returns the acknowledgements by the ids of their problems."""
    rows = connection.execute(_EVERY, {"now": now})
    return {row.problem_id: _read(row) for row in rows}


def find(connection: Connection, problem_id: str) -> Acknowledgement | None:
    """Returns the acknowledgement of one problem, even if it has ended."""
    row = connection.execute(sa.select(_a).where(_a.c.problem_id == problem_id)).one_or_none()
    return None if row is None else _read(row)


def add(connection: Connection, problem_ids: Collection[str], given: Acknowledgement) -> int:
    """Acknowledges the problems that nobody has acknowledged, and returns their number. The others keep their
    acknowledgements."""
    connection.execute(_a.delete().where(_a.c.problem_id.in_(problem_ids), _is_over(given.at)))
    statement = insert(connection, _a).on_conflict_do_nothing()
    return sum(connection.execute(statement.values(problem_id=each, **given.to_row())).rowcount for each in problem_ids)


def put(connection: Connection, problem_id: str, given: Acknowledgement) -> None:
    """Acknowledges one problem. Replaces an earlier acknowledgement."""
    upsert(connection, _a, {"problem_id": problem_id}, given.to_row())


def remove(connection: Connection, problem_ids: Collection[str]) -> int:
    """Removes acknowledgements, and returns how many there were."""
    return connection.execute(_a.delete().where(_a.c.problem_id.in_(problem_ids))).rowcount if problem_ids else 0


def forget_ended(connection: Connection, now: datetime) -> None:
    """Deletes the acknowledgements that have ended, and those of problems that are no longer stored. A problem that
    comes back is then shown again."""
    is_stored = sa.exists().where(_p.c.id == _a.c.problem_id)
    is_left = sa.and_(_a.c.at < now - _UNTIL_STORED, sa.not_(is_stored))
    connection.execute(_a.delete().where(sa.or_(is_left, _is_over(now))))


def _read(row: sa.Row[Any]) -> Acknowledgement:
    return Acknowledgement(row.acknowledged_by, row.at, row.until, row.reason)


def _is_over(now: datetime | sa.BindParameter[datetime]) -> sa.ColumnElement[bool]:
    return sa.and_(_a.c.until.is_not(None), _a.c.until <= now)


ANY = sa.select(_a.c.problem_id).limit(1)
"""Selects an acknowledgement."""
_EVERY = sa.select(_a).where(sa.not_(_is_over(sa.bindparam("now"))))
