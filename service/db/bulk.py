"""Writes many rows at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from service.db.upsert import insert_into, replacing


def write(
    connection: Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]], *, key: tuple[str, ...] = ()
) -> None:
    """Inserts the rows in the order given. All rows must name the same columns. If `key` is given, a row replaces the
    existing row with the same key; no two of `rows` may have the same key.

    PostgreSQL gets all rows in one document, because a statement for each row takes client and server twice as long. So
    None becomes NULL, even in a column of documents.
    """
    if not rows:
        return
    dialect = connection.dialect.name
    statement = _insertion(dialect, table, tuple(rows[0]), key)
    if dialect == "postgresql":
        connection.execute(statement, {"rows": msgspec.json.encode(rows).decode()})
    else:
        connection.execute(statement, rows)


@cache
def _insertion(dialect: str, table: sa.Table, names: tuple[str, ...], key: tuple[str, ...]) -> sa.Insert:
    statement = insert_into(dialect, table)
    if dialect == "postgresql":
        row: sa.ColumnElement[Any] = sa.literal_column(f"NULL::{table.name}")
        document = sa.cast(sa.bindparam("rows", type_=sa.Text), sa.JSON)
        given = sa.func.json_populate_recordset(row, document).table_valued(*names, name="given")
        statement = statement.from_select(names, sa.select(*(given.c[name] for name in names)))
    return replacing(statement, key, [name for name in names if name not in key]) if key else statement
