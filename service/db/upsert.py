"""Insertion that minds a row which is there already, in the dialect of either database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy.dialects import postgresql, sqlite

if TYPE_CHECKING:
    from collections.abc import Mapping

    import sqlalchemy as sa
    from sqlalchemy import Connection


def insert(connection: Connection, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
    """Returns an insertion that can say what happens if there is such a row (`on_conflict_do_nothing`)."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)


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
    row = insert(connection, table).values(**key, **{**values, **(only_new or {})})
    connection.execute(row.on_conflict_do_update(index_elements=list(key), set_=dict(values)))
