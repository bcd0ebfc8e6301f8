"""Notifications between the replicas that share a PostgreSQL database."""

from __future__ import annotations

import logging
import threading
import time
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy import Engine

from service.db.engine import reading
from service.events.notifier import Notifier
from service.model.errors import DatabaseUnavailableError
from service.model.task_health import TaskHealth

log = logging.getLogger(__name__)

_CHANNEL = "groundskeeper"
_LISTEN, _NOTIFY = "listen", "notify"
_RETRY_SECONDS = 1.0
# A connection without notifications is checked at this interval, because the server may have failed silently.
_CHECK_SECONDS = 10.0


class ReplicaNotifications:
    """Passes notifications between this process and the other replicas (`LISTEN` and `NOTIFY`). Many notifications at
    the same time are sent as one. No notification is passed while the database is unavailable. So listeners also poll,
    and are notified after each reconnection."""

    def __init__(self, engine: Engine, notifier: Notifier, tasks: TaskHealth | None = None) -> None:
        self._engine = engine
        self._notifier = notifier
        self._tasks = tasks or TaskHealth()
        self._own = uuid4().hex
        self._wanted = threading.Event()

    def start(self) -> None:
        self._notifier.relay = self._wanted.set
        for name, run in ((_LISTEN, self._listen), (_NOTIFY, self._send)):
            self._tasks.expect(name, _CHECK_SECONDS)
            threading.Thread(target=run, name=name, daemon=True).start()

    def _send(self) -> None:
        while not self._notifier.is_closed:
            is_wanted = self._wanted.wait(_CHECK_SECONDS)
            self._tasks.ended(_NOTIFY)
            if not is_wanted:
                continue
            self._wanted.clear()
            try:
                # Nothing is written, so the statement needs no transaction.
                with reading(self._engine) as connection:
                    connection.execute(sa.select(sa.func.pg_notify(_CHANNEL, self._own)))
            except DatabaseUnavailableError as error:
                log.warning("The other replicas could not be notified: %s", error)
                time.sleep(_RETRY_SECONDS)

    def _listen(self) -> None:
        while not self._notifier.is_closed:
            try:
                self._listen_once()
            except Exception as error:  # The driver raises its own types here, not SQLAlchemy's.
                log.warning("Notifications of other replicas do not arrive: %s", str(error).partition("\n")[0])
                self._tasks.ended(_LISTEN)
                time.sleep(_RETRY_SECONDS)

    def _listen_once(self) -> None:
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql(f"LISTEN {_CHANNEL}")
            driver = connection.connection.driver_connection
            assert driver is not None
            # The connection is taken out of the pool, because no later user of this connection should listen.
            connection.detach()
            self._notifier.notify_here()
            while not self._notifier.is_closed:
                received = list(driver.notifies(timeout=_CHECK_SECONDS, stop_after=1))
                if any(each.payload != self._own for each in received):
                    self._notifier.notify_here()
                if not received:
                    connection.exec_driver_sql("SELECT 1")
                self._tasks.ended(_LISTEN)
