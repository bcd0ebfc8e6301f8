"""The clock of the database's server, which all replicas share."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import TYPE_CHECKING

import sqlalchemy as sa

from service.db.engine import reading
from service.model.clock import elapsed

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Engine


class DatabaseClock:
    """Reads the clock at the start and in `run_once`; in between, and while the database is away, adds the elapsed
    time. Only for PostgreSQL. Raises DatabaseUnavailableError."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._read = self._now()

    def __call__(self) -> datetime:
        now, at = self._read
        return now + timedelta(seconds=elapsed() - at)

    def run_once(self) -> None:
        self._read = self._now()

    def _now(self) -> tuple[datetime, float]:
        with reading(self._engine) as connection:
            now = connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
            return now.astimezone(UTC), elapsed()
