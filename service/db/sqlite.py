"""Connections to SQLite, and a faster dialect of SQLAlchemy for it."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import sqlalchemy as sa
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from service.db.database_files import DatabaseFiles
from service.db.transaction import WRITES
from service.model import private_file
from service.model.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import Engine
    from sqlalchemy.engine import Dialect
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.pool import PoolProxiedConnection

_DRIVER = "sqlite+groundskeeper"
_BUSY_TIMEOUT_MS = 10_000
_BUSY_PAUSE_SECONDS = 0.0005
# The connection that was used last is used first, because it has the newest pages in its cache.
_POOL = {"pool_size": 10, "max_overflow": 30, "pool_use_lifo": True}
_CACHE_KIB = 16 * 1024
# Once the write-ahead log has this many pages, the next transaction that ends copies them into the database, while
# others wait. `service.db.engine.checkpoint` usually does so earlier, without keeping others waiting.
_LOG_PAGES = 8000


class _Json(sa.JSON):
    """Reads a JSON column by one function instead of three that call each other."""

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:  # noqa: ARG002
        decode = dialect._json_deserializer or json.loads

        def process(value: Any) -> Any:
            # SQLite returns the numbers inside documents as numbers.
            return decode(value) if isinstance(value, str) else value

        return process


class GroundskeeperDialect(SQLiteDialect_pysqlite):
    """The dialect of the standard library's driver. It overrides methods, because listeners to events of SQLAlchemy
    could do the same, but would make each statement look for listeners to ten kinds of events."""

    supports_statement_cache = True
    colspecs = {**SQLiteDialect_pysqlite.colspecs, sa.JSON: _Json}  # noqa: RUF012 - as in the base class
    check: Callable[[], None]

    def connect(self, *arguments: Any, **more: Any) -> DBAPIConnection:
        self.check()
        return super().connect(*arguments, **more)

    def do_begin(self, dbapi_connection: PoolProxiedConnection) -> None:
        # A transaction that writes takes the lock of writers at once. A deferred transaction, which reads first and
        # writes later, fails with "database is locked" if another one wrote in between, however long the busy timeout
        # is.
        driver: sqlite3.Connection = dbapi_connection.driver_connection  # type: ignore[assignment]
        if dbapi_connection.info.pop(WRITES, False):
            _begin_writing(driver)
        else:
            driver.execute("BEGIN")


def _begin_writing(connection: sqlite3.Connection) -> None:
    """Waits for a writer in another process by short pauses. SQLite itself would wait at growing intervals of up to 0.1
    s."""
    until = time.monotonic() + _BUSY_TIMEOUT_MS / 1000
    connection.execute("PRAGMA busy_timeout = 0").close()
    try:
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE").close()
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
            time.sleep(_BUSY_PAUSE_SECONDS)
    finally:
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}").close()


registry.register(_DRIVER.replace("+", "."), __name__, GroundskeeperDialect.__name__)


def open_sqlite(url: sa.URL, *, options: dict[str, Any]) -> tuple[Engine, DatabaseFiles]:
    """Returns an engine, and the files that its connections have open. Raises SettingsError."""
    if url.database in (None, "", ":memory:") or str(url.database).startswith("file::memory:"):
        raise SettingsError(
            "An SQLite database in memory would be a separate one for every thread.", hint="Use sqlite:///file.db."
        )
    engine = sa.create_engine(url.set(drivername=_DRIVER), **options, **_POOL)
    assert isinstance(engine.dialect, GroundskeeperDialect)
    engine.url = url  # Users of the engine see the URL without the name of this dialect.
    file = Path(str(url.database).removeprefix("file:").partition("?")[0])
    files = DatabaseFiles()

    def check() -> None:
        files.check()
        # SQLite creates its other files with the rights of the database file. If the file cannot be created, connecting
        # fails for the same reason.
        with suppress(OSError):
            private_file.create(file)
        for suffix in ("", "-wal", "-shm", "-journal"):
            private_file.tighten(file.with_name(file.name + suffix))

    engine.dialect.check = check

    @sa.event.listens_for(engine, "close")
    def _forget(dbapi_connection: Any, _record: object) -> None:
        files.closed(dbapi_connection)

    @sa.event.listens_for(engine, "connect")
    def _prepare(dbapi_connection: Any, _record: object) -> None:
        # The driver must not open transactions by itself, because they would be deferred (see `do_begin`).
        dbapi_connection.isolation_level = None
        cursor = dbapi_connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
        cursor.execute("PRAGMA journal_mode = WAL")
        # NORMAL is safe with a write-ahead log: a power cut may lose the last commits, but does not damage the
        # database. Workers report again what was lost.
        cursor.execute("PRAGMA synchronous = NORMAL")
        # Without this, an insert of several rows writes a temporary file, which is needed only to undo the rows if one
        # of them fails.
        cursor.execute("PRAGMA temp_store = MEMORY")
        cursor.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        cursor.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        cursor.execute("PRAGMA foreign_keys = ON")
        # The first read opens all files of the database.
        cursor.execute("PRAGMA schema_version")
        cursor.close()
        files.opened(dbapi_connection)

    return engine, files


_Parameter = tuple[str, Any, "Callable[[Any], Any] | None"]
"""The name of a parameter, the value that the statement itself has for it, and the function that prepares a value for
SQLite."""


class ValueReader:
    """Reads single values, over a separate connection that never writes. A read takes 15 microseconds; a transaction of
    SQLAlchemy takes fifteen times as long. Thread-safe."""

    def __init__(self, engine: Engine, files: DatabaseFiles) -> None:
        self._pool = engine.pool  # A reference to the engine would keep the engine alive.
        self._dialect = engine.dialect
        self._files = files
        self._guard = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._compiled: dict[sa.Select[Any], tuple[str, list[_Parameter]]] = {}
        sa.event.listen(engine, "engine_disposed", self._close)

    def version(self) -> int:
        """Returns a number that each commit of any process changes. Raises sqlite3.Error and the errors of
        connecting."""
        with self._guard:
            return int(self._opened().execute("PRAGMA data_version").fetchone()[0])

    def first(self, statement: sa.Select[Any], values: Mapping[str, Any]) -> Any:
        """Returns the first column of the first row, as SQLite stores it; None without rows. Raises sqlite3.Error and
        the errors of connecting."""
        if statement not in self._compiled:
            compiled = statement.compile(dialect=self._dialect)
            parameters: list[_Parameter] = []
            for name in compiled.positiontup or ():
                kind = compiled.binds[name].type.dialect_impl(self._dialect)
                parameters.append((name, compiled.params[name], kind.bind_processor(self._dialect)))
            self._compiled[statement] = (str(compiled), parameters)
        text, bound = self._compiled[statement]
        found = ((values.get(name, own), process) for name, own, process in bound)
        given = [process(value) if process else value for value, process in found]
        with self._guard:
            row = self._opened().execute(text, given).fetchone()
        return row[0] if row else None

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            opened = self._pool.connect()
            self._connection = cast("sqlite3.Connection", opened.driver_connection)
            opened.detach()
            self._connection.execute("PRAGMA busy_timeout = 0").close()
        return self._connection

    def _close(self, _engine: Engine) -> None:
        with self._guard:
            connection, self._connection = self._connection, None
            if connection is not None:
                self._files.closed(connection)
                connection.close()
