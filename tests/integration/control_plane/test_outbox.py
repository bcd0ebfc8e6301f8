"""Tests the outbox and its lanes with several concurrent services, threads and transactions."""

from __future__ import annotations

import asyncio
import dataclasses
import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from service.catalog.table_events import table_registered
from service.db import schema
from service.db.engine import open_engine, reading, writing
from service.delivery import outbox
from service.delivery import webhooks as flows
from service.events import tally
from service.events.database import Database
from service.model.clock import utc_now
from service.observation.poll_events import commit_published
from service.queue import cost_store
from service.queue.cost import Ended
from service.runtime import retention
from tests.integration.control_plane.databases import new_postgresql
from tests.integration.control_plane.posting import LOCAL, Post, a_table, commits, ids
from tests.integration.receiver import Receiver, Reply

if TYPE_CHECKING:
    from service.catalog.registration import Registration
    from service.events.event import Event
    from tests.integration.control_plane.posting import Clock
    from tests.support.postgresql import Server

_ENDED = Ended("tbl_1", "audit", False, 1.0)


def test_an_event_that_is_published_twice_is_sent_once(post: Post, receiver: Receiver) -> None:
    post.webhook(receiver.url)
    [published] = post.publish()
    with writing(post.engine) as connection:
        outbox.publish(connection, [published.event, published.event], now=post.clock())
    post.deliver()
    assert receiver.ids == [published.event.id]


def test_concurrent_publications_of_the_same_events_publish_each_once_and_in_one_order(
    post: Post, receiver: Receiver
) -> None:
    webhook = post.webhook(receiver.url).webhook
    table, now = a_table(), post.clock()
    events = [commit_published(commit, table) for commit in commits(table, range(20), now)]
    start = threading.Barrier(4)

    def publish(_: int) -> None:
        start.wait()
        for event in events:
            with writing(post.engine) as connection:
                outbox.publish(connection, [event], now=now)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(publish, range(4)))
    with reading(post.engine) as connection:
        assert ids(outbox.after(connection, 0, 100)) == [event.id for event in events]
        assert tally.every(connection)[tally.EVENTS] == {("commit.published",): 20.0}
    post.deliver()
    assert receiver.ids == [event.id for event in events]
    assert post.states(webhook.id) == ["delivered"] * 20


def test_events_are_numbered_in_the_order_of_their_commits(post: Post) -> None:
    """A reader that has read up to some number has missed no earlier event; streams depend on that."""
    table, now = a_table(), post.clock()
    seen: list[int] = []
    has_ended = threading.Event()

    def read() -> None:
        while not has_ended.is_set() or len(seen) < 120:
            with reading(post.engine) as connection:
                seen.extend(each.seq for each in outbox.after(connection, seen[-1] if seen else 0, 10))

    def publish(thread: int) -> None:
        for commit in commits(table, range(thread * 30, thread * 30 + 30), now):
            with writing(post.engine) as connection:
                outbox.publish(connection, [commit_published(commit, table)], now=now)

    with ThreadPoolExecutor(5) as threads:
        reader = threads.submit(read)
        list(threads.map(publish, range(4)))
        has_ended.set()
        reader.result(timeout=30)
    assert len(set(seen)) == 120


def _publish_from_a_process(url: str, first: int, transactions: int, events: int) -> None:
    """Each transaction publishes events of its own and one that another process publishes as well, and ends an
    attempt."""
    engine, table = open_engine(url), a_table()
    for at in range(transactions):
        own = range(first + at * events, first + (at + 1) * events)
        with writing(engine) as connection:
            outbox.publish(connection, [_event(table, number) for number in (*own, -at)], now=utc_now())
            outbox.in_turn(connection, partial(cost_store.record, ended=_ENDED, at=utc_now()))
            # The transaction goes on after it has published.
            connection.execute(sa.text("SELECT pg_sleep(0.001)"))
    engine.dispose()


def _event(table: Registration, number: int) -> Event:
    return dataclasses.replace(table_registered(table, table.created_at), id=f"evt_{number}")


