"""Database access to the state of catalogs, and the tables that their syncs know."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from jobs.contract import Problem
from service.db import schema
from service.db.upsert import insert
from service.model.record import Record
from service.registration.catalogs.comparison import KnownTable

_c = schema.catalogs
_t = schema.catalog_tables
_AT_ONCE = 500


@dataclass(frozen=True)
class CatalogState(Record):
    """The last sync of a catalog. `report` has counts and findings; `failures` counts failed syncs in a row."""

    name: str
    next_at: datetime
    synced_at: datetime | None = None
    failing_since: datetime | None = None
    differs_since: datetime | None = None
    failures: int = 0
    error: Problem | None = None
    report: dict[str, Any] | None = None


def every(connection: Connection) -> dict[str, CatalogState]:
    return {row.name: CatalogState.of_row(row) for row in connection.execute(sa.select(_c).order_by(_c.c.name))}


def declare(connection: Connection, names: Collection[str], now: datetime) -> None:
    """Adds the catalogs that are new in the settings, and deletes the state of catalogs that are no longer there. The
    tables of such a catalog stay stored, because the catalog may return."""
    known = set(connection.execute(sa.select(_c.c.name)).scalars())
    connection.execute(_c.delete().where(_c.c.name.not_in(list(names))))
    for name in sorted(set(names) - known):
        connection.execute(_c.insert().values(CatalogState(name, now).to_row()))


def claim(connection: Connection, name: str, now: datetime, until: datetime) -> bool:
    """Moves the time of the next sync forward if the sync is due, so that only one replica syncs. Returns whether it
    was due."""
    due = _c.update().where(_c.c.name == name, _c.c.next_at <= now).values(next_at=until)
    return connection.execute(due).rowcount == 1


def change(connection: Connection, state: CatalogState) -> None:
    connection.execute(_c.update().where(_c.c.name == state.name).values(state.to_row("name")))


def tables(connection: Connection, catalog: str) -> dict[str, KnownTable]:
    query = sa.select(_t).where(_t.c.catalog == catalog).order_by(_t.c.name)
    return {row.name: KnownTable.of_row(row) for row in connection.execute(query)}


def listed_elsewhere(connection: Connection, catalog: str) -> frozenset[str]:
    """Returns the ids of tables that other catalogs of the settings list."""
    declared = sa.select(_c.c.name).where(_c.c.name != catalog)
    query = sa.select(_t.c.table_id).where(_t.c.catalog.in_(declared), _t.c.missing_since.is_(None))
    return frozenset(connection.execute(query).scalars())


def keep(connection: Connection, catalog: str, found: Iterable[KnownTable]) -> None:
    """Stores tables, in place of earlier rows of the same names."""
    rows = [{"catalog": catalog, **each.to_row()} for each in found]
    forget(connection, catalog, [row["name"] for row in rows])
    if rows:
        # Another replica may have stored some of the tables meanwhile.
        connection.execute(insert(connection, _t).on_conflict_do_nothing(), rows)


def forget(connection: Connection, catalog: str, names: Collection[str]) -> None:
    ordered = sorted(names)
    for first in range(0, len(ordered), _AT_ONCE):
        some = ordered[first : first + _AT_ONCE]
        connection.execute(_t.delete().where(_t.c.catalog == catalog, _t.c.name.in_(some)))
