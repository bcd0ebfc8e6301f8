"""Tests a PostgreSQL server that stops answering without closing a connection, and one with too few connections for all
calls."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import httpx
import pytest
import sqlalchemy as sa

from service.db import migrate, schema
from service.db.engine import open_engine, reading, writing
from service.db.postgresql import without_limits
from service.model.errors import DatabaseUnavailableError
from service.runtime import settings
from tests.integration.control_plane.posting import publish
from tests.integration.receiver import Receiver, Reply
from tests.integration.serving import Serving, eventually
from tests.support.stalling_proxy import StallingProxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from tests.support.postgresql import Server

# Statements are ended after this time; the client waits 5 seconds longer for their answers, and 5 seconds for a
# connection.
STATEMENT_SECONDS = 2
LONGEST_SECONDS = STATEMENT_SECONDS + 5 + 5 + 5 + 2
SHORT = f"connect_timeout=2&options=-c%20statement_timeout%3D{STATEMENT_SECONDS}s"


@pytest.fixture
def proxy(postgresql: Server) -> Iterator[StallingProxy]:
    with StallingProxy(postgresql.folder) as proxy:
        yield proxy


def url_behind(proxy: StallingProxy, database: str) -> str:
    name = database.partition("?")[0].rpartition("/")[2]
    return f"postgresql://gk@127.0.0.1:{proxy.port}/{name}?{SHORT}"


def clock_of(service: Serving) -> datetime | None:
    """Returns the latest time that the scheduler has recorded."""
    with reading(service.engine) as connection:
        return connection.execute(sa.select(schema.service_clock.c.at)).scalar()


@pytest.mark.exhaustive
def test_calls_to_a_silent_database_end_and_all_goes_on_once_it_answers(
    tmp_path: Path, postgresql: Server, proxy: StallingProxy
) -> None:
    database = postgresql.new_database()
    accepts = threading.Event()
    with (
        Receiver(lambda _: Reply(status=200 if accepts.is_set() else 500)) as receiver,
        Serving(
            tmp_path,
            database=database,
            environment={"GROUNDSKEEPER_DATABASE": url_behind(proxy, database)},
            WEBHOOK_SCHEDULE_SECONDS=",".join(["2"] * 30),
        ) as service,
    ):
        hooks = f"{service.url}/v1/webhooks"
        accepted = {httpx.post(hooks, json={"url": receiver.url}).json()["id"]}
        assert httpx.get(f"{service.url}/readyz").status_code == 200
        published = publish(service.engine, 0, 3, 3)
        assert eventually(lambda: len(receiver.received) >= 3, 60)

        def call(number: int) -> tuple[int, str, float]:
            began = time.monotonic()
            if number % 2:
                answer = httpx.get(f"{service.url}/v1/tables", timeout=60)
            else:
                answer = httpx.post(hooks, json={"url": f"http://127.0.0.1:9/{number}"}, timeout=60)
                if answer.status_code == 201:
                    accepted.add(answer.json()["id"])
            return answer.status_code, answer.json().get("type", ""), time.monotonic() - began

        with ThreadPoolExecutor(8) as pool:
            # Some calls are in the middle of a transaction.
            asked = [pool.submit(call, number) for number in range(24)]
            time.sleep(0.2)
            proxy.stall()
            answers = [each.result() for each in asked] + list(pool.map(call, range(24, 40)))
        assert {answer[:2] for answer in answers} <= {
            (200, ""),
            (201, ""),
            (503, "/problems/database-unavailable"),
        }
        assert answers[-1][0] == 503
        assert max(answer[2] for answer in answers) < LONGEST_SECONDS
        assert httpx.get(f"{service.url}/readyz", timeout=15).status_code == 503
        assert httpx.get(f"{service.url}/healthz").status_code == 200
        before = clock_of(service)
        # The call waits for locks of interrupted transactions, until the server ends those.
        published += publish(service.engine, 3, 3, 3)
        tried = len(receiver.received)
        accepts.set()
        proxy.go_on()
        assert eventually(lambda: httpx.get(f"{service.url}/readyz", timeout=15).status_code == 200, 60)
        # The scheduler and the webhooks continue, and accepted jobs exist.
        assert eventually(lambda: clock_of(service) != before, 60)
        assert eventually(lambda: set(published) <= set(receiver.ids[tried:]), 60)
        with reading(service.engine) as connection:
            assert accepted <= set(connection.execute(sa.select(schema.webhooks.c.id)).scalars())
        assert service.stop() == 0


def test_a_statement_that_takes_too_long_is_ended_and_that_of_a_migration_is_not(postgresql: Server) -> None:
    engine = open_engine(f"{postgresql.new_database()}&options=-c%20statement_timeout%3D200ms")
    with pytest.raises(DatabaseUnavailableError, match="statement timeout"), writing(engine) as connection:
        connection.execute(sa.text("SELECT pg_sleep(5)"))
    migrate.upgrade(engine)
    with writing(engine) as connection, without_limits(connection):
        connection.execute(sa.text("SELECT pg_sleep(0.5)"))
    engine.dispose()


def test_a_value_of_the_url_or_of_the_server_wins_and_the_others_are_set(postgresql: Server) -> None:
    def show(engine: sa.Engine, name: str) -> str:
        with reading(engine) as connection:
            return str(connection.execute(sa.text(f"SHOW {name}")).scalar())

    url = postgresql.new_database()
    engine, other = open_engine(url), open_engine(f"{url}&options=-c%20statement_timeout%3D7s&keepalives_idle=77")
    assert show(engine, "statement_timeout") == "20s"
    assert show(other, "statement_timeout") == "7s"
    assert show(other, "idle_in_transaction_session_timeout") == "15s"
    with reading(other) as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        parameters = driver.info.get_parameters()
    with writing(engine) as connection:
        connection.execute(sa.text(f"ALTER DATABASE {engine.url.database} SET statement_timeout = '9s'"))
    engine.dispose()
    assert show(engine, "statement_timeout") == "9s"
    assert (parameters["keepalives_idle"], parameters["tcp_user_timeout"]) == ("77", "20000")
    for each in (engine, other):
        each.dispose()


def test_three_replicas_and_one_more_fit_into_a_server_with_its_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GROUNDSKEEPER_DATABASE_CONNECTIONS", raising=False)
    max_connections, superuser_reserved_connections = 100, 3
    assert 4 * settings.load().database_connections <= max_connections - superuser_reserved_connections


def test_under_load_a_service_has_no_more_connections_than_it_may(tmp_path: Path, postgresql: Server) -> None:
    database = postgresql.new_database()
    allowed, look_threads = 8, 2
    with Serving(
        tmp_path, database=database, DATABASE_CONNECTIONS=str(allowed), LOOK_THREADS=str(look_threads)
    ) as service:
        ended = threading.Event()

        def call(_: int) -> Counter[tuple[int, str]]:
            answers: Counter[tuple[int, str]] = Counter()
            with httpx.Client(base_url=service.url, timeout=60) as client:
                while not ended.is_set():
                    answer = client.post("/v1/webhooks", json={"url": "http://127.0.0.1:9/hook"})
                    answers[answer.status_code, answer.json().get("type", "")] += 1
            return answers

        with ThreadPoolExecutor(30) as pool:
            calling = [pool.submit(call, number) for number in range(30)]
            most = max(connections(service.engine) for _ in range(30) if not time.sleep(0.1))
            ended.set()
            answers = sum((each.result() for each in calling), Counter())
        assert allowed - look_threads - 1 <= most <= allowed
        assert set(answers) <= {(201, ""), (503, "/problems/database-unavailable")}
        assert answers[201, ""] > 100
        assert service.stop() == 0


def connections(engine: sa.Engine) -> int:
    """Counts the connections of the service: all but our own."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with reading(engine) as connection:
        return int(connection.execute(sa.text(query)).scalar_one())


def test_a_call_that_gets_no_connection_says_which_setting_to_raise(postgresql: Server) -> None:
    engine = open_engine(postgresql.new_database(), connections=1)
    began = time.monotonic()
    with (
        reading(engine),
        pytest.raises(DatabaseUnavailableError, match="became free") as failed,
        reading(engine),
    ):
        pass
    assert "GROUNDSKEEPER_DATABASE_CONNECTIONS" in failed.value.hint
    assert time.monotonic() - began < 60
    engine.dispose()
