"""Database access to the sightings of locks."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.db.documents import Documents
from service.db.upsert import insert
from service.model.lock_state import LockState
from service.queue.lock_sighting import LockSighting

_l = schema.lock_looks
_r = schema.tables

ANY_TO_WATCH = sa.select(sa.exists().where(schema.JOB_IS_QUEUED) | sa.exists().where(_l.c.table_id.is_not(None)))
"""Selects whether a job is queued or a lock is watched. If neither is so, no lock has to be checked."""


def of_tables(connection: Connection, table_ids: Collection[str]) -> dict[str, LockSighting]:
    """Returns the last sightings of these tables, if their locks are checked."""
    return OF_TABLES.read(connection, {"of_tables": list(table_ids)}) if table_ids else {}


def in_the_way(connection: Connection, table_ids: Collection[str] | None = None) -> dict[str, LockSighting]:
    """Returns the sightings that hold jobs back, of all tables or of these."""
    query = sa.select(_l).where(_l.c.holds_back)
    rows = connection.execute(query if table_ids is None else query.where(_l.c.table_id.in_(table_ids)))
    return {row.table_id: LockSighting.of_row(row) for row in rows}


def locked(looked_after: datetime | sa.BindParameter[datetime]) -> sa.Select[tuple[str]]:
    """Selects the tables whose locks hold jobs back. A lock that was not checked after `looked_after` may be free."""
    return sa.select(_l.c.table_id).where(_l.c.holds_back, _l.c.looked_at > looked_after)


def watch(connection: Connection, table_ids: Collection[str], now: datetime) -> None:
    """Begins to check the locks of these tables. Nothing changes for locks that are checked already."""
    if not table_ids:
        return
    new = {"next_look_at": sa.literal(now, schema.UtcDateTime), "holds_back": sa.false()}
    new["state"] = sa.literal(LockState.UNKNOWN.value)
    # Only registered tables are inserted, in a fixed order, which prevents deadlocks between replicas.
    registered = sa.select(_r.c.id, *new.values()).where(_r.c.id.in_(list(table_ids))).order_by(_r.c.id)
    rows = insert(connection, _l).from_select(["table_id", *new], registered)
    connection.execute(rows.on_conflict_do_nothing(index_elements=["table_id"]))


def claim(
    connection: Connection, *, now: datetime, next_look_at: datetime, limit: int, without: Collection[str] = ()
) -> list[LockSighting]:
    """Claims at most `limit` locks that are due for a check, the longest due first. Claimed locks are due again at
    `next_look_at`, so a claim needs no release. Concurrent replicas claim different locks."""
    due = (
        sa.select(_l.c.table_id)
        .where(_l.c.next_look_at <= now, _l.c.table_id.not_in(without))
        .order_by(_l.c.next_look_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    claimed = _l.update().where(_l.c.table_id.in_(due)).values(next_look_at=next_look_at).returning(_l.c.table_id)
    return list(of_tables(connection, list(connection.execute(claimed).scalars())).values())


def record(connection: Connection, sighting: LockSighting, next_look_at: datetime) -> None:
    """Records the result of a check, unless the table's lock is no longer checked."""
    found = sighting.to_row("table_id")
    connection.execute(_l.update().where(_l.c.table_id == sighting.table_id).values(next_look_at=next_look_at, **found))


def forget(connection: Connection, table_ids: Collection[str]) -> None:
    """Ends the checks of these tables' locks."""
    if table_ids:
        connection.execute(_l.delete().where(_l.c.table_id.in_(list(table_ids))))


class Watched(NamedTuple):
    """A lock that is checked: whether it holds jobs back, and when it is checked next."""

    holds_back: bool
    next_look_at: datetime


def watched(connection: Connection) -> dict[str, Watched]:
    """Returns the locks that are checked, by table id."""
    return {table_id: Watched(*found) for table_id, *found in connection.execute(_WATCHED)}


_WATCHED = sa.select(_l.c.table_id, _l.c.holds_back, _l.c.next_look_at)
_sightings = Documents(LockSighting, _l)
OF_TABLES = _sightings.all_of(_sightings.select().where(schema.among(_l.c.table_id, "of_tables"))).then(
    lambda found: {each.table_id: each for each in found}
)
"""Reads what `of_tables` returns."""
