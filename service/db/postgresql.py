"""Connections to PostgreSQL with time limits, because a server whose host has failed does not close its connections. A
value in the URL, the role or the server's configuration takes precedence over the value set here.

The dialect sends as few messages as it can. A thread that waits for an answer releases the interpreter's lock, and then
waits for this lock, which takes longer in a busy service than most statements.
"""

from __future__ import annotations

import json
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
import sqlalchemy as sa
from psycopg import errors
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from service.db.transaction import ENDS, WRITES

if TYPE_CHECKING:
    from psycopg.abc import RV, PQGen
    from sqlalchemy.engine.interfaces import DBAPIConnection, ExecutionContext
    from sqlalchemy.pool import PoolProxiedConnection

# Parameters of libpq that detect a failed host. The limits below detect a host that acknowledges data but never
# answers, such as a proxy that has lost its server.
_OF_CLIENT = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
# Because of these parameters, the server ends statements and transactions for which nobody waits any more, and releases
# their locks.
_OF_SERVER = {
    "statement_timeout": "20s",
    # An idle transaction is ended before statements time out, because statements of other replicas may wait for the
    # idle transaction's locks.
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
# The server ends a statement at its time limit. If no answer has come this many seconds later, none will come.
_MARGIN_SECONDS = 5.0
_IDLE_SECONDS = 5.0
_WAIT_SECONDS = 5.0
# A connection that was used within this number of seconds is not checked before its next use, unless the server has
# closed it.
_RECENT_SECONDS = 1.0
# How many statements the server keeps parsed and planned for each connection. The service has more than psycopg's limit
# of 100. A statement beyond the limit costs a message that deletes it, and is planned again at every execution.
_PREPARED = 500
_DRIVER = "postgresql+groundskeeper"


class GroundskeeperDialect(PGDialect_psycopg):
    """The dialect of psycopg, with fewer messages. Reads need no message that begins or ends a transaction, because
    each statement sees everything that was committed before it, with or without a transaction (`READ COMMITTED`). The
    dialect overrides methods, because listeners to events of SQLAlchemy would cost time at each statement."""

    supports_statement_cache = True

    def connect(self, *arguments: Any, **more: Any) -> DBAPIConnection:
        connection = BoundedConnection.connect(*arguments, **more)
        connection.prepared_max = _PREPARED
        return connection  # type: ignore[return-value]  # psycopg's connection

    def is_disconnect(self, e: BaseException, connection: Any, cursor: Any) -> bool:
        # The connections work, but lead to a server that is no longer the primary one. New connections may find the
        # primary one.
        if isinstance(e, errors.ReadOnlySqlTransaction):
            return True
        return bool(super().is_disconnect(e, connection, cursor))  # type: ignore[no-untyped-call]

    def do_ping(self, dbapi_connection: DBAPIConnection) -> bool:
        assert isinstance(dbapi_connection, BoundedConnection)
        return dbapi_connection.is_recent or super().do_ping(dbapi_connection)

    def do_execute(self, cursor: Any, statement: Any, parameters: Any, context: ExecutionContext | None = None) -> None:
        if context is None or not context.execution_options.get(ENDS):
            super().do_execute(cursor, statement, parameters, context)  # type: ignore[no-untyped-call]
            return
        connection: BoundedConnection = cursor.connection
        with connection.pipeline():
            super().do_execute(cursor, statement, parameters, context)  # type: ignore[no-untyped-call]
            connection.commit()

    def do_begin(self, dbapi_connection: PoolProxiedConnection) -> None:
        if not dbapi_connection.info.pop(WRITES, True):
            _driver(dbapi_connection).reads(True)

    def do_commit(self, dbapi_connection: PoolProxiedConnection) -> None:
        if not _driver(dbapi_connection).reads(False):
            super().do_commit(dbapi_connection)  # type: ignore[no-untyped-call]

    def do_rollback(self, dbapi_connection: PoolProxiedConnection) -> None:
        driver = _driver(dbapi_connection)
        # The pool calls this whenever a connection is returned.
        if not driver.reads(False) and driver.info.transaction_status != TransactionStatus.IDLE:
            super().do_rollback(dbapi_connection)  # type: ignore[no-untyped-call]


registry.register(_DRIVER.replace("+", "."), __name__, GroundskeeperDialect.__name__)


def open_postgresql(url: sa.URL, *, connections: int, options: dict[str, Any]) -> Engine:
    """Returns an engine with at most `connections` connections. A thread waits up to 5 seconds until one is free."""
    engine = sa.create_engine(
        url.set(drivername=_DRIVER),
        connect_args={name: value for name, value in _OF_CLIENT.items() if name not in url.query},
        pool_pre_ping=True,
        # The connection that was used last is used first, because it has the most prepared statements.
        pool_use_lifo=True,
        **{**options, "pool_size": connections, "max_overflow": 0, "pool_timeout": _WAIT_SECONDS},
    )
    engine.url = url  # Users of the engine see the URL without the name of this dialect.

    @sa.event.listens_for(engine, "connect")
    def _prepare(connection: BoundedConnection, _record: object) -> None:
        connection.autocommit = True
        parameters = json.dumps(_OF_SERVER)
        connection.execute(_SET, [parameters, parameters])
        row = connection.execute(_STATEMENT_SECONDS).fetchone()
        connection.autocommit = False
        seconds = row[0] if row else 0.0
        connection.answer_seconds = seconds + _MARGIN_SECONDS if seconds else None

    return engine


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that waits at most `answer_seconds` for an answer, if that is not None. After that time the
    connection is closed, and nobody knows whether the transaction was committed. Outside transactions the limit is 5
    seconds, because only `LISTEN` and checks of the connection are executed there."""

    answer_seconds: float | None = 30.0
    _is_reading = False
    _used_at = 0.0

    @property
    def is_recent(self) -> bool:
        """Whether the connection was used a moment ago, and no message has arrived since then. If the server had closed
        the connection, a message would have arrived."""
        if time.monotonic() - self._used_at > _RECENT_SECONDS or self.closed:
            return False
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        return not poll.poll(0)

    def reads(self, now: bool) -> bool:
        """Sets whether the following statements only read, each in a separate transaction. Returns what was set
        before."""
        before = self._is_reading
        if before != now:
            if not self.closed:
                self.autocommit = now
            self._is_reading = now
        return before

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        if timeout is not None:  # The caller has its own time limit, and allows that nothing comes.
            return super().wait(gen, interval, timeout)
        seconds = _IDLE_SECONDS if self.autocommit and not self._is_reading else self.answer_seconds
        try:
            found = super().wait(gen, interval, seconds)
            self._used_at = time.monotonic()
            return found
        except errors._WaitTimeout:  # The documentation of `Connection.wait` names this exception.
            self.close()
            raise errors.OperationalError(f"the server did not answer within {seconds:g} s") from None


def _driver(connection: PoolProxiedConnection) -> BoundedConnection:
    driver = connection.dbapi_connection  # `driver_connection` is None once the pool has given the connection away.
    assert isinstance(driver, BoundedConnection)
    return driver


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
