"""Reads rows as dataclasses, through JSON that the database writes.

The database returns all rows as one document, which is decoded in one step. SQLAlchemy would convert each value
separately. Python's driver of SQLite would release the interpreter's lock at each row, and then wait for it.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.visitors import InternalTraversal

from service.db.schema.core import UtcDateTime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sqlalchemy import Connection
    from sqlalchemy.sql.compiler import SQLCompiler

S = TypeVar("S")
T = TypeVar("T")

# The value is a literal, because SQLAlchemy would write a parameter into the statement at each execution.
_COMMA: Any = sa.literal_column("','", sa.Text())


class Documents(Generic[T]):
    """Reads rows of a table as instances of `kind`, a dataclass whose fields have the names of columns. If a field has
    a default, null becomes this default. Methods that read raise ValueError for a value that does not have the type of
    its field."""

    def __init__(self, kind: type[T], table: sa.Table) -> None:
        self._table = table
        fields = dataclasses.fields(kind)  # type: ignore[arg-type]
        columns = [(table.c[each.name], _has_default(each)) for each in fields]
        # Each member but the first one begins with a comma, so the first member must not be left out.
        columns.sort(key=lambda each: bool(each[0].nullable))
        self._row = _Row(f"{table.name} as {kind.__name__}", columns)
        self._one, self._many = _Decoder(kind), _Decoder(list[kind])  # type: ignore[valid-type]  # computed

    def select(self) -> sa.Select[Any]:
        """Returns a statement that selects each row of the table as a document."""
        return sa.select(self._row.label("document")).select_from(self._table)

    def one(self, connection: Connection, query: sa.Select[Any], given: Mapping[str, Any] | None = None) -> T | None:
        """Returns the only row of a query made of `select`; None if there is none."""
        found = connection.execute(query, given).scalar_one_or_none()
        return None if found is None else self._one(found)

    def many(self, connection: Connection, query: sa.Select[Any], given: Mapping[str, Any] | None = None) -> list[T]:
        """Returns the rows of a query made of `select`. This is faster if the query was passed through `together`."""
        return self._rows(",".join(filter(None, connection.execute(query, given).scalars())))

    def all_of(self, query: sa.Select[Any]) -> Reading[list[T]]:
        """Returns a reading of all rows of a query made of `select`, in their order."""
        return Reading(together(query), self._rows)

    def one_of(self, query: sa.Select[Any]) -> Reading[T | None]:
        """Returns a reading of the only row of a query made of `select`."""
        return Reading(query, lambda found: None if found is None else self._one(found))

    def value(self) -> sa.ColumnElement[Any]:
        """Returns a row of the table as one value, which can be a column in a query of `rows_of`."""
        return sa.type_coerce(self._row, sa.JSON())

    def _rows(self, found: str | None) -> list[T]:
        rows: list[T] = self._many(f"[{found or ''}]")
        return rows


def together(query: sa.Select[Any]) -> sa.Select[Any]:
    """Returns a statement that selects all rows of the query at once, in their order."""
    document = query.subquery().c.document
    return sa.select(sa.func.aggregate_strings(document, _COMMA))


class Reading(Generic[T]):
    """A statement that returns one text at most, and how to decode it."""

    def __init__(self, statement: sa.Select[Any], decode: Callable[[str | None], T]) -> None:
        self.statement, self.decode = statement, decode

    def read(self, connection: Connection, given: Mapping[str, Any] | None = None) -> T:
        return self.decode(connection.execute(self.statement, given).scalar_one_or_none())

    def then(self, change: Callable[[T], S]) -> Reading[S]:
        """Returns a reading with the result of this reading, changed by `change`."""
        return Reading(self.statement, lambda found: change(self.decode(found)))


class AtOnce:
    """Executes several readings as one statement. For each statement, a thread sends a message to the database, waits
    for the answer, and waits for the interpreter's lock. Together this takes longer than most of the queries."""

    def __init__(self, *readings: Reading[Any]) -> None:
        self._readings = readings
        self._statement = sa.select(*(each.statement.scalar_subquery() for each in readings))

    def read(self, connection: Connection, given: Mapping[str, Any] | None = None) -> Sequence[Any]:
        """Returns what each of the readings returns, in their order."""
        found = connection.execute(self._statement, given).one()
        return [each.decode(text) for each, text in zip(self._readings, found, strict=True)]


def pairs_of(kind: Any, query: sa.Select[Any]) -> Reading[dict[str, Any]]:
    """Returns a reading of the two columns of a query as a dictionary. The first column has the keys, which are texts
    and not null. The values of the second column become instances of `kind`; rows with a null there are left out."""
    key, value = (_Json(each) for each in query.subquery().c)
    decode = _Decoder(dict[str, kind])
    statement = sa.select(sa.func.aggregate_strings(key.concat(":").concat(value), _COMMA))
    return Reading(statement, lambda found: {} if found is None else decode(f"{{{found}}}"))


