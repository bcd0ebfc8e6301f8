"""Executes statements that come again in a fraction of the time of SQLAlchemy, which works out for each execution how
to pass the values and how to read the rows. Here that is done once for each statement.

Everything uncommon is left to SQLAlchemy: the first execution of a statement, statements that depend on the values, and
connections with listeners. `Connection` and `Compiled` have no public way to do this, and SQLAlchemy is pinned.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy.engine.result import IteratorResult, SimpleResultMetaData

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy import Engine

    _Row = Mapping[str, Any]
    _Known = WeakKeyDictionary[Any, dict[tuple[object, ...], "_Prepared | None"]]


def prepare(engine: Engine) -> None:
    """Lets the connections of an engine execute statements in this way."""
    known: _Known = WeakKeyDictionary()
    engine._connection_cls = partial(_Connection, known)  # type: ignore[assignment]


class _Connection(sa.Connection):
    def __init__(self, known: _Known, engine: Engine) -> None:
        super().__init__(engine)
        self._known = known

    def execute(self, statement: Any, parameters: Any = None, **more: Any) -> Any:
        rows = parameters if isinstance(parameters, list) else [parameters or {}]
        if more or not rows or not self._is_usual or not isinstance(statement, sa.Select | sa.UpdateBase):
            return super().execute(statement, parameters, **more)
        known = self._known.get(statement)
        if known is None:
            self._known[statement] = {}
            return super().execute(statement, parameters)
        key = (*rows[0], len(rows) > 1)
        if key not in known:
            known[key] = _prepared(self, statement, rows[0], many=len(rows) > 1)
        if (prepared := known[key]) is None:
            return super().execute(statement, parameters)
        return prepared.executed(self, rows)

    @property
    def _is_usual(self) -> bool:
        if self._has_events or self.engine._has_events or self._echo or self._dbapi_connection is None:
            return False
        return self._transaction is not None and self._transaction.is_active and self._nested_transaction is None


class _Result(IteratorResult[Any]):
    """The rows, which have been fetched."""

    rowcount: int


class _Prepared:
    """A compiled statement. `binds` has for each parameter its name, the key of its value in a row if it is there, what
    prepares the value for the driver, and the value otherwise."""

    def __init__(
        self,
        text: str,
        binds: Sequence[tuple[str, str | None, Callable[[Any], Any] | None, Any]],
        columns: Sequence[Any],
    ) -> None:
        self._text, self._binds, self._columns = text, binds, columns
        self._metadata: SimpleResultMetaData | None = None

    def executed(self, connection: _Connection, rows: Sequence[_Row]) -> _Result:
        dialect, cursor = connection.dialect, None
        given: Any = None
        assert connection._dbapi_connection is not None
        try:
            given = [self._values(row) for row in rows]
            if not dialect.positional:
                names = [name for name, *_ in self._binds]
                given = [dict(zip(names, each, strict=True)) for each in given]
            cursor = connection._dbapi_connection.cursor()
            if len(rows) > 1:
                cursor.executemany(self._text, given)
            else:
                cursor.execute(self._text, given[0])
            found = cursor.fetchall() if cursor.description else ()
        except BaseException as error:
            connection._handle_dbapi_exception(error, self._text, given, cursor, None)
        if self._metadata is None:
            # The driver tells the types that PostgreSQL sends with the first rows.
            kinds = zip(self._columns, cursor.description or (), strict=False)
            read = [each.type._cached_result_processor(dialect, described[1]) for each, described in kinds]
            self._metadata = SimpleResultMetaData([each.keyname for each in self._columns[: len(read)]], None, read)
        result = _Result(self._metadata, iter(found))
        result.rowcount = cursor.rowcount
        cursor.close()
        return result

    def _values(self, row: _Row) -> list[Any]:
        return [
            other if key is None else row[key] if process is None else process(row[key])
            for _, key, process, other in self._binds
        ]


def _prepared(connection: _Connection, statement: Any, row: _Row, *, many: bool) -> _Prepared | None:
    """Returns the statement as SQLAlchemy has compiled it for its first execution, or None if it is uncommon."""
    options = connection.get_execution_options()
    compiled, extracted, collected, _ = statement._compile_w_cache(
        dialect=connection.dialect,
        compiled_cache=options.get("compiled_cache", connection.engine._compiled_cache),
        column_keys=sorted(row),
        for_executemany=many,
    )
    if (
        statement._execution_options
        or compiled.literal_execute_params
        or compiled.post_compile_params
        or compiled.insert_prefetch
        or compiled.update_prefetch
        or compiled.escaped_bind_names
        or (many and compiled.effective_returning)
        or any(each.callable for each in compiled.binds.values())
    ):
        return None
    values = compiled.construct_params(
        dict.fromkeys(row), extracted_parameters=extracted, escape_names=False, _collected_params=collected
    )
    binds = []
    for name in compiled.positiontup if compiled.positional else values:
        process, own = compiled._bind_processors.get(name), compiled.binds[name].key
        key = next((each for each in (own, name) if each in row), None)
        binds.append((name, key, process, process(values[name]) if process and key is None else values[name]))
    return _Prepared(compiled.string, binds, compiled._result_columns)
