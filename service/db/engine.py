"""The connection to the service's database: SQLite by default, PostgreSQL for several replicas.

Callers open a transaction here, with `reading` or `writing`, and pass the connection to the functions of the stores,
none of which commits.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DBAPIError,
    InterfaceError,
    InternalError,
    NoSuchModuleError,
    OperationalError,
)
from sqlalchemy.exc import TimeoutError as PoolExhaustedError

from service.db import audit_record
from service.db.commit_watch import CommitWatch
from service.db.database_files import DatabaseFiles
from service.db.sqlite import ValueReader, open_sqlite
from service.db.transaction import WRITES
from service.db.turns import Turns
from service.model import call_times
from service.model.errors import DatabaseDamagedError, DatabaseUnavailableError, SettingsError

if TYPE_CHECKING:
    _Run = Callable[[Connection, list[Any]], None]


def decoded(document: str | bytes, kind: Any = Any) -> Any:
    """Decodes a JSON column. `kind` is a struct with the members to read. If that fails, Python's own decoder is used.
    It takes several times as long, but reads what Python's encoder may have written: names that are not UTF-8, NaN and
    infinity."""
    try:
        return msgspec.json.decode(document, type=kind)
    except msgspec.MsgspecError:
        return msgspec.convert(json.loads(document), kind)


# Errors and the log at DEBUG must not contain the parameters of statements.
_OPTIONS: dict[str, Any] = {"hide_parameters": True, "json_deserializer": decoded}
_CONNECTIONS = 15
_PAUSE_SECONDS = 0.001  # Longer than a waiting process sleeps.
# A database is damaged if SQLite has one of these primary result codes ("corrupt" and "not a database"), or PostgreSQL
# one of these SQLSTATEs (corrupted data and indexes).
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, "XX001", "XX002"}
# The driver does not count these SQLSTATEs among the operational errors, although they are not a statement's fault: the
# server is a standby that takes no writes, or has ended a transaction that was idle for too long or took too long.
_REFUSED = {"25006", "25P03", "25P04"}
# The entry of `Connection.info` for functions that run at the end of the transaction, each with what it was given.
_LAST = "groundskeeper_last"
_turns: WeakKeyDictionary[Engine, Turns] = WeakKeyDictionary()
_files: WeakKeyDictionary[Engine, DatabaseFiles] = WeakKeyDictionary()
_value_readers: WeakKeyDictionary[Engine, ValueReader] = WeakKeyDictionary()
_watches: WeakKeyDictionary[Engine, CommitWatch] = WeakKeyDictionary()


def open_engine(url: str, *, connections: int = _CONNECTIONS, gives_way: bool = False) -> Engine:
    """Returns an engine for an SQLAlchemy URL, without connecting. The engine has at most `connections` connections to
    PostgreSQL. If `gives_way` is true, it pauses after each transaction that writes to SQLite. A process with many such
    transactions then leaves gaps in which other processes can write.

    Raises SettingsError for a URL that cannot be parsed, or an unsupported kind of database.
    """
    try:
        parsed = sa.make_url(_with_driver(url))
        backend = parsed.get_backend_name()
        if backend == "sqlite":
            engine, _files[engine] = open_sqlite(parsed, options=_OPTIONS)
            _turns[engine] = Turns(_PAUSE_SECONDS if gives_way else 0.0)
            _value_readers[engine] = ValueReader(engine, _files[engine])
            return engine
        if backend == "postgresql":
            # The driver of PostgreSQL is an optional dependency.
            from service.db.postgresql import open_postgresql

            return open_postgresql(parsed, connections=connections, options=_OPTIONS)
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise SettingsError(
            f"The database URL cannot be used: {_first_line(error)}.",
            hint="Use sqlite:///file.db or postgresql://user:password@host/name (extra `postgresql`).",
        ) from error
    raise SettingsError(f"Groundskeeper does not support the database {backend}.", hint="Use SQLite or PostgreSQL.")


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Opens a transaction that only reads. In PostgreSQL each of its statements sees everything that was committed
    before this statement."""
    times = call_times.current.get()
    measured = times.in_database() if times else nullcontext()
    with measured, _reachable(engine), engine.connect() as connection:
        connection.info[WRITES] = False
        with connection.begin():
            yield connection


@contextmanager
def writing(engine: Engine, *, quietly: bool = False) -> Iterator[Connection]:
    """Opens a transaction that writes. The transaction is committed at the end of the block, and rolled back if the
    block raises an error. `quietly` says that nobody waits for what the transaction writes, or that the caller itself
    notifies those who wait (`commit_watch`).

    Raises DatabaseUnavailableError, also if the open files of an SQLite database were deleted or replaced.
    """
    with _reachable(engine), _turn_of(engine), engine.connect() as connection:
        connection.info[WRITES] = True
        last: dict[tuple[bool, _Run], list[Any]] = {}
        connection.info[_LAST] = last
        accompanying = audit_record.current.get()
        try:
            transaction = connection.begin()
            watch = _watches.get(engine) if quietly else None
            with watch.quietly() if watch else nullcontext(), transaction:
                if accompanying is not None:
                    accompanying.begun(connection)
                yield connection
                if accompanying is not None:
                    accompanying.ends(connection)
                for (_, run), given in sorted(last.items(), key=lambda each: each[0][0]):
                    run(connection, given)
                if engine in _files:
                    _files[engine].check()
        finally:
            connection.info.pop(_LAST, None)


