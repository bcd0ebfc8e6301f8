"""Connections to PostgreSQL with time limits, because a server whose host has failed does not close its connections. A
value in the URL, the role or the server's configuration takes precedence over the one from here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
import sqlalchemy as sa
from psycopg import errors
from sqlalchemy import Connection, Engine

if TYPE_CHECKING:
    from psycopg.abc import RV, PQGen

# Parameters of libpq that detect a failed host. The limits below detect a host that acknowledges data and never
# answers, such as a proxy that has lost its server.
_OF_CLIENT = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
# Parameters by which the server ends statements and transactions for which nobody waits any more, and releases their
# locks.
_OF_SERVER = {
    "statement_timeout": "20s",
    # An idle transaction is ended before statements time out, because a statement of another replica may wait for its
    # locks.
    "idle_in_transaction_session_timeout": "15s",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "20s",
}
_SET = """
SELECT set_config(name, %s::json ->> name, false) FROM pg_settings
WHERE source = 'default' AND name IN (SELECT json_object_keys(%s::json))
"""
_STATEMENT_SECONDS = "SELECT extract(epoch FROM current_setting('statement_timeout')::interval)::float"
# The server ends a statement at its limit. If no answer has come this number of seconds later, none will come.
_MARGIN_SECONDS = 5.0
_IDLE_SECONDS = 5.0
_WAIT_SECONDS = 5.0


def open_postgresql(url: sa.URL, *, connections: int, options: dict[str, Any]) -> Engine:
    """Returns an engine with at most `connections` connections. A thread waits up to 5 seconds until one is free."""
    engine = sa.create_engine(
        url,
        connect_args={name: value for name, value in _OF_CLIENT.items() if name not in url.query},
        pool_pre_ping=True,
        **{**options, "pool_size": connections, "max_overflow": 0, "pool_timeout": _WAIT_SECONDS},
    )

    @sa.event.listens_for(engine, "do_connect")
    def _connect(_dialect: object, _record: object, args: Any, parameters: Any) -> BoundedConnection:
        return BoundedConnection.connect(*args, **parameters)

    @sa.event.listens_for(engine, "connect")
    def _prepare(connection: BoundedConnection, _record: object) -> None:
        connection.autocommit = True
        parameters = json.dumps(_OF_SERVER)
        connection.execute(_SET, [parameters, parameters])
        row = connection.execute(_STATEMENT_SECONDS).fetchone()
        connection.autocommit = False
        seconds = row[0] if row else 0.0
        connection.answer_seconds = seconds + _MARGIN_SECONDS if seconds else None

    @sa.event.listens_for(engine, "handle_error")
    def _leave_a_standby(context: sa.ExceptionContext) -> None:
        # The connections work, but lead to a server that is no longer the primary one. New ones may find that.
        if isinstance(context.original_exception, errors.ReadOnlySqlTransaction):
            context.is_disconnect = True

    return engine


class BoundedConnection(psycopg.Connection[Any]):
    """Waits at most `answer_seconds` for an answer, if that is not None. After that time the connection is closed, and
    nobody knows whether the transaction was committed. Outside transactions, where only `LISTEN` and checks of the
    connection are executed, the limit is 5 seconds."""

    answer_seconds: float | None = 30.0

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        if timeout is not None:  # The caller has its own time limit, and expects that nothing may come.
            return super().wait(gen, interval, timeout)
        seconds = _IDLE_SECONDS if self.autocommit else self.answer_seconds
        try:
            return super().wait(gen, interval, seconds)
        except errors._WaitTimeout:  # The documentation of `Connection.wait` names this exception.
            self.close()
            raise errors.OperationalError(f"the server did not answer within {seconds:g} s") from None


@contextmanager
def without_limits(connection: Connection) -> Iterator[None]:
    """Lets the statements of the transaction take any time, as migrations do. Does nothing for other databases."""
    driver = connection.connection.driver_connection
    if not isinstance(driver, BoundedConnection):
        yield
        return
    connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
    before, driver.answer_seconds = driver.answer_seconds, None
    try:
        yield
    finally:
        driver.answer_seconds = before
