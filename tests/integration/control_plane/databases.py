"""Makes databases with the newest schema by copying one that was migrated once in this process.

The migrations themselves are tested in `test_schema.py`, and by each service that is started as a process.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from service.db import migrate
from service.db.engine import open_engine

if TYPE_CHECKING:
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
