"""Tests transactions that PostgreSQL ends: because the service was suspended, a connection was cut, the server was
started again, or has become a standby."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import TYPE_CHECKING

import httpx
import pytest
import sqlalchemy as sa

from service.access.secret_cipher import SecretCipher
from service.db import schema
from service.db.engine import open_engine, reading, writing
from service.delivery.attempt_policy import DeliveryConfig
from service.delivery.dispatcher import Dispatcher, DispatcherConfig
from service.delivery.http import Sender, SendLimits
from service.delivery.kafka import KafkaSender
from service.delivery.smtp import SmtpSender
from service.delivery.transport import Transport
from service.events.notifier import Notifier
from service.events.replicas import ReplicaNotifications
from service.model.clock import utc_now
from service.model.errors import DatabaseUnavailableError
from service.runtime.dispatch import DispatchThread
from tests.integration.control_plane.databases import new_postgresql
from tests.integration.control_plane.posting import LOCAL
from tests.integration.serving import Serving, eventually
from tests.support.stalling_proxy import StallingProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.postgresql import Server

CALLERS = 8
IDLE_SECONDS = 0.3
CHANGE = schema.service_clock.insert().values(id=7, at=sa.func.now(), reference_at=sa.func.now())
READS = ("tables", "overview", "problems", "jobs", "events?after=0", "workers/demand")


@pytest.fixture
def engine(postgresql: Server) -> Iterator[sa.Engine]:
    engine = open_engine(new_postgresql(postgresql), connections=1)
    yield engine
    engine.dispose()


def end(postgresql: Server, engine: sa.Engine) -> None:
    """Ends all other sessions of the engine's database, and waits until they have ended."""
    admin = open_engine(postgresql.url("postgres"))
    with reading(admin) as connection:
        activity = sa.table("pg_stat_activity", sa.column("pid"), sa.column("datname"))
        query = sa.select(sa.func.pg_terminate_backend(activity.c.pid, 10_000))
        connection.execute(query.where(activity.c.datname == engine.url.database))
    admin.dispose()


def has_changed(engine: sa.Engine) -> bool:
    with reading(engine) as connection:
        return connection.execute(sa.select(schema.service_clock.c.id)).first() is not None


@pytest.mark.parametrize("statement", ["SELECT 1", ""], ids=["at the next statement", "at the commit"])
def test_a_transaction_that_was_idle_for_too_long_is_an_outage_and_changes_nothing(
    engine: sa.Engine, statement: str
) -> None:
    def change_slowly() -> None:
        with writing(engine) as connection:
            connection.execute(sa.text("SET idle_in_transaction_session_timeout = '100ms'"))
            connection.execute(CHANGE)
            time.sleep(0.5)
            if statement:
                connection.execute(sa.text(statement))

    with pytest.raises(DatabaseUnavailableError, match="idle-in-transaction"):
        change_slowly()
    assert not has_changed(engine)


def test_a_connection_that_is_cut_in_a_transaction_is_an_outage_and_changes_nothing(
    engine: sa.Engine, postgresql: Server
) -> None:
    def change_and_lose() -> None:
        with writing(engine) as connection:
            connection.execute(CHANGE)
            end(postgresql, engine)

    with pytest.raises(DatabaseUnavailableError):
        change_and_lose()
    assert not has_changed(engine)


def test_a_connection_that_was_cut_a_moment_after_its_use_is_replaced(engine: sa.Engine, postgresql: Server) -> None:
    """A connection is not checked before its use if it was used a moment ago."""
    for _ in range(5):
        assert not has_changed(engine)
        end(postgresql, engine)
        assert not has_changed(engine)


def test_a_read_neither_begins_nor_ends_a_transaction_and_a_write_does(engine: sa.Engine) -> None:
    is_alone = sa.text("SELECT xact_start = query_start FROM pg_stat_activity WHERE pid = pg_backend_pid()")
    for _ in range(2):
        with reading(engine) as connection:
            assert connection.execute(is_alone).scalar_one()
        with writing(engine) as connection:
            assert not connection.execute(is_alone).scalar_one()
            connection.execute(CHANGE)
            connection.rollback()
        assert not has_changed(engine)


def test_the_connection_that_was_used_last_is_used_again(engine: sa.Engine) -> None:
    """The server process of that connection knows the statements."""

    def process_of(connection: sa.Connection) -> int:
        return int(connection.execute(sa.select(sa.func.pg_backend_pid())).scalar_one())

    several = open_engine(str(engine.url))
    with reading(several) as first:
        with reading(several) as second:
            assert process_of(first) != process_of(second)
        last = process_of(first)
    for _ in range(3):
        with reading(several) as connection:
            assert process_of(connection) == last
    several.dispose()


def _error(fields: bytes) -> bytes:
    return b"E" + (len(fields) + 4).to_bytes(4, "big") + fields


ANSWERS = {
    "of another protocol": b"HTTP/1.1 502 Bad Gateway\r\n\r\n",
    "zeros": bytes(64),
    "an error without a code": _error(b"SFATAL\0Mthe server is going away\0\0"),
}


def engine_behind(proxy: StallingProxy, engine: sa.Engine) -> sa.Engine:
    return open_engine(f"postgresql://gk@127.0.0.1:{proxy.port}/{engine.url.database}")


