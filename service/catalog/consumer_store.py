"""Store of the consumers of tables."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy import Connection

from service.catalog.consumer import Consumer
from service.catalog.errors import ConsumerNotFoundError
from service.db import schema
from service.db.documents import Documents
from service.db.upsert import upsert

_c = schema.consumers
_consumers = Documents(Consumer, _c)
OF_TABLE = _consumers.all_of(_consumers.select().where(_c.c.table_id == sa.bindparam("of_table")).order_by(_c.c.name))
"""Reads what `of_table` returns."""


def put(connection: Connection, consumer: Consumer) -> bool:
    """Inserts or updates a consumer; the table must exist. Returns whether the consumer is new. An update keeps
    `created_at`."""
    key = {"table_id": consumer.table_id, "name": consumer.name}
    known = _find(connection, consumer.table_id, consumer.name)
    changed = {"instant": consumer.instant, "seen_at": consumer.seen_at}
    upsert(connection, _c, key, changed, only_new={"created_at": consumer.created_at})
    return known is None


def get(connection: Connection, table_id: str, name: str) -> Consumer:
    """Raises ConsumerNotFoundError."""
    found = _find(connection, table_id, name)
    if found is None:
        raise ConsumerNotFoundError(f"There is no consumer {name} of table {table_id}.")
    return found


def of_table(connection: Connection, table_id: str) -> list[Consumer]:
    """Returns the table's consumers by name."""
    return OF_TABLE.read(connection, {"of_table": table_id})


def of_tables(connection: Connection, table_ids: Collection[str]) -> dict[str, list[Consumer]]:
    """Returns the consumers of these tables; tables without consumers are left out."""
    found: dict[str, list[Consumer]] = {}
    for row in connection.execute(sa.select(_c).order_by(_c.c.name)):
        if row.table_id in table_ids:
            found.setdefault(row.table_id, []).append(Consumer(**row._mapping))
    return found


def delete(connection: Connection, table_id: str, name: str) -> None:
    """Raises ConsumerNotFoundError."""
    if not connection.execute(_c.delete().where(_c.c.table_id == table_id, _c.c.name == name)).rowcount:
        raise ConsumerNotFoundError(f"There is no consumer {name} of table {table_id}.")


def _find(connection: Connection, table_id: str, name: str) -> Consumer | None:
    row = connection.execute(sa.select(_c).where(_c.c.table_id == table_id, _c.c.name == name)).one_or_none()
    return Consumer(**row._mapping) if row else None
