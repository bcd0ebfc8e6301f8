"""Database access to the levels of policies: patterns of names, and single tables."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.db.documents import Documents, Reading, pairs_of
from service.db.upsert import upsert
from service.model.errors import PolicyNotFoundError
from service.policies.policy import PatternPolicy, TableLevel

_p = schema.policies
_t = schema.table_policies
# Every decision executes these statements, so they are built once.
_patterns, _levels = Documents(PatternPolicy, _p), Documents(TableLevel, _t)
EVERY = _patterns.all_of(_patterns.select().order_by(_p.c.pattern))
"""Reads what `every` returns."""
OF_TABLE = _levels.one_of(_levels.select().where(_t.c.table_id == sa.bindparam("of_table")))
"""Reads what `of_table` returns."""

OF_TABLES: Reading[dict[str, TableLevel]] = pairs_of(
    TableLevel, sa.select(_t.c.table_id, _levels.value().label("level")).where(schema.among(_t.c.table_id, "of_tables"))
)
"""Reads the settings of these tables' own levels, by table id."""


def every(connection: Connection) -> list[PatternPolicy]:
    """Returns the policies of all patterns, in alphabetical order."""
    return EVERY.read(connection)


def get(connection: Connection, pattern: str) -> PatternPolicy:
    """Raises PolicyNotFoundError."""
    policy = _patterns.one(connection, _patterns.select().where(_p.c.pattern == pattern))
    if policy is None:
        raise PolicyNotFoundError(f"No policy is set for {pattern}.")
    return policy


def put(connection: Connection, policy: PatternPolicy) -> bool:
    """Inserts or replaces the policy of a pattern, and returns whether it is new. A replacement keeps `created_at`."""
    changed = {
        "precedence": policy.precedence,
        "settings": dict(policy.settings),
        "updated_at": policy.updated_at,
    }
    known = connection.execute(sa.select(_p.c.pattern).where(_p.c.pattern == policy.pattern)).first()
    upsert(connection, _p, {"pattern": policy.pattern}, changed, only_new={"created_at": policy.created_at})
    return known is None


def delete(connection: Connection, pattern: str) -> None:
    """Raises PolicyNotFoundError."""
    if not connection.execute(_p.delete().where(_p.c.pattern == pattern)).rowcount:
        raise PolicyNotFoundError(f"No policy is set for {pattern}.")


def tables_with_own(connection: Connection) -> frozenset[str]:
    """Returns the ids of the tables with a policy of their own."""
    return frozenset(connection.execute(sa.select(_t.c.table_id)).scalars())


def of_table(connection: Connection, table_id: str) -> TableLevel | None:
    return OF_TABLE.read(connection, {"of_table": table_id})


def of_tables(connection: Connection) -> dict[str, TableLevel]:
    """Returns the settings of all tables' own levels, by table id. Tables without such settings are left out."""
    rows = connection.execute(sa.select(_t))
    return {row.table_id: TableLevel(row.settings, row.updated_at) for row in rows}


def put_table(connection: Connection, table_id: str, level: TableLevel) -> None:
    """Inserts or replaces the settings of a table. The table exists."""
    changed = {"settings": dict(level.settings), "updated_at": level.updated_at}
    upsert(connection, _t, {"table_id": table_id}, changed)


def delete_table(connection: Connection, table_id: str) -> None:
    """Deletes the settings of a table. Raises PolicyNotFoundError if the table has none."""
    if not connection.execute(_t.delete().where(_t.c.table_id == table_id)).rowcount:
        raise PolicyNotFoundError(f"Table {table_id} has no policy of its own.")