@pytest.mark.parametrize("statement", ["SELECT 1", ""], ids=["at the next statement", "at the commit"])
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_that_cannot_be_understood_is_an_outage(
    engine: sa.Engine, postgresql: Server, answer: bytes, statement: str
) -> None:
    def change(proxied: sa.Engine, proxy: StallingProxy) -> None:
        with writing(proxied) as connection:
            connection.execute(CHANGE)
            proxy.own_answer = answer
            if statement:
                connection.execute(sa.text(statement))

    with StallingProxy(postgresql.folder) as proxy:
        proxied = engine_behind(proxy, engine)
        with pytest.raises(DatabaseUnavailableError):
            change(proxied, proxy)
        assert proxy.own_answer is None
        with reading(proxied) as connection:
            assert connection.execute(sa.text("SELECT 1")).scalar_one() == 1
        proxied.dispose()


def test_webhooks_are_sent_and_replicas_notified_after_each_kind_of_outage(
    engine: sa.Engine, postgresql: Server
) -> None:
    notifier, limits = Notifier(), SendLimits(connect=10, read=10, total=10)

    def dispatcher(wake: Callable[[], None]) -> Dispatcher:
        transport = Transport(Sender(LOCAL, limits), KafkaSender(LOCAL, limits), SmtpSender(LOCAL, limits))
        config = DispatcherConfig(DeliveryConfig())
        return Dispatcher(
            proxied, utc_now, Random(1), notifier, SecretCipher.fresh(), transport=transport, config=config, wake=wake
        )

    with StallingProxy(postgresql.folder) as proxy:
        proxied = engine_behind(proxy, engine)
        ReplicaNotifications(proxied, notifier).start()
        sending = DispatchThread(notifier, dispatcher, poll_seconds=0.05)
        sending.start()
        for answer in ANSWERS.values():
            for _ in range(4):
                proxy.own_answer = answer
                notifier.notify()
                assert eventually(lambda: proxy.own_answer is None, 20)
                time.sleep(0.1)
            end(postgresql, engine)
        time.sleep(0.5)
        running = {thread.name for thread in threading.enumerate()}
        notifier.close()
        sending.join()
        assert {"webhooks", "notify", "listen"} <= running
        proxied.dispose()


def test_a_connection_to_a_server_that_takes_no_writes_is_given_up_for_another_one(engine: sa.Engine) -> None:
    def process(connection: sa.Connection) -> int:
        return int(connection.execute(sa.text("SELECT pg_backend_pid()")).scalar_one())

    with reading(engine) as connection:
        before = process(connection)
        connection.execute(sa.text("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"))
    with pytest.raises(DatabaseUnavailableError, match="read-only"), writing(engine) as connection:
        connection.execute(CHANGE)
    with writing(engine) as connection:
        connection.execute(CHANGE)
        assert process(connection) != before


def test_calls_get_their_answer_or_503_however_their_transactions_end(tmp_path: Path, postgresql: Server) -> None:
    database = new_postgresql(postgresql)
    idle = f"{database}&options=-c%20idle_in_transaction_session_timeout%3D{IDLE_SECONDS}s"
    with (
        Serving(tmp_path, database=database, DATABASE=idle) as service,
        ThreadPoolExecutor(CALLERS) as pool,
    ):
        calls = Calls(service.url)
        running = [pool.submit(calls.run, number) for number in range(CALLERS)]
        try:
            calls.go_on()
            service.process.send_signal(signal.SIGSTOP)
            time.sleep(3 * IDLE_SECONDS)
            service.process.send_signal(signal.SIGCONT)
            calls.go_on()
            end(postgresql, service.engine)
            calls.go_on()
            postgresql.stop()
            assert eventually(lambda: calls.refused() > 0, 60)
            assert httpx.get(f"{service.url}/readyz", timeout=30).headers["Retry-After"]
            postgresql.start()
            assert eventually(lambda: httpx.get(f"{service.url}/readyz", timeout=30).status_code == 200, 60)
            calls.go_on()
        finally:
            calls.ended.set()
            for each in running:
                each.result()
        assert set(calls.answers) <= {(200, ""), (201, ""), (503, "/problems/database-unavailable")}, calls.answers
        with reading(service.engine) as connection:
            stored = set(connection.execute(sa.select(schema.webhooks.c.id)).scalars())
        assert calls.accepted <= stored
        # A change whose caller got 503 may have been made, if only the answer to its commit was lost.
        assert len(stored - calls.accepted) <= CALLERS
        assert service.stop() == 0
    assert "Traceback" not in service.log.read_text()


class Calls:
    """Callers that make changes and read with short pauses."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.ended = threading.Event()
        self.answers: Counter[tuple[int, str]] = Counter()
        self.accepted: set[str] = set()

    def run(self, number: int) -> None:
        with httpx.Client(base_url=f"{self._url}/v1/", timeout=60, headers={"Accept": "application/json"}) as http:
            # Without a pause they would take all of the machine's CPU time from the other processes of a run.
            while not self.ended.wait(0.02):
                if number % 2:
                    answer = http.post("webhooks", json={"url": "http://127.0.0.1:9/hook"})
                else:
                    answer = http.get(READS[sum(self.answers.values()) % len(READS)])
                self.answers[answer.status_code, answer.json().get("type", "")] += 1
                if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
                    assert int(answer.headers["Retry-After"]) > 0
                if answer.status_code == httpx.codes.CREATED:
                    self.accepted.add(answer.json()["id"])

    def refused(self) -> int:
        return sum(number for (status, _), number in self.answers.items() if status >= httpx.codes.BAD_REQUEST)

    def go_on(self) -> None:
        """Waits until calls have succeeded again."""
        before = len(self.accepted)
        assert eventually(lambda: len(self.accepted) >= before + CALLERS, 60), self.answers
