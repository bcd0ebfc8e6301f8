"""Replicas notify each other through PostgreSQL."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from service.db.engine import open_engine
from service.events.notifier import Notifier
from service.events.replicas import ReplicaNotifications

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tests.support.postgresql import Server

_LISTENERS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"


@pytest.fixture
def url(postgresql: Server) -> str:
    return postgresql.new_database()


@pytest.fixture
def admin(url: str) -> Iterator[sa.Engine]:
    engine = sa.create_engine(open_engine(url).url, isolation_level="AUTOCOMMIT")
    yield engine
    engine.dispose()


@pytest.fixture
def replicas(url: str) -> Iterator[tuple[Notifier, Notifier]]:
    both = Notifier(), Notifier()
    for notifier in both:
        ReplicaNotifications(open_engine(url), notifier).start()
    yield both
    for notifier in both:
        notifier.close()


def seconds_until_woken(one: Notifier, other: Notifier) -> float:
    """Returns how long `other` waits for a notification of `one`; at most ten seconds."""

    async def wait() -> float:
        with other.listener() as listener:
            await asyncio.sleep(0.5)  # Earlier notifications arrive in this time.
            listener.forget()
            before = time.monotonic()
            one.notify()
            await listener.wait(60)
            return time.monotonic() - before

    return asyncio.run(wait())


def listeners(admin: sa.Engine) -> set[int]:
    with admin.connect() as connection:
        return set(connection.execute(sa.text(_LISTENERS)).scalars())


def await_listeners(admin: sa.Engine, count: int, without: Collection[int] = ()) -> set[int]:
    end = time.monotonic() + 60
    while len(found := listeners(admin).difference(without)) < count:
        assert time.monotonic() < end, found
        time.sleep(0.1)
    return found


def test_each_replica_wakes_the_other(replicas: tuple[Notifier, Notifier], admin: sa.Engine) -> None:
    await_listeners(admin, 2)
    one, other = replicas
    assert seconds_until_woken(one, other) < 1
    assert seconds_until_woken(other, one) < 1


def test_a_replica_that_lost_its_connection_listens_again(
    replicas: tuple[Notifier, Notifier], admin: sa.Engine
) -> None:
    before = await_listeners(admin, 2)
    with admin.connect() as connection:
        for pid in before:
            connection.execute(sa.select(sa.func.pg_terminate_backend(pid)))
    await_listeners(admin, 2, without=before)
    one, other = replicas
    assert seconds_until_woken(one, other) < 1


def test_a_replica_does_not_answer_its_own_notification(url: str, admin: sa.Engine) -> None:
    notifier = Notifier()
    ReplicaNotifications(open_engine(url), notifier).start()
    await_listeners(admin, 1)

    async def count() -> int:
        woken = 0
        with notifier.listener() as listener:
            await asyncio.sleep(0.5)
            listener.forget()
            notifier.notify()
            for _ in range(3):
                before = time.monotonic()
                await listener.wait(0.7)
                woken += time.monotonic() - before < 0.6
                listener.forget()
        return woken

    assert asyncio.run(count()) == 1
    notifier.close()
