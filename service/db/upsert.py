"""Insert or update in one statement, in the dialect of either database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy.dialects import postgresql, sqlite

if TYPE_CHECKING:
    from collections.abc import Mapping

    import sqlalchemy as sa
    from sqlalchemy import Connection


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
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    row = insert(table).values(**key, **{**values, **(only_new or {})})
    connection.execute(row.on_conflict_do_update(index_elements=list(key), set_=dict(values)))
