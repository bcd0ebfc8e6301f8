"""Database access to notifications and the problems that they have reported."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.model.errors import NotificationNotFoundError
from service.notifications.notification import Notification, ReportedProblem

_n = schema.notifications
_t = schema.reported_problems

ANY = sa.select(_n.c.name).limit(1)
"""Selects a notification."""


def every(connection: Connection) -> list[Notification]:
    return [Notification.of_row(row) for row in connection.execute(sa.select(_n).order_by(_n.c.name))]


def get(connection: Connection, name: str) -> Notification:
    """Raises NotificationNotFoundError."""
    found = find(connection, name)
    if found is None:
        raise NotificationNotFoundError(f"There is no notification {name}.")
    return found


def find(connection: Connection, name: str) -> Notification | None:
    row = connection.execute(sa.select(_n).where(_n.c.name == name)).one_or_none()
    return None if row is None else Notification.of_row(row)


def add(connection: Connection, notification: Notification) -> None:
    connection.execute(_n.insert().values(notification.to_row()))


def change(connection: Connection, notification: Notification) -> None:
    connection.execute(_n.update().where(_n.c.name == notification.name).values(notification.to_row("name")))


def reported(connection: Connection, name: str) -> list[ReportedProblem]:
    query = sa.select(_t).where(_t.c.notification == name).order_by(_t.c.began_at, _t.c.problem_id)
    return [ReportedProblem.of_row(row) for row in connection.execute(query)]


def forget(connection: Connection, name: str, problem_ids: Collection[str]) -> None:
    if problem_ids:
        gone = _t.delete().where(_t.c.notification == name, _t.c.problem_id == sa.bindparam("of"))
        connection.execute(gone, [{"of": each} for each in problem_ids])


def keep(connection: Connection, name: str, problems: Iterable[ReportedProblem]) -> None:
    """Stores reported problems, in place of earlier rows about the same problems."""
    rows = [{"notification": name, **each.to_row()} for each in problems]
    forget(connection, name, [row["problem_id"] for row in rows])
    if rows:
        connection.execute(_t.insert(), rows)
