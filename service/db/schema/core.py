"""The metadata of the database, and the column types that SQLAlchemy does not have."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.engine import Dialect

metadata = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
    }
)


class UtcDateTime(sa.TypeDecorator[datetime]):
    """Aware datetimes in UTC. SQLite stores no time zone, so writing removes it and reading adds it again."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)

    def result_processor(self, dialect: Dialect, coltype: Any) -> Callable[[Any], datetime | None] | None:
        if dialect.name != "sqlite":
            return super().result_processor(dialect, coltype)
        # One call for each value takes a third of the time of the three that the base class chains.
        parse = datetime.fromisoformat
        return lambda value: None if value is None else parse(f"{value}+00:00")


# SQLite generates ids only for a column of the type INTEGER.
Serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")