def test_positions_of_two_processes_become_visible_in_their_order(postgresql: Server) -> None:
    """No reader may see a position and later a lower one, neither of events nor of ended attempts."""
    url = new_postgresql(postgresql)
    forks = multiprocessing.get_context("spawn")
    # One process publishes many events at once, and meanwhile the other process publishes few.
    work = [(url, 1, 10, 200), (url, 10_001, 100, 1)]
    processes = [forks.Process(target=_publish_from_a_process, args=each) for each in work]
    engine = open_engine(url)
    events, costs = list[int](), list[int]()

    def read() -> None:
        for table, column, seen in (
            (schema.events, schema.events.c.seq, events),
            (schema.attempt_costs, schema.attempt_costs.c.id, costs),
        ):
            with reading(engine) as connection:
                after = seen[-1] if seen else 0
                seen.extend(connection.execute(sa.select(column).where(column > after).order_by(column)).scalars())
                count = connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            counts[table.name] = count

    counts: dict[str, int] = {}
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes):
        read()
    read()
    assert [process.exitcode for process in processes] == [0, 0]
    # A reader that follows the positions has seen each row, and each event that both have published once.
    assert (len(events), len(costs)) == (counts["events"], counts["attempt_costs"]) == (2200, 110)
    with reading(engine) as connection:
        assert tally.every(connection)[tally.EVENTS] == {("table.registered",): 2200.0}
    engine.dispose()


def test_a_transaction_that_goes_on_after_it_has_published_holds_up_no_other(postgresql: Server) -> None:
    engine = open_engine(new_postgresql(postgresql))
    with writing(engine) as connection:
        outbox.publish(connection, [_event(a_table(), 1)], now=utc_now())
        with writing(engine) as other:
            other.execute(sa.text("SET LOCAL lock_timeout = '2s'"))
            outbox.publish(other, [_event(a_table(), 2)], now=utc_now())
    with reading(engine) as connection:
        assert ids(outbox.after(connection, 0, 9)) == ["evt_2", "evt_1"]
    engine.dispose()


def test_a_process_that_pauses_between_the_events_and_the_commit_holds_up_no_other(postgresql: Server) -> None:
    """Threads of the lowest priority publish events, too."""
    engine = open_engine(new_postgresql(postgresql))

    def publish_meanwhile(_: object) -> None:
        with writing(engine) as other:
            other.execute(sa.text("SET LOCAL lock_timeout = '2s'"))
            outbox.publish(other, [_event(a_table(), 2)], now=utc_now())

    with writing(engine) as connection:
        sa.event.listen(connection, "commit", publish_meanwhile)
        outbox.publish(connection, [_event(a_table(), 1)], now=utc_now())
    with reading(engine) as connection:
        assert ids(outbox.after(connection, 0, 9)) == ["evt_1", "evt_2"]
    engine.dispose()


def test_an_event_that_cannot_be_written_undoes_its_transaction(postgresql: Server) -> None:
    engine = open_engine(new_postgresql(postgresql))
    too_long = dataclasses.replace(_event(a_table(), 1), table_id="t" * 100)

    def publish() -> None:
        with writing(engine) as connection:
            outbox.write(connection, [_event(a_table(), 2)])
            outbox.publish(connection, [too_long], now=utc_now())

    with pytest.raises(sa.exc.DataError):
        publish()
    with reading(engine) as connection:
        assert outbox.after(connection, 0, 9) == []
    engine.dispose()


