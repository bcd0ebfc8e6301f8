"""The metadata of the database, and the column types that SQLAlchemy does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler

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
        return _time_of


def _time_of(text: str | None) -> datetime | None:
    """Returns a time of SQLite in UTC, by one call instead of the three calls of the base class. The zone is appended
    to the text, because setting it after parsing takes six times as long as parsing. A date does not get a zone from
    the text, so it gets the zone afterwards."""
    if text is None:
        return None
    found = datetime.fromisoformat(f"{text}+00:00")
    return found if found.tzinfo else found.replace(tzinfo=UTC)


# SQLite generates ids only for a column of the type INTEGER.
Serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")


class _Words(sa.TypeDecorator[Any]):
    """A list of words as one parameter: an array in PostgreSQL, a JSON document in SQLite."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        return dialect.type_descriptor(ARRAY(sa.Text()) if dialect.name == "postgresql" else sa.Text())

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return list(value) if dialect.name == "postgresql" else msgspec.json.encode(list(value)).decode()


class _Among(sa.sql.functions.GenericFunction[bool]):
    name = "among"
    type = sa.Boolean()
    inherit_cache = True
    # Without this, SQLite would compare the condition with 1, and use no index.
    _is_implicitly_boolean = True


@compiles(_Among, "sqlite")
def _of_document(element: _Among, compiler: SQLCompiler, **more: Any) -> str:
    column, words = (compiler.process(each, **more) for each in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({words}))"  # noqa: S608 - compiled expressions


@compiles(_Among, "postgresql")
def _of_array(element: _Among, compiler: SQLCompiler, **more: Any) -> str:
    column, words = (compiler.process(each, **more) for each in element.clauses)
    return f"{column} = ANY ({words})"


def literals(words: Iterable[str]) -> list[sa.ColumnElement[str]]:
    """Returns constant words for `IN`. Both databases use a partial index only if the statement itself contains the
    index's condition. SQLAlchemy's own `IN` has parameters, and is compiled again for each call (see `among`)."""
    return [sa.literal_column(f"'{each}'", sa.String()) for each in words]


def among(column: sa.ColumnElement[str], name: str) -> sa.ColumnElement[bool]:
    """Returns the condition that the column is one of the words of a parameter. SQLAlchemy's own `IN` is compiled again
    for each call, which takes longer than executing the statement."""
    return _Among(column, sa.bindparam(name, type_=_Words()))