def at_end(connection: Connection, run: _Run, given: object, *, ends: bool = False) -> None:
    """Calls `run` once after all other statements of the transaction, with the `given` objects of all calls of `at_end`
    in a list. A lock for which all transactions wait is thus held for the shortest time. Only one function may be
    registered with `ends`: it runs last, and may execute its last statement with the option `ENDS`. The transaction
    must be opened by `writing`."""
    connection.info[_LAST].setdefault((ends, run), []).append(given)


def rewrite(engine: Engine) -> None:
    """Rewrites the files of an SQLite database, so that nothing that was deleted or replaced is left in them.
    PostgreSQL does so by itself after some time. Raises DatabaseUnavailableError."""
    if engine.dialect.name != "sqlite":
        return
    try:
        with _reachable(engine), _turn_of(engine), closing(engine.raw_connection()) as connection:
            for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
                connection.cursor().execute(statement).close()
    except sqlite3.OperationalError as error:  # SQLAlchemy translates only errors of its own connections
        raise DatabaseUnavailableError(_first_line(error)) from error


def checkpoint(engine: Engine) -> int:
    """Copies the pages of SQLite's write-ahead log into the database, while others read and write. The copy may take a
    tenth of a second. Returns how many pages the log has. Raises DatabaseUnavailableError."""
    try:
        with _reachable(engine), closing(engine.raw_connection()) as connection:
            _, pages, _ = connection.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            return int(pages)
    except sqlite3.OperationalError as error:
        raise DatabaseUnavailableError(_first_line(error)) from error


def may_find(engine: Engine, statement: sa.Select[Any], **values: Any) -> bool:
    """Returns whether the first value that the statement selects is true. Callers ask this to find out cheaply whether
    a more expensive query may find something. The result is always True for PostgreSQL. It is also True if SQLite
    cannot be read, so that the query itself raises the error."""
    if engine in _value_readers:
        with suppress(sqlite3.Error, sa.exc.SQLAlchemyError, DatabaseUnavailableError):
            return bool(_value_readers[engine].first(statement, values))
    return True


def version(engine: Engine) -> int | None:
    """Returns a number that changes with each commit to SQLite, by any process. None for PostgreSQL, and if SQLite
    cannot be read."""
    if engine in _value_readers:
        with suppress(sqlite3.Error, sa.exc.SQLAlchemyError, DatabaseUnavailableError):
            return _value_readers[engine].version()
    return None


def commit_watch(engine: Engine) -> CommitWatch:
    """Returns a watch of all commits to a database, except those of `writing` with `quietly`. For PostgreSQL it always
    reports new commits."""
    return _watches.setdefault(engine, CommitWatch(partial(_version_of, ref(engine))))


def _version_of(engine: Callable[[], Engine | None]) -> int | None:
    known = engine()  # None once the engine is gone.
    return version(known) if known is not None else None


def _turn_of(engine: Engine) -> AbstractContextManager[object]:
    """Returns a lock by which the threads of one process take turns to write to SQLite. Without it, SQLite would admit
    one writer, and the others would retry at growing intervals. PostgreSQL needs no such lock."""
    if engine.dialect.name != "sqlite":
        return nullcontext()
    return _turns[engine]


@contextmanager
def _reachable(engine: Engine) -> Iterator[None]:
    try:
        yield
    except PoolExhaustedError as error:
        raise DatabaseUnavailableError(
            "No connection to the database became free in time.",
            hint="Try again in a moment. If the problem lasts, raise GROUNDSKEEPER_DATABASE_CONNECTIONS.",
        ) from error
    except (DatabaseError, InterfaceError) as error:
        if _is_of_statement(error):
            raise
        origin = getattr(error, "orig", None)
        why = _first_line(origin or error)
        if engine.dialect.name == "sqlite":
            why += f" ({engine.url.database})"
        code = getattr(origin, "sqlite_errorcode", None)
        state = getattr(origin, "sqlstate", None) if code is None else code & 0xFF
        if state in _DAMAGED:
            raise DatabaseDamagedError(why) from error
        # If the driver does not understand an answer, for example that of a proxy, the driver raises an error without a
        # SQLSTATE, and closes the connection if there is one already.
        is_lost = getattr(error, "connection_invalidated", False) or (
            type(error) in (DatabaseError, InternalError) and state is None
        )
        if isinstance(error, OperationalError | InterfaceError) or is_lost or state in _REFUSED:
            raise DatabaseUnavailableError(why) from error
        raise


def _is_of_statement(error: DBAPIError) -> bool:
    """Returns whether the statement has caused the error, for example by a sum that overflows. If not, the cause is in
    the database, for example because its file was deleted."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    return code == sqlite3.SQLITE_ERROR and not str(error.orig).startswith("no such table")


def _with_driver(url: str) -> str:
    for prefix in ("postgresql://", "postgres://"):
        if url.startswith(prefix):
            return "postgresql+psycopg://" + url.removeprefix(prefix)
    return url


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