def test_one_statement_takes_the_lock_of_the_positions_and_writes_all_but_deliveries(postgresql: Server) -> None:
    """All replicas wait while a transaction holds that lock."""
    engine, table = open_engine(new_postgresql(postgresql)), a_table()
    odd = dataclasses.replace(_event(table, 3), table_id=None, data={"name": "a\0b \ud800", "list": [1, None, "é"]})
    executed: list[str] = []
    with writing(engine) as connection:
        outbox.publish(connection, [_event(table, 1), _event(table, 2), odd, _event(table, 1)], now=utc_now())
        outbox.count(connection, [tally.Count("seconds", ("audit",), 1.5), tally.Count("none", (), 0)])
        outbox.publish(connection, [_event(table, 2), _event(table, 4)], now=utc_now())
        sa.event.listen(connection, "before_cursor_execute", lambda *given: executed.append(given[2]))
    # The other statements take the lock of the webhooks, and read the webhooks.
    assert len(executed) == 3
    with writing(engine) as connection:
        outbox.publish(connection, [_event(table, 1), _event(table, 5)], now=utc_now())
        outbox.count(connection, [tally.Count("seconds", ("audit",), 2)])
    with reading(engine) as connection:
        found = outbox.after(connection, 0, 9)
        assert ids(found) == ["evt_1", "evt_2", "evt_3", "evt_4", "evt_5"]
        assert found[2].event == odd
        assert found[0].event == _event(table, 1)
        assert tally.every(connection) == {
            "events": {("table.registered",): 5.0},
            "seconds": {("audit",): 3.5},
        }
    engine.dispose()


def test_a_transaction_without_events_waits_for_its_turn_as_well(postgresql: Server) -> None:
    engine = open_engine(new_postgresql(postgresql))
    written = threading.Event()

    def write() -> None:
        with writing(engine) as connection:
            outbox.in_turn(connection, lambda _: written.set())

    waiting = sa.text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    with ThreadPoolExecutor(1) as threads:
        with engine.begin() as blocking:
            outbox._take(blocking, outbox._POSITIONS)
            first = threads.submit(write)
            while not blocking.execute(waiting).scalar_one():
                assert not first.done()
            assert not written.is_set()
        first.result(20)
    assert written.is_set()
    engine.dispose()


def test_no_webhook_changes_while_a_transaction_publishes(postgresql: Server, receiver: Receiver) -> None:
    """A transaction that has read the webhooks ends before they change; one that follows sees the change."""
    engine = open_engine(new_postgresql(postgresql))

    def publish(number: int) -> None:
        with writing(engine) as connection:
            outbox.publish(connection, [_event(a_table(), number)], now=utc_now())

    def make() -> None:
        wanted = {"types": ("*",), "tables": (), "headers": {}, "description": ""}
        flows.create(Database(engine), LOCAL, url=receiver.url, **wanted)

    def await_waiting(number: int) -> None:
        waiting = sa.text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        while True:
            with reading(engine) as connection:
                if connection.execute(waiting).scalar_one() == number:
                    return

    with ThreadPoolExecutor(2) as threads:
        with engine.begin() as blocking:
            outbox._take(blocking, outbox._POSITIONS)
            first = threads.submit(publish, 1)
            await_waiting(1)
            made = threads.submit(make)
            await_waiting(2)
        first.result(20)
        made.result(20)
    publish(2)
    with reading(engine) as connection:
        delivered = sa.select(schema.events.c.id).join(schema.deliveries)
        assert connection.execute(delivered).scalars().all() == ["evt_2"]
        assert ids(outbox.after(connection, 0, 9)) == ["evt_1", "evt_2"]
    engine.dispose()


def test_waiting_deliveries_are_found_by_an_index_however_many_were_sent_before(
    sqlite: sa.Engine, clock: Clock
) -> None:
    """The test uses SQLite, whose plans do not depend on the rows."""
    with asyncio.Runner() as runner:
        _look_at_plans(Post(sqlite, clock, runner))


def _look_at_plans(post: Post) -> None:
    statements: list[tuple[str, Any]] = []
    post.webhook("http://127.0.0.1:9/")
    post.publish(1)

    @sa.event.listens_for(post.engine, "before_cursor_execute")
    def note(_connection: object, _cursor: object, text: str, values: Any, *_: object) -> None:
        statements.append((text, values))

    post.deliver()
    queries = [each for each in statements if each[0].startswith("SELECT") and "deliveries" in each[0]]
    assert queries
    with reading(post.engine) as connection:
        for text, values in queries:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values).all()
            assert not [row for row in plan if str(row[3]).startswith("SCAN deliveries")], (text, plan)
    post.close()


