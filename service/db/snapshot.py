"""A copy of an SQLite database as it is at one moment, while others write to it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import Engine

from service.db.engine import open_engine
from service.db.probe import check_integrity


def take(engine: Engine, target: Path) -> None:
    """Copies the database into the file, which exists and is empty. Raises DatabaseDamagedError for a copy that is not
    intact."""
    with closing(engine.raw_connection()) as source, closing(sqlite3.connect(target)) as copy:
        # The copy is made in one step, which is one transaction. So it has the state of one moment, and writers do not
        # wait.
        source.driver_connection.backup(copy, pages=-1)  # type: ignore[union-attr]  # a connection of sqlite3
    check(target)


def check(file: Path) -> None:
    """Raises DatabaseDamagedError for a file that is not an intact database. Leaves no other file beside it."""
    engine = open_engine(f"sqlite:///{file}")
    try:
        check_integrity(engine)
    finally:
        engine.dispose()
    with closing(sqlite3.connect(file)) as connection:
        # The write-ahead log is removed, so that everything is in one file.
        connection.execute("PRAGMA journal_mode = DELETE")
