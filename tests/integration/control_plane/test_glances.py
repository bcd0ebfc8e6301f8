"""An idle service asks SQLite at little cost whether it has anything to do."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING

import sqlalchemy as sa

from jobs.storage.permissions import Permissions
from service.access.secret_cipher import SecretCipher
from service.catalog import decision_times, watch_store
from service.db import checkpoints
from service.db.checkpoints import Checkpoints
from service.db.engine import checkpoint, commit_watch, may_find, open_engine, reading, version, writing
from service.delivery import queue_store
from service.events.notifier import Notifier
from service.lake.reader_pool import InProcess
from service.locks.lock_watch import LockWatch, LockWatchConfig
from service.model.clock import utc_now
from service.model.task_health import TaskHealth
from service.notifications import store as notification_store
from service.observation.poll_requests import PollRequests
from service.queue import lease_store, lock_sighting_store
from service.queue.hand_over import store as hand_over_store
from service.runtime.due import when_due
from service.runtime.ticks import Tick, Ticks
from tests.integration.control_plane.planning import Service
from tests.integration.serving import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tests.integration.control_plane.conftest import FakeClock


def test_each_commit_of_any_process_changes_the_version_and_nothing_else_does(sqlite: sa.Engine) -> None:
    engine, other = sqlite, open_engine(str(sqlite.url))
    found = [version(engine)]
    for writer in (engine, other, engine):
        with writing(writer) as connection:
            connection.execute(sa.text("CREATE TABLE IF NOT EXISTS seen (id INTEGER)"))
            connection.execute(sa.text("INSERT INTO seen VALUES (1)"))
        found.append(version(engine))
    assert len(set(found)) == 4
    assert None not in found
    with reading(engine) as connection:
        connection.execute(sa.text("SELECT * FROM seen")).all()
    checkpoint(engine)
    assert version(engine) == found[-1]
    other.dispose()


def test_a_quiet_commit_wakes_nobody_and_hides_no_other_commit(sqlite: sa.Engine) -> None:
    watch, other = commit_watch(sqlite), open_engine(str(sqlite.url))

    def add(engine: sa.Engine, *, quietly: bool = False) -> None:
        with writing(engine, quietly=quietly) as connection:
            connection.execute(sa.text("CREATE TABLE IF NOT EXISTS seen (id INTEGER)"))
            connection.execute(sa.text("INSERT INTO seen VALUES (1)"))

    assert watch.are_new()
    assert not watch.are_new()
    for _ in range(2):
        add(sqlite, quietly=True)
        assert not watch.are_new()
    with suppress(ZeroDivisionError), writing(sqlite, quietly=True) as connection:
        connection.execute(sa.text("INSERT INTO seen VALUES (1)"))
        raise ZeroDivisionError
    assert not watch.are_new()
    # Another process knows nothing of the watch of this one.
    for engine, quietly in ((sqlite, False), (other, False), (other, True)):
        add(engine, quietly=quietly)
        add(sqlite, quietly=True)
        assert watch.are_new()
        assert not watch.are_new()
    other.dispose()


def test_a_short_log_is_copied_less_often_and_a_long_one_at_once(
    sqlite: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies, now = Checkpoints(sqlite), [0.0]
    monkeypatch.setattr(checkpoints, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def add(rows: int) -> None:
        with writing(sqlite) as connection:
            connection.execute(sa.text("CREATE TABLE IF NOT EXISTS seen (content TEXT)"))
            connection.execute(sa.text("INSERT INTO seen VALUES (:content)"), [{"content": "x" * 4000}] * rows)

    add(1)
    assert copies.is_due()
    copies.run_once()
    now[0] = 60.0
    assert not copies.is_due()
    add(1)
    assert copies.is_due()
    copies.run_once()
    add(1)
    now[0] = 65.0
    assert not copies.is_due()
    now[0] = 66.1
    assert copies.is_due()
    add(1000)
    copies.run_once()
    assert not copies.is_due()
    add(1)
    assert copies.is_due()


def test_a_notification_wakes_only_ticks_that_may_find_something() -> None:
    notifier, runs, is_due = Notifier(), list[str](), threading.Event()

    def tick(name: str, is_due: Callable[[], bool]) -> Tick:
        return Tick(name, 0.01, lambda: runs.append(name), idle_seconds=1000.0, is_due=is_due)

    ticks = Ticks([tick("due", is_due.is_set), tick("never", lambda: False)], notifier, TaskHealth())
    ticks.start()
    try:
        time.sleep(0.2)
        notifier.notify()
        time.sleep(0.3)
        assert runs == []
        is_due.set()
        notifier.notify()
        # A tick that finds something runs again.
        assert eventually(lambda: len(runs) > 1, 60)
        is_due.clear()
        time.sleep(0.3)
        ended = len(runs)
        time.sleep(0.3)
        assert len(runs) == ended
    finally:
        ticks.end(10.0)
    assert set(runs) == {"due"}


def test_a_notification_during_a_run_lets_the_tick_run_again() -> None:
    notifier, begun, goes_on, runs = Notifier(), threading.Event(), threading.Event(), list[float]()

    def run() -> bool:
        runs.append(time.monotonic())
        begun.set()
        assert goes_on.wait(60)
        return False

    ticks = Ticks([Tick("tick", 0.05, run, idle_seconds=1000.0)], notifier, TaskHealth())
    ticks.start()
    try:
        assert begun.wait(60)
        notifier.notify()
        time.sleep(0.3)
        goes_on.set()
        assert eventually(lambda: len(runs) == 2, 60)
        time.sleep(0.3)
        assert len(runs) == 2
    finally:
        ticks.end(10.0)


def test_a_notification_wakes_only_listeners_that_may_find_something() -> None:
    async def woken_listeners() -> list[bool]:
        notifier, found = Notifier(), []
        with notifier.listener() as any_one, notifier.listener(lambda: False) as nobody:
            for call in (notifier.notify, notifier.close):
                for listener in (any_one, nobody):
                    listener.forget()
                call()
                for listener in (any_one, nobody):
                    began = time.monotonic()
                    await listener.wait(0.5)
                    found.append(time.monotonic() - began < 0.4)
        return found

    assert asyncio.run(woken_listeners()) == [True, False, True, True]


def test_a_glance_finds_nothing_in_a_new_database_and_what_is_due_later(sqlite: sa.Engine, clock: FakeClock) -> None:
    engine, service = sqlite, Service(sqlite, clock)
    every = {
        "polls": watch_store.ANY_DUE,
        "decisions": decision_times.ANY_DUE,
        "leases": lease_store.ANY_EXPIRED,
        "locks": lock_sighting_store.ANY_TO_WATCH,
        "hand-overs": hand_over_store.ANY_WAITING,
        "notifications": notification_store.ANY,
        "deliveries": queue_store.DUE,
    }

    def names_with_work() -> set[str]:
        return {name for name, statement in every.items() if may_find(engine, statement, now=clock())}

    assert names_with_work() == set()
    service.register()
    assert names_with_work() == {"polls"}
    with writing(engine) as connection:
        watch_store.claim(connection, now=clock(), next_poll_at=clock() + timedelta(seconds=60), limit=1)
    assert names_with_work() == set()
    clock.advance(59)
    assert names_with_work() == set()
    clock.advance(2)
    assert names_with_work() == {"polls"}
    service.poll(commits=5)
    assert names_with_work() == {"polls", "decisions"}
    assert not lease_store.may_find(engine, clock(), "default")
    assert len(service.plan().jobs) == 1
    assert names_with_work() == {"polls", "locks"}
    assert lease_store.may_find(engine, clock(), "default")
    assert lease_store.may_become_due(engine, "default")
    assert not lease_store.may_become_due(engine, "other's group")


def test_a_database_that_cannot_be_read_counts_as_having_work(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path}/empty.db")
    assert may_find(engine, watch_store.ANY_DUE, now=utc_now())
    engine.dispose()


def test_a_tick_that_would_find_nothing_is_left_out_and_is_not_late() -> None:
    is_due = threading.Event()
    runs: list[float] = []
    tasks = TaskHealth(lambda: time.monotonic() + later[0])
    later = [0.0]
    tick = Tick("tick", 0.05, lambda: runs.append(time.monotonic()), is_due=is_due.is_set)
    ticks = Ticks([tick], Notifier(), tasks)
    ticks.start()
    try:
        time.sleep(0.5)
        assert not runs
        later[0] = 59.0
        assert eventually(lambda: not tasks.late(), 60)
        later[0] = 118.0
        assert eventually(lambda: not tasks.late(), 60)
        is_due.set()
        assert eventually(lambda: len(runs) > 2, 60)
    finally:
        ticks.end(10.0)
    ended = len(runs)
    time.sleep(0.3)
    assert len(runs) == ended


def test_the_notifier_is_called_for_each_commit_and_polls_for_each_request(sqlite: sa.Engine, clock: FakeClock) -> None:
    polls = PollRequests()
    given = [Tick(name, 1.0, list) for name in ("commits", "observe", "trend")]
    locks = LockWatch(
        sqlite, Notifier(), clock, LockWatchConfig(), InProcess(), cipher=SecretCipher([]), permissions=Permissions()
    )
    commits, observe, trend = when_due(given, sqlite, clock, polls, locks)
    assert commits.is_due()
    assert not commits.is_due()
    other = open_engine(str(sqlite.url))
    with writing(other) as connection:
        connection.execute(sa.text("CREATE TABLE seen (id INTEGER)"))
    other.dispose()
    assert commits.is_due()
    assert not commits.is_due()
    assert not observe.is_due()
    polls.ask("tbl_1")
    polls.notified.clear()
    assert observe.is_due()
    assert trend.follows_time
