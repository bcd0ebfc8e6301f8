"""Checks of the database: that it can be read and written, and that an SQLite file is intact."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import closing
from pathlib import Path

from sqlalchemy import Engine

from service.db import migrate
from service.db.database_files import path_of
from service.db.engine import reading, writing
from service.model.errors import DatabaseDamagedError, DatabaseUnavailableError, GroundskeeperError, NotReadyError
from service.model.paced import SECOND, Paced

# After a check of the files the probe pauses for this many times its duration. So these checks take 1 % of the time,
# whatever the size of the database is.
_INTEGRITY_REST = 99.0
_INTEGRITY_WAIT_SECONDS = 1.0
_LEAST_FREE_BYTES = 1024 * 1024


class Probe:
    """Checks at most once a second whether the database is usable. Thread-safe."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._use = Paced(lambda: _raised_by(self._try), "probe")
        self._integrity = Paced(
            lambda: _raised_by(lambda: check_integrity(engine)),
            "integrity",
            lambda took: max(SECOND, _INTEGRITY_REST * took),
        )
        self._found: GroundskeeperError | None = None

    def outcome(self) -> Future[GroundskeeperError | None]:
        """Returns the reason why the database is not usable, or None if it is usable. A result is returned for a
        second; after that, a call checks again."""
        return self._use.latest()

    def _try(self) -> None:
        if not migrate.is_usable(self._engine):
            if migrate.is_newer(self._engine):
                raise NotReadyError(
                    "A newer version of Groundskeeper has migrated the database, to a schema that this one cannot use.",
                    hint="Start the newer version in place of this one.",
                )
            raise NotReadyError("The database does not have the schema of this version.")
        with writing(self._engine) as connection:
            migrate.rewrite(connection)
        path = _sqlite_path(self._engine)
        if path is None:
            return
        # The free space is checked too, because SQLite reuses space in its files, so that a write may succeed on a full
        # disk.
        free = shutil.disk_usage(path.parent).free
        if free < _LEAST_FREE_BYTES:
            raise DatabaseUnavailableError(f"The disk of the database is full: {free} bytes are left.")
        integrity = self._integrity.latest()
        wait([integrity], _INTEGRITY_WAIT_SECONDS)
        # While a large file is being checked, the last outcome counts.
        if integrity.done():
            self._found = integrity.result()
        if self._found:
            raise self._found


def _raised_by(check: Callable[[], None]) -> GroundskeeperError | None:
    try:
        check()
    except GroundskeeperError as error:
        return error
    return None


def check_integrity(engine: Engine) -> None:
    """Reads the whole file of an SQLite database, through a new connection, because other connections have pages in
    memory. Does nothing for PostgreSQL, which checks the pages that it reads.

    Raises DatabaseDamagedError or DatabaseUnavailableError.
    """
    path = _sqlite_path(engine)
    if path is None:
        return
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            [found] = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        raise DatabaseUnavailableError(f"{error} ({path})") from error
    except sqlite3.DatabaseError as error:
        raise DatabaseDamagedError(f"{error} ({path})") from error
    if found != "ok":
        raise DatabaseDamagedError(f"{' '.join(found.split())} ({path})")


def _sqlite_path(engine: Engine) -> Path | None:
    if engine.dialect.name != "sqlite":
        return None
    with reading(engine) as connection:
        opened = connection.connection.driver_connection
        assert isinstance(opened, sqlite3.Connection)
        return path_of(opened)
