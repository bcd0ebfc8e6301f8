"""Store of the audit trail. An entry never changes, except that the outcome of its call is added later."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from service.access.audit_entry import AuditEntry, Outcome
from service.db import schema
from service.db.page import Page, PageRequest, paged

_a = schema.audit_entries

_ADD = _a.insert().returning(_a.c.id)
_OF_OUTCOME = {
    Outcome.DONE: sa.or_(_a.c.status.is_(None), _a.c.status < 400),
    Outcome.REFUSED: sa.and_(schema.AUDIT_IS_REFUSED, _a.c.status < 500),
    Outcome.FAILED: sa.and_(schema.AUDIT_IS_REFUSED, _a.c.status >= 500),
}


def add(connection: Connection, entry: AuditEntry) -> int:
    """Returns the id of the new entry."""
    return int(connection.execute(_ADD, entry.to_row("id")).scalar_one())


def lock(connection: Connection, object_type: str, object_id: str) -> None:
    """Waits until no other recorded transaction changes this object. So the object does not change between the caller's
    next read and its write. This must be the first statement of the transaction. SQLite needs no lock, because it has
    only one writer at a time."""
    if connection.dialect.name == "postgresql":
        name = f"audit {object_type} {object_id}"
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtextextended(name, 0))))


def set_outcome(connection: Connection, entry_id: int, status: int, problem: str | None) -> bool:
    """Adds the outcome to an entry. Returns False if the entry is missing because its transaction was rolled back."""
    written = connection.execute(_a.update().where(_a.c.id == entry_id).values(status=status, problem=problem))
    return bool(written.rowcount)


def set_members(connection: Connection, entry_id: int, before: Any, after: Any) -> None:
    connection.execute(_a.update().where(_a.c.id == entry_id).values(before=before, after=after))


def set_repeats(connection: Connection, entry_id: int, repeats: int) -> None:
    connection.execute(_a.update().where(_a.c.id == entry_id).values(repeats=repeats))


def page(
    connection: Connection, asked: PageRequest, *, outcomes: Collection[Outcome] = (), **among: Collection[str]
) -> Page[AuditEntry]:
    """Returns a page of entries, newest first. `among` maps names of columns to the selected values. An empty
    collection selects all values."""
    query = sa.select(_a).where(
        *asked.within(_a.c.at), *(_a.c[name].in_(values) for name, values in among.items() if values)
    )
    if outcomes:
        query = query.where(sa.or_(*(_OF_OUTCOME[outcome] for outcome in outcomes)))
    return paged(connection, query, AuditEntry.of_row, _a.c.at, _a.c.id, asked=asked)


def prune(connection: Connection, before: datetime, limit: int) -> int:
    """Removes at most `limit` entries from before `before`, and returns how many."""
    old = sa.select(_a.c.id).where(_a.c.at < before).limit(limit)
    return connection.execute(_a.delete().where(_a.c.id.in_(old))).rowcount


def prune_refused(connection: Connection, most: int, limit: int) -> int:
    """Removes at most `limit` entries of refused or failed calls beyond the newest `most`, and returns how many."""
    newest = sa.select(_a.c.id).where(schema.AUDIT_IS_REFUSED).order_by(_a.c.id.desc())
    last = connection.execute(newest.offset(most).limit(1)).scalar_one_or_none()
    if last is None:
        return 0
    old = sa.select(_a.c.id).where(schema.AUDIT_IS_REFUSED, _a.c.id <= last).limit(limit)
    return connection.execute(_a.delete().where(_a.c.id.in_(old))).rowcount
