"""Store of registered tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from jobs.contract import BucketIndex, TableLock
from service.catalog.registration import Readers, Registration, Writers
from service.db import schema
from service.db.page import Cursor, Page, is_at_or_below, matches, page_of, within
from service.db.violation import violated
from service.model.table_errors import TableAlreadyRegisteredError, TableNotFoundError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime

    from sqlalchemy import Connection

_t = schema.tables


def register(connection: Connection, table: Registration) -> None:
    """Adds a table. Raises TableAlreadyRegisteredError (with `table_id`) if the base path is taken."""
    try:
        with connection.begin_nested():
            connection.execute(_t.insert().values(id=table.id, created_at=table.created_at, **_values(table)))
            # The service watches the table from now on; its first poll is due at once.
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
_GET = sa.select(_t).where(_t.c.id == sa.bindparam("of_table"))
_GET_LOCKED = _GET.with_for_update()


def get(connection: Connection, table_id: str, *, for_update: bool = False) -> Registration:
    """Returns a table. Raises TableNotFoundError. `for_update` keeps others from changing the table, and from adding
    jobs to it, until the transaction ends."""
    row = connection.execute(_GET_LOCKED if for_update else _GET, {"of_table": table_id}).one_or_none()
    if row is None:
        raise TableNotFoundError(f"There is no table {table_id}.")
    return _registration(row)


def find(connection: Connection, base_path: str) -> str | None:
    """Returns the id of the table with this canonical base path, None if there is none."""
    found: str | None = connection.execute(sa.select(_t.c.id).where(_t.c.base_path == base_path)).scalar()
    return found


def find_all(connection: Connection, base_paths: Collection[str]) -> dict[str, str]:
    """Returns the ids of the tables with these canonical base paths, by path."""
    query = sa.select(_t.c.base_path, _t.c.id).where(_t.c.base_path.in_(base_paths))
    return {row.base_path: row.id for row in connection.execute(query)}


def page(
    connection: Connection,
    *,
    limit: int,
    cursor: str | None = None,
    name: str | None = None,
    path: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Page[Registration]:
    """Returns a page of tables in the order of their registration. `name` is a glob, `path` a base path or a folder
    above; the times are those of the registration."""
    query = sa.select(_t).order_by(_t.c.created_at, _t.c.id).limit(limit + 1)
    query = query.where(*within(_t.c.created_at, since, until))
    if name is not None:
        query = query.where(matches(_t.c.name, name))
    if path is not None:
        query = query.where(is_at_or_below(_t.c.base_path, path))
    if cursor:
        after = Cursor.parse(cursor)
        same_moment = sa.and_(_t.c.created_at == after.created_at, _t.c.id > after.id)
        query = query.where(sa.or_(_t.c.created_at > after.created_at, same_moment))
    rows = [_registration(row) for row in connection.execute(query)]
    return page_of(rows, limit, lambda table: (table.created_at, table.id))


def options(connection: Connection) -> Iterator[tuple[str, Mapping[str, str], Mapping[str, str]]]:
    """Yields the id, the options of the lock and the Hudi options of every table."""
    for row in connection.execute(sa.select(_t.c.id, _t.c.lock, _t.c.hudi_options)):
        yield row.id, TableLock.from_json(row.lock).options, row.hudi_options


def change(connection: Connection, table: Registration) -> None:
    connection.execute(_t.update().where(_t.c.id == table.id).values(**_values(table)))


def unregister(connection: Connection, table_id: str) -> None:
    """Deletes the table and its ended jobs."""
    connection.execute(_t.delete().where(_t.c.id == table_id))


def _values(table: Registration) -> dict[str, Any]:
    return {
        "base_path": table.base_path,
        "name": table.name,
        "index": table.index.to_json() if table.index else None,
        "lock": table.lock.to_json(),
        "writers": table.writers.to_json(),
        "readers": table.readers.to_json(),
        "hudi_options": dict(table.hudi_options),
        "profile": dict(table.profile),
        "updated_at": table.updated_at,
    }


def _registration(row: sa.Row[Any]) -> Registration:
    # A row is a tuple, whose method `index` hides the column as an attribute.
    data = row._mapping
    return Registration(
        id=data["id"],
        base_path=data["base_path"],
        name=data["name"],
        created_at=data["created_at"],
        updated_at=data["updated_at"],
        index=BucketIndex.from_json(data["index"]) if data["index"] else None,
        lock=TableLock.from_json(data["lock"]),
        writers=Writers.from_json(data["writers"]),
        readers=Readers.from_json(data["readers"] or {}),
        hudi_options=data["hudi_options"],
        profile=data["profile"],
    )
