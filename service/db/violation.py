"""Maps a failed write to the named rule of the schema that it violated."""

from __future__ import annotations

import re

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from service.db.schema import metadata

FOREIGN_KEY = "foreign key"


def violated(error: IntegrityError) -> str | None:
    """Returns the name of the unique constraint or index, `FOREIGN_KEY`, or None for any other error."""
    diagnostics = getattr(error.orig, "diag", None)
    if diagnostics is not None:  # PostgreSQL names the constraint.
        name = str(diagnostics.constraint_name or "")
        return FOREIGN_KEY if name.startswith("fk_") else name or None
    text = str(error.orig)
    if "FOREIGN KEY" in text:
        return FOREIGN_KEY
    # SQLite names the columns only: "UNIQUE constraint failed: jobs.table_id, jobs.kind".
    match = re.search(r"UNIQUE constraint failed: (.+)", text)
    return _BY_COLUMNS.get(tuple(match.group(1).split(", "))) if match else None


def _by_columns() -> dict[tuple[str, ...], str]:
    found: dict[tuple[str, ...], str] = {}
    for table in metadata.tables.values():
        for rule in [*table.constraints, *table.indexes]:
            if isinstance(rule, sa.UniqueConstraint) or (isinstance(rule, sa.Index) and rule.unique):
                found[tuple(f"{table.name}.{column.name}" for column in rule.columns)] = str(rule.name)
    return found


_BY_COLUMNS = _by_columns()
