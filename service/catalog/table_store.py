"""Store of registered tables."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from jobs.contract import TableLock
from service.catalog.registration import Readers, Registration
from service.db import schema
from service.db.documents import Documents, Reading, pairs_of, together
from service.db.page import Page, PageRequest, Shape, is_at_or_below, matches, page_of
from service.db.violation import violated
from service.model.table_errors import TableAlreadyRegisteredError, TableNotFoundError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from sqlalchemy import Connection

    from service.catalog.ownership import TableSelection

_Found = TypeVar("_Found")

_t = schema.tables
_tables = Documents(Registration, _t)


def register(connection: Connection, table: Registration) -> None:
    """Adds a table. Raises TableAlreadyRegisteredError (with `table_id`) if the base path is taken."""
    try:
        with connection.begin_nested():
            connection.execute(_t.insert().values(table.to_row()))
            # The service watches the table from now on. The first poll is due at once.
            connection.execute(
                schema.watches.insert().values(
                    table_id=table.id, next_poll_at=table.created_at, has_pending=False, failures=0
                )
            )
    except IntegrityError as error:
        if violated(error) != schema.TABLE_BASE_PATH:
            raise
        registered = find(connection, table.base_path)
        raise TableAlreadyRegisteredError(
            f"{table.base_path} is registered as {registered}.", extensions={"table_id": registered}
        ) from error


# Every poll executes this statement, so it is built once.
_GET = _tables.select().where(_t.c.id == sa.bindparam("of_table"))
OF_ID = _tables.one_of(_GET)
"""Reads the table `of_table`; None if there is none."""
_GET_LOCKED = _GET.with_for_update()
_GET_ALL = together(_tables.select().where(schema.among(_t.c.id, "of_tables")))
NAMES: Reading[dict[str, str]] = pairs_of(str, sa.select(_t.c.id, _t.c.name).where(schema.among(_t.c.id, "of_tables")))
"""Reads what `names` returns."""
_PROFILE = sa.select(_t.c.profile).where(_t.c.id == sa.bindparam("of_table"))
_UPDATE = _t.update().where(_t.c.id == sa.bindparam("of_table"))


def get(connection: Connection, table_id: str, *, for_update: bool = False) -> Registration:
    """Returns a table. Raises TableNotFoundError. If `for_update` is true, nobody else can change the table, or add
    jobs to it, until the transaction ends."""
    table = _tables.one(connection, _GET_LOCKED if for_update else _GET, {"of_table": table_id})
    return existing(table, table_id)


def existing(found: _Found | None, table_id: str) -> _Found:
    """Returns what was found about a table. Raises TableNotFoundError if it is None."""
    if found is None:
        raise TableNotFoundError(f"There is no table {table_id}.")
    return found


def get_all(connection: Connection, table_ids: Collection[str]) -> dict[str, Registration]:
    """Returns the tables with these ids, by id; unknown ids are left out."""
    return {table.id: table for table in _tables.many(connection, _GET_ALL, {"of_tables": list(table_ids)})}


def find(connection: Connection, base_path: str) -> str | None:
    """Returns the id of the table with this canonical base path, None if there is none."""
    found: str | None = connection.execute(sa.select(_t.c.id).where(_t.c.base_path == base_path)).scalar()
    return found


def find_all(connection: Connection, base_paths: Collection[str]) -> dict[str, str]:
    """Returns the ids of the tables with these canonical base paths, by path."""
    query = sa.select(_t.c.base_path, _t.c.id).where(_t.c.base_path.in_(base_paths))
    return {row.base_path: row.id for row in connection.execute(query)}


def named(connection: Connection, names: Collection[str]) -> list[tuple[str, str]]:
    """Returns id and name of each table with one of these names."""
    rows = connection.execute(sa.select(_t.c.id, _t.c.name).where(_t.c.name.in_(names))) if names else ()
    return [(row.id, row.name) for row in rows]


def page(
    connection: Connection,
    asked: PageRequest,
    *,
    name: str | None = None,
    path: str | None = None,
    selection: TableSelection | None = None,
) -> Page[Registration]:
    """Returns a page of tables in the order of their registration. `name` is a glob. `path` is a base path, or a folder
    above base paths. The times are those of registration."""
    query = _page(asked.shape, name, path, None if selection is None or selection.is_open else selection)
    tables = _tables.many(connection, query, asked.given(_t.c.id))
    return page_of(tables, asked.limit, lambda table: (table.created_at, table.id))


@lru_cache(maxsize=100)
def _page(shape: Shape, name: str | None, path: str | None, selection: TableSelection | None) -> sa.Select[Any]:
    conditions = shape.conditions(_t.c.created_at, _t.c.id, ascending=True) + _selected(selection)
    if name is not None:
        conditions.append(matches(_t.c.name, name))
    if path is not None:
        conditions.append(is_at_or_below(_t.c.base_path, path))
    query = _tables.select().where(*conditions).order_by(_t.c.created_at, _t.c.id)
    return together(query.limit(sa.bindparam("most")))


def is_selected(table_id: sa.ColumnElement[str], selection: TableSelection | None) -> list[sa.ColumnElement[bool]]:
    """Returns a list with the condition that a row belongs to a table of the selection; the list is empty if all tables
    are selected."""
    conditions = _selected(selection)
    return [table_id.in_(sa.select(_t.c.id).where(*conditions))] if conditions else []


def owned(connection: Connection) -> Iterator[Any]:
    """Yields the id, name, owner and tags of all tables, in the order of their registration."""
    yield from connection.execute(
        sa.select(_t.c.id, _t.c.name, _t.c.owner, _t.c.tags).order_by(_t.c.created_at, _t.c.id)
    )


def reads_declared(connection: Connection) -> dict[str, float]:
    """Returns the reads a day that owners have declared, by table id."""
    rows = connection.execute(sa.select(_t.c.id, _t.c.readers).where(_t.c.readers.is_not(None)))
    found = ((row.id, Readers.from_json(row.readers).reads_per_day) for row in rows)
    return {table_id: reads for table_id, reads in found if reads is not None}


def number(connection: Connection) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(_t)).scalar_one()


def ids_of(connection: Connection, selection: TableSelection) -> set[str]:
    return set(connection.execute(sa.select(_t.c.id).where(*_selected(selection))).scalars())


def _selected(selection: TableSelection | None) -> list[sa.ColumnElement[bool]]:
    if selection is None:
        return []
    conditions: list[sa.ColumnElement[bool]] = [_t.c.owner.in_(selection.owners)] if selection.owners else []
    for tag in selection.tags:
        key, equals, value = tag.partition("=")
        stored = _t.c.tags[key].as_string()
        conditions.append(stored == value if equals else stored.is_not(None))
    return conditions


def options(connection: Connection) -> Iterator[tuple[str, Mapping[str, str], Mapping[str, str]]]:
    """Yields the id, the options of the lock and the Hudi options of every table."""
    for row in connection.execute(sa.select(_t.c.id, _t.c.lock, _t.c.hudi_options)):
        yield row.id, TableLock.from_json(row.lock).options, row.hudi_options


def locks(connection: Connection, table_ids: Collection[str]) -> dict[str, TableLock]:
    """Returns the locks of these tables, by table id. The secrets in these locks are sealed."""
    if not table_ids:
        return {}
    query = sa.select(_t.c.id, _t.c.lock).where(_t.c.id.in_(list(table_ids)))
    return {row.id: TableLock.from_json(row.lock) for row in connection.execute(query)}


def names(connection: Connection, table_ids: Collection[str]) -> dict[str, str]:
    """Returns the names of these tables by id."""
    return NAMES.read(connection, {"of_tables": list(table_ids)}) if table_ids else {}


def change(connection: Connection, table: Registration) -> None:
    connection.execute(_t.update().where(_t.c.id == table.id).values(table.to_row("id", "created_at")))


def profile_of(connection: Connection, table_id: str) -> Mapping[str, Any]:
    """Returns the profile of a table. The profile is empty if the table has none or does not exist any more."""
    return connection.execute(_PROFILE, {"of_table": table_id}).scalar_one_or_none() or {}


def set_profile(connection: Connection, table_id: str, profile: Mapping[str, Any]) -> None:
    """Replaces only the profile, because other members may have changed since the files were read."""
    connection.execute(_UPDATE, {"of_table": table_id, "profile": dict(profile)})


def unregister(connection: Connection, table_id: str) -> None:
    """Deletes the table and its ended jobs."""
    connection.execute(_t.delete().where(_t.c.id == table_id))
