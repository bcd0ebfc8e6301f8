"""Checks of the database: that it can be read and written, and that an SQLite file is intact."""

from __future__ import annotations

import shutil
import sqlite3
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from typing import TYPE_CHECKING

from service.db import migrate
from service.db.database_files import path_of
from service.db.engine import reading, writing
from service.model.errors import DatabaseDamagedError, DatabaseUnavailableError, GroundskeeperError, NotReadyError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import Engine

_REST_SECONDS = 1.0
# A rest of 99 times the duration checks a database of any size for ever, for 1 % of the time.
_INTEGRITY_REST = 99.0
_INTEGRITY_WAIT_SECONDS = 1.0
_LEAST_FREE_BYTES = 1024 * 1024


class Probe:
    """Tells whether the database is usable, as of the last second. It may be called from any thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._use = _Paced(self._try, lambda _took: _REST_SECONDS)
        self._integrity = _Paced(
            lambda: check_integrity(engine), lambda took: max(_REST_SECONDS, _INTEGRITY_REST * took)
        )

    def outcome(self) -> Future[GroundskeeperError | None]:
        """Returns the reason why the database is not usable, or None: that of the last second, or of a new attempt."""
        return self._use.outcome()

    def _try(self) -> None:
        if not migrate.is_usable(self._engine):
            if migrate.is_newer(self._engine):
                raise NotReadyError(
                    "A newer version of Groundskeeper has migrated the database, to a schema that this one cannot use.",
                    hint="Start that version in place of this one.",
                )
            raise NotReadyError("The database does not have the schema of this version.")
        with writing(self._engine) as connection:
            migrate.rewrite(connection)
        path = _sqlite_path(self._engine)
        if path is None:
            return
        # SQLite writes where it has written before as long as it can, so a write may succeed on a full disk.
        free = shutil.disk_usage(path.parent).free
        if free < _LEAST_FREE_BYTES:
            raise DatabaseUnavailableError(f"The disk of the database is full: {free} bytes are left.")
        wait([self._integrity.outcome()], _INTEGRITY_WAIT_SECONDS)
        if self._integrity.last:
            raise self._integrity.last


def check_integrity(engine: Engine) -> None:
    """Reads the whole file of an SQLite database, by a connection of its own: others hold pages in memory. Does nothing
    for PostgreSQL, which checks the pages that it reads.

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


class _Paced:
    """Runs a check in a thread of its own, for all who ask at the same time. After it has taken some seconds, its
    outcome stands for `rest` of them."""

    def __init__(self, check: Callable[[], None], rest: Callable[[float], float]) -> None:
        self._check = check
        self._rest = rest
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="probe")
        self._guard = threading.Lock()
        self._outcome: Future[GroundskeeperError | None] | None = None
        self._stands_until = 0.0
        self.last: GroundskeeperError | None = None

    def outcome(self) -> Future[GroundskeeperError | None]:
        with self._guard:
            if self._outcome is None or (self._outcome.done() and time.monotonic() >= self._stands_until):
                self._outcome = self._thread.submit(self._run)
            return self._outcome

    def _run(self) -> GroundskeeperError | None:
        started = time.monotonic()
        try:
            self._check()
            self.last = None
        except GroundskeeperError as error:
            self.last = error
        finally:
            ended = time.monotonic()
            self._stands_until = ended + self._rest(ended - started)
        return self.last
