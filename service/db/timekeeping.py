"""The service's clock, which continues after a restart, and is the same for all replicas of a database.

The time of the database cannot replace this clock, for two reasons. First, that time is the clock of the machine
(SQLite) or of the server (PostgreSQL). If such a clock is set forward, all leases expire at once. Second, the service
reads the time often. On a busy machine a reading of this clock took 17 microseconds. A query for the time within a
transaction took 130 (SQLite) or 770 (PostgreSQL 15, on the same machine), and in a separate transaction 370 or 1770.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from sqlalchemy import Connection, Engine

from service.db import schema
from service.db.engine import reading, writing
from service.db.upsert import upsert
from service.model.clock import ClockReading, SteadyClock, elapsed, utc_now

log = logging.getLogger(__name__)

_c = schema.service_clock
_ROW = 1
_NOTABLE = timedelta(minutes=1)


class Timekeeping:
    """Maintains `clock`, which follows the clock of a PostgreSQL server, or else that of this machine. The database
    must be migrated. If the database is unavailable, methods raise DatabaseUnavailableError, and the clock goes on."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._database = DatabaseClock(engine) if engine.dialect.name == "postgresql" else None
        with reading(engine) as connection:
            last = _load(connection)
        self.clock = SteadyClock(self._database or utc_now, last=last)
        self._is_notable = False

    def run_once(self) -> None:
        """Records the time, and logs if the clock that the service's clock follows was set to another time."""
        if self._database:
            self._database.run_once()
        now = self.clock.read()
        with writing(self._engine, quietly=True) as connection:
            upsert(connection, _c, {"id": _ROW}, {"at": now.at, "reference_at": now.reference_at})
        was_notable, self._is_notable = self._is_notable, abs(now.at - now.reference_at) > _NOTABLE
        if self._is_notable and not was_notable:
            log.warning(
                "The clock of the %s was set to another time: it shows %s, and the service's clock shows %s. The"
                " service's clock approaches that time by six minutes an hour",
                "database" if self._database else "machine",
                f"{now.reference_at:%Y-%m-%d %H:%M:%S}",
                f"{now.at:%Y-%m-%d %H:%M:%S}",
            )


class DatabaseClock:
    """The clock of a PostgreSQL server: its last reading plus the time since then."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._last = self._read()

    def __call__(self) -> datetime:
        now, at = self._last
        return now + timedelta(seconds=elapsed() - at)

    def run_once(self) -> None:
        """Reads the clock. Raises DatabaseUnavailableError."""
        self._last = self._read()

    def _read(self) -> tuple[datetime, float]:
        with reading(self._engine) as connection:
            now = connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
            return now.astimezone(UTC), elapsed()


def _load(connection: Connection) -> ClockReading | None:
    row = connection.execute(sa.select(_c.c.at, _c.c.reference_at)).one_or_none()
    return ClockReading(row.at, row.reference_at) if row else None
