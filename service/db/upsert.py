"""Insert or update in one step, which both databases can, each in its own dialect."""

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
    """Writes `values` to the row with this primary key, and makes it with `only_new` besides if it is not there.

    Two that do it at once follow each other.
    """
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    row = insert(table).values(**key, **{**values, **(only_new or {})})
    connection.execute(row.on_conflict_do_update(index_elements=list(key), set_=dict(values)))