def test_a_state_change_that_is_rolled_back_publishes_no_event(post: Post, receiver: Receiver) -> None:
    def change_and_fail() -> None:
        with writing(post.engine) as connection:
            outbox.publish(connection, [table_registered(a_table(), post.clock())], now=post.clock())
            raise ZeroDivisionError

    post.webhook(receiver.url)
    with pytest.raises(ZeroDivisionError):
        change_and_fail()
    post.deliver()
    assert receiver.received == []


def test_old_events_are_deleted_unless_a_delivery_still_waits(post: Post, receiver: Receiver) -> None:
    with Receiver(Reply(500)) as failing:
        slow = post.webhook(failing.url, tables=("orders_2",)).webhook
        post.webhook(receiver.url)
        post.publish(3, table=1)
        [kept] = post.publish(1, table=2)
        post.deliver()
        post.clock.advance(31 * 86_400)
        fresh = post.publish(1, table=1)
        month = timedelta(days=30)
        keep = retention.Keep(history=month, commits=month, events=month)
        assert retention.run_once(post.engine, post.clock, keep)["events"] == 3
        assert retention.run_once(post.engine, post.clock, keep) == {}
        with reading(post.engine) as connection:
            assert ids(outbox.after(connection, 0, 9)) == [kept.event.id, fresh[0].event.id]
        assert post.states(slow.id) == ["pending"]


def test_two_services_share_the_work_and_send_nothing_twice(post: Post) -> None:
    dispatchers = [post.dispatcher(), post.dispatcher()]
    with Receiver() as receiver:
        webhook = post.webhook(receiver.url).webhook
        published = [each for table in range(20) for each in post.publish(5, table=table)]

        async def work() -> None:
            for _ in range(200):
                did = [await dispatcher.run_once() for dispatcher in dispatchers]
                if not any(did):
                    break
            for dispatcher in dispatchers:
                await dispatcher.settle()

        post.runner.run(work())
        for dispatcher in dispatchers:
            post.deliver(dispatcher)
        assert sorted(receiver.ids) == sorted(ids(published))
        for table in range(20):
            of_table = [each.event.id for each in published if each.event.table_id == f"tbl_{table}"]
            assert [got.id for got in receiver.received if got.id in of_table] == of_table
        assert set(post.states(webhook.id)) == {"delivered"}


def test_deliveries_that_a_dead_service_had_claimed_are_sent_by_another_after_the_claim(post: Post) -> None:
    with Receiver(Reply(hang=True)) as receiver:
        webhook = post.webhook(receiver.url).webhook
        published = post.publish(3)
        dead, alive = post.dispatcher(), post.dispatcher()

        async def die() -> None:
            await dead.run_once()
            for task in dead._tasks:
                task.cancel()

        post.runner.run(die())
        dead._unrecorded = type(dead._unrecorded)()  # The killed service loses its memory.
        receiver.answer = Reply()
        post.deliver(alive)
        assert post.states(webhook.id) == ["pending"] * 3
        post.clock.advance(2 * post.limits.longest + 0.1)
        post.deliver(alive)
        assert post.states(webhook.id) == ["delivered"] * 3
        assert [each for each in receiver.ids if each][-3:] == ids(published)


def test_a_stopping_service_ends_deliveries_that_have_begun_and_releases_the_others(post: Post) -> None:
    with Receiver() as receiver:
        webhook = post.webhook(receiver.url).webhook
        post.publish(50)
        stopping = post.dispatcher()

        async def stop() -> None:
            await stopping.run_once()
            while not receiver.received:
                await asyncio.sleep(0.001)
            await stopping.stop(5.0)

        post.runner.run(stop())
        post.made.remove(stopping)
        sent = len(receiver.received)
        assert 0 < sent < 50
        assert post.states(webhook.id).count("delivered") == sent
        # The next service continues at once, and sends nothing again.
        post.deliver(post.dispatcher())
        assert len(receiver.ids) == len(set(receiver.ids)) == 50
