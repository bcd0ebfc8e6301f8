"""Insertions that handle an existing row, in the dialect of either database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite


def insert(connection: Connection, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
    """Returns an insertion that can state what happens if the row exists, such as `on_conflict_do_nothing`."""
    return insert_into(connection.dialect.name, table)


def insert_into(dialect: str, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
    return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)


def upsert(
    connection: Connection,
    table: sa.Table,
    key: Mapping[str, Any],
    values: Mapping[str, Any],
    *,
    only_new: Mapping[str, Any] | None = None,
) -> None:
    """Writes `values` to the row with this primary key, or inserts it with `values` and `only_new` if it does not
    exist.

    Concurrent calls are executed one after the other.
    """
    statement = _upsert(connection.dialect.name, table, tuple(key), tuple(values))
    connection.execute(statement, {**key, **values, **(only_new or {})})


# Statements are kept, because building takes longer than executing.
@cache
def _upsert(dialect: str, table: sa.Table, key: tuple[str, ...], values: tuple[str, ...]) -> sa.Insert:
    return replacing(insert_into(dialect, table), key, values)


def replacing(row: postgresql.Insert | sqlite.Insert, key: Sequence[str], values: Iterable[str]) -> sa.Insert:
    """Returns the insertion, changed so that it writes `values` to an existing row with this key."""
    return row.on_conflict_do_update(index_elements=key, set_={name: row.excluded[name] for name in values})