def rows_of(kind: Any, query: sa.Select[Any]) -> Reading[list[Any]]:
    """Returns a reading of all rows of a query, in their order, as instances of `kind`: a tuple or a named tuple."""
    decode = _Decoder(list[kind])
    statement = sa.select(sa.func.aggregate_strings(_Array(*query.subquery().c), _COMMA))
    return Reading(statement, lambda found: decode(f"[{found or ''}]"))


class _Decoder:
    def __init__(self, kind: Any) -> None:
        self._kind = kind
        # Decoders are made while modules are imported: see `jobs.contract.converted`.
        self._decode = msgspec.json.Decoder(kind, strict=False).decode

    def __call__(self, document: str) -> Any:
        try:
            return self._decode(document)
        except msgspec.MsgspecError:
            # Python's decoder accepts more documents, as in `service.db.engine.decoded`.
            return msgspec.convert(json.loads(document), self._kind, strict=False)


class _Row(sa.ColumnElement[str]):
    """A row of a table as a JSON object. A column whose field has a default is left out if it is null.

    SQLAlchemy looks up compiled statements by this element's `name` alone, because comparing all columns would take
    longer than decoding the row.
    """

    _traverse_internals = [("name", InternalTraversal.dp_string)]  # noqa: RUF012 - as in the base class
    type = sa.Text()

    def __init__(self, name: str, columns: Sequence[tuple[sa.Column[Any], bool]]) -> None:
        self.name, self.columns = name, columns


class _Json(sa.sql.expression.FunctionElement[str]):
    """An expression as JSON; null for null."""

    inherit_cache = True
    type = sa.Text()


class _Array(sa.sql.expression.FunctionElement[str]):
    """Expressions as an array of JSON."""

    inherit_cache = True
    type = sa.Text()


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


@compiles(_Row, "sqlite")
def _row_of_sqlite(element: _Row, compiler: SQLCompiler, **_: Any) -> str:
    members = _members(element, compiler, _of_sqlite)
    return f"printf('{{{'%s' * len(members)}}}', {', '.join(members)})"


@compiles(_Row, "postgresql")
def _row_of_postgresql(element: _Row, compiler: SQLCompiler, **_: Any) -> str:
    return f"concat('{{', {', '.join(_members(element, compiler, _of_postgresql))}, '}}')"


def _members(
    element: _Row, compiler: SQLCompiler, value_of: Callable[[sa.ColumnElement[Any], str], str]
) -> Sequence[str]:
    found: list[str] = []
    for column, has_default in element.columns:
        value = value_of(column, compiler.process(column))
        value = value if has_default else f"coalesce({value}, 'null')"
        comma = "," if found else ""
        found.append(f"'{comma}\"{column.name}\":' || {value}")
    return found


@compiles(_Json, "sqlite")
def _json_of_sqlite(element: _Json, compiler: SQLCompiler, **more: Any) -> str:
    (value,) = element.clauses
    return _of_sqlite(value, compiler.process(value, **more))


@compiles(_Json, "postgresql")
def _json_of_postgresql(element: _Json, compiler: SQLCompiler, **more: Any) -> str:
    (value,) = element.clauses
    return _of_postgresql(value, compiler.process(value, **more))


@compiles(_Array, "sqlite")
def _array_of_sqlite(element: _Array, compiler: SQLCompiler, **more: Any) -> str:
    return _array(_of_sqlite(each, compiler.process(each, **more)) for each in element.clauses)


@compiles(_Array, "postgresql")
def _array_of_postgresql(element: _Array, compiler: SQLCompiler, **more: Any) -> str:
    return _array(_of_postgresql(each, compiler.process(each, **more)) for each in element.clauses)


def _array(values: Iterable[str]) -> str:
    return "'[' || " + " || ',' || ".join(f"coalesce({each}, 'null')" for each in values) + " || ']'"


def _of_sqlite(value: sa.ColumnElement[Any], name: str) -> str:
    match value.type:
        case sa.JSON():
            return f"nullif({name}, 'null')"
        case sa.Boolean():
            return f"CASE {name} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END"
        case UtcDateTime():
            return f"'\"' || {name} || 'Z\"'"
        case sa.Float():
            # `quote` keeps all digits; `json_quote` does not.
            return f"CASE WHEN {name} IS NOT NULL THEN quote({name}) END"
        case sa.Integer():
            return name
        case _:
            return f"CASE WHEN {name} IS NOT NULL THEN json_quote({name}) END"


def _of_postgresql(value: sa.ColumnElement[Any], name: str) -> str:
    match value.type:
        case sa.JSON():
            return f"nullif({name}::text, 'null')"
        case UtcDateTime():
            return f"""'"' || to_char({name} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') || 'Z"'"""
        case sa.Boolean() | sa.Float() | sa.Integer():
            return f"{name}::text"
        case _:
            return f"to_json({name})::text"
