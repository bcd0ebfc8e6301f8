"""Makes databases with the newest schema by copying one that was migrated once in this process.

The migrations themselves are tested in `test_schema.py`, and by each service that is started as a process.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from service.db import migrate
from service.db.engine import open_engine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import psycopg
    import sqlalchemy as sa

    from tests.support.postgresql import Server

# For tests that start processes on a database of each kind: one kind is enough for a short run.
MOSTLY_ON_POSTGRESQL = pytest.mark.parametrize(
    "database", [pytest.param("sqlite", marks=pytest.mark.exhaustive), "postgresql"], indirect=True
)


def open_sqlite(file: Path) -> sa.Engine:
    """Returns the engine of a new database in this file."""
    return opened(new_sqlite(file))


def opened(url: str) -> sa.Engine:
    """Returns an engine that shares compiled statements with all engines of this process on the same kind of database,
    because each test would otherwise compile all its statements."""
    engine = open_engine(url)
    engine.update_execution_options(compiled_cache=_compiled)
    return engine


class _Compiled(dict[tuple[Any, ...], Any]):
    """A cache that ignores the dialect in SQLAlchemy's keys, because the dialect is an object of one engine."""

    def get(self, key: tuple[Any, ...], default: Any = None) -> Any:
        return super().get((key[0].name, *key[1:]), default)

    def __setitem__(self, key: tuple[Any, ...], value: Any) -> None:
        super().__setitem__((key[0].name, *key[1:]), value)


_compiled = _Compiled()


def new_sqlite(file: Path) -> str:
    """Returns the URL of a new database in this file."""
    shutil.copy(_migrated_file(), file)
    return f"sqlite:///{file}"


def new_postgresql(server: Server) -> str:
    """Returns the URL of a new database on this server."""
    return server.new_database(template=_migrated_database(server))


@contextmanager
def lent_postgresql(server: Server) -> Iterator[str]:
    """Yields the URL of a database in its first state. An earlier test may have used the database, because the server
    needs ten times as long to make a new one, with 570 files, and to remove it as to empty an old one."""
    free = _unused_databases(server)
    url = free.pop() if free else new_postgresql(server)
    yield url
    if _is_emptied(url, server):
        free.append(url)


@cache
def _unused_databases(_server: Server) -> list[str]:
    return []


_RELATIONS = "SELECT array_agg(relname ORDER BY relname) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
_OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
_EMPTY = """
DO $$
DECLARE name text;
BEGIN
    SET LOCAL session_replication_role = replica;  -- no trigger, and so no foreign key
    FOR name IN SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public' LOOP
        EXECUTE 'DELETE FROM ' || name;
    END LOOP;
    FOR name IN SELECT quote_ident(sequencename) FROM pg_sequences LOOP
        PERFORM setval(name::regclass, 1, false);
    END LOOP;
END $$
"""


def _is_emptied(url: str, server: Server) -> bool:
    """Gives a database its first rows again, and returns whether it is as after its migrations. A database that a
    process still uses, or whose schema a test has changed, stays as it is."""
    import psycopg

    first = _first_rows(server)
    with psycopg.connect(url) as connection:
        if set(_value(connection, _RELATIONS)) != first.keys() or not _is_left_alone(connection):
            return False
        connection.execute(_EMPTY)
        for table, rows in first.items():
            for row in rows:
                insert = f"INSERT INTO {table} SELECT * FROM json_populate_record(NULL::{table}, %s)"
                connection.execute(insert.encode(), [row])
    return True


def _is_left_alone(connection: psycopg.Connection) -> bool:
    """Returns whether the connections of the test end within a moment."""
    deadline = time.monotonic() + 0.2
    while _value(connection, _OTHERS):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def _value(connection: psycopg.Connection, query: str) -> Any:
    return connection.execute(query.encode()).fetchone()[0]  # type: ignore[index]


@cache
def _first_rows(server: Server) -> Mapping[str, list[str]]:
    """Returns the rows of each table after the migrations, as JSON; none for indexes and sequences."""
    import psycopg

    with psycopg.connect(new_postgresql(server)) as connection:
        tables = _value(connection, "SELECT array_agg(tablename) FROM pg_tables WHERE schemaname = 'public'")
        query = "SELECT json_agg(t)::text FROM {} t"
        found = {name: json.loads(_value(connection, query.format(name)) or "[]") for name in tables}
        return {name: [json.dumps(row) for row in found.get(name, ())] for name in _value(connection, _RELATIONS)}


@cache
def _migrated_file() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="gk-schema-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _migrate(f"sqlite:///{folder}/schema.db")
    assert [path.name for path in folder.iterdir()] == ["schema.db"], "a part of it is in another file"
    return folder / "schema.db"


@cache
def _migrated_database(server: Server) -> str:
    url = server.new_database()
    _migrate(url)
    return server.name_of(url)


def _migrate(url: str) -> None:
    engine = open_engine(url)
    migrate.upgrade(engine)
    engine.dispose()
