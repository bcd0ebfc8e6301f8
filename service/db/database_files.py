"""The files of an SQLite database, which someone may delete or replace while they are open."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from service.model.errors import DatabaseUnavailableError

_BESIDE = ("-wal", "-shm")


class DatabaseFiles:
    """The files that the connections of one engine have open.

    If a file is deleted, writes to it are lost when the service ends, and the next new connection creates an empty
    database.
    """

    def __init__(self) -> None:
        self._opened: dict[Path, tuple[int, int] | None] = {}
        self._connections: set[int] = set()

    def opened(self, connection: sqlite3.Connection) -> None:
        """Records the files of a new connection. The connection must already have read from the database. Raises
        DatabaseUnavailableError if the files differ from those of earlier connections."""
        self.check()
        if not self._connections:
            path = path_of(connection)
            # The last connection deletes the `-wal` and `-shm` files when it closes, and the next connection creates
            # new ones.
            beside = [path.with_name(path.name + suffix) for suffix in _BESIDE]
            self._opened = {**(self._opened or {path: _identity(path)}), **{each: _identity(each) for each in beside}}
        self._connections.add(id(connection))

    def closed(self, connection: sqlite3.Connection) -> None:
        self._connections.discard(id(connection))
        if not self._connections:
            self._opened = dict(list(self._opened.items())[:1])

    def check(self) -> None:
        """Raises DatabaseUnavailableError if a path does not lead to the file that is open. Takes 3 microseconds."""
        for path, identity in self._opened.items():
            if _identity(path) != identity:
                raise DatabaseUnavailableError(
                    f"The file {path} was deleted or replaced while the service had it open.",
                    hint="Put the file back if it was moved. Otherwise restore the database and restart the service.",
                )


def path_of(connection: sqlite3.Connection) -> Path:
    """Returns the absolute path of the database that is open."""
    return Path(connection.execute("PRAGMA database_list").fetchone()[2])


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
