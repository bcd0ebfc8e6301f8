"""Deliveries to real receivers that do what receivers do, on a clock that the tests turn."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from cloudevents.v1.http import from_http
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from service.flows import prune
from service.flows import webhooks as flows
from service.flows.deliver import DispatchTerms
from service.model.announcement import commit_published, table_registered
from service.model.clock import utc_now
from service.model.errors import WebhookDisabledError
from service.policy.delivery import DeliveryTerms
from service.store import outbox
from service.store.engine import reading, writing
from service.webhook.box import SecretBox
from service.webhook.sender import SendLimits
from tests.integration.control_plane.posting import LOCAL, PATIENT, Post, a_table, commits
from tests.integration.receiver import Received, Receiver, Reply

if TYPE_CHECKING:
    from tests.integration.control_plane.posting import Clock


def ids(published: list[Any]) -> list[str]:
    return [each.event.id for each in published]


def test_the_reference_libraries_verify_and_parse_what_is_received(post: Post, receiver: Receiver) -> None:
    post.clock.advance((utc_now() - post.clock()).total_seconds())  # The library goes by the real time.
    created = post.webhook(receiver.url, headers={"Authorization": "Bearer mine"})
    [published] = post.publish()
    post.deliver()
    [got] = receiver.received
    document = Verifier(created.secret).verify(got.body, got.headers)
    event = from_http(got.headers, got.body)
    assert got.headers["content-type"].startswith("application/cloudevents+json")
    assert got.headers["authorization"] == "Bearer mine"
    assert event["id"] == got.id == published.event.id
    assert (event["type"], event["subject"], event["source"]) == ("commit.published", "tbl_1", "/groundskeeper")
    assert event.get_data() == document["data"] == published.event.data
    with pytest.raises(WebhookVerificationError):
        Verifier(created.secret).verify(got.body.replace(b"orders", b"orderz"), got.headers)


def test_after_a_rotation_both_secrets_sign_for_a_day(post: Post, receiver: Receiver) -> None:
    post.clock.advance((utc_now() - post.clock()).total_seconds() - 86_400)
    old = post.webhook(receiver.url)
    new = flows.rotate_secret(post.engine, post.clock, post.box, old.webhook.id)
    assert new.secret != old.secret
    post.publish()
    post.deliver()
    assert len(receiver.received[0].headers["webhook-signature"].split()) == 2
    post.clock.advance(86_400)
    post.publish()
    post.deliver()
    got = receiver.received[1]
    Verifier(new.secret).verify(got.body, got.headers)
    with pytest.raises(WebhookVerificationError):
        Verifier(old.secret).verify(got.body, got.headers)


def test_each_webhook_gets_what_it_wants_once_and_in_order(post: Post) -> None:
    with Receiver() as one, Receiver() as other:
        post.webhook(one.url, tables=("orders_1",))
        post.webhook(other.url, types=("commit.*",))
        first = post.publish(5, table=1)
        second = post.publish(5, table=2)
        post.deliver()
        assert one.ids == ids(first)
        assert [each for each in other.ids if each in ids(first)] == ids(first)
        assert [each for each in other.ids if each in ids(second)] == ids(second)
        assert len(other.ids) == 10
        assert [got.event["sequence"] for got in one.received] == sorted(got.event["sequence"] for got in one.received)


def test_connections_are_used_again(post: Post, receiver: Receiver) -> None:
    post.webhook(receiver.url)
    post.publish(20)
    post.deliver()
    assert len(receiver.received) == 20
    assert len({got.client for got in receiver.received}) == 1


def test_what_is_published_twice_is_sent_once(post: Post, receiver: Receiver) -> None:
    post.webhook(receiver.url)
    [published] = post.publish()
    with writing(post.engine) as connection:
        assert outbox.publish(connection, [published.event, published.event], now=post.clock()) == []
    post.deliver()
    assert receiver.ids == [published.event.id]


def test_many_that_publish_the_same_at_once_publish_it_once_and_in_one_order(post: Post, receiver: Receiver) -> None:
    webhook = post.webhook(receiver.url).webhook
    table, now = a_table(), post.clock()
    events = [commit_published(commit, table) for commit in commits(table, range(20), now)]
    start = threading.Barrier(4)

    def publish(_: int) -> int:
        start.wait()
        count = 0
        for event in events:
            with writing(post.engine) as connection:
                count += len(outbox.publish(connection, [event], now=now))
        return count

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(publish, range(4))) == 20
    post.deliver()
    assert receiver.ids == [event.id for event in events]
    assert post.states(webhook.id) == ["delivered"] * 20


def test_events_are_numbered_in_the_order_of_their_commits(post: Post) -> None:
    """Whoever has read up to some number has missed nothing before it: streams depend on that."""
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


def test_what_waits_is_found_by_an_index_however_much_was_sent_before(sqlite: sa.Engine, clock: Clock) -> None:
    """On SQLite, whose plans do not depend on what the tables hold."""
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


def test_a_state_change_that_is_rolled_back_is_not_told(post: Post, receiver: Receiver) -> None:
    def change_and_fail() -> None:
        with writing(post.engine) as connection:
            outbox.publish(connection, [table_registered(a_table(), post.clock())], now=post.clock())
            raise ZeroDivisionError

    post.webhook(receiver.url)
    with pytest.raises(ZeroDivisionError):
        change_and_fail()
    post.deliver()
    assert receiver.received == []


FAILURES: dict[str, tuple[Reply, int | None, str]] = {
    "500": (Reply(500, body=b"oh no"), 500, ""),
    "404": (Reply(404), 404, ""),
    "redirect": (Reply(302, {"Location": "http://169.254.169.254/latest/meta-data"}), 302, ""),
    "permanent redirect": (Reply(308, {"Location": "/elsewhere"}), 308, ""),
    "hangs": (Reply(hang=True), None, "no answer"),
    "closes without an answer": (Reply(cut=0), None, "Server disconnected"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_recorded_and_tried_again_after_the_first_pause(post: Post, name: str) -> None:
    reply, status, error = FAILURES[name]
    if reply.hang:
        post.limits = SendLimits(connect=1, read=1, total=1)
    with Receiver(reply) as receiver:
        webhook = post.webhook(receiver.url).webhook
        [published] = post.publish()
        post.deliver()
        [delivery] = post.deliveries(webhook.id)
        [attempt] = post.attempts(delivery.id)
        assert attempt.answer.status == status
        assert error in (attempt.answer.error or "")
        assert attempt.retry_at == post.clock() + timedelta(seconds=5)
        assert post.get(webhook.id).failing_since == post.clock()
        post.clock.advance(4.9)
        post.deliver()
        assert len(receiver.received) == 1
        receiver.answer = Reply()
        post.clock.advance(0.1)
        post.deliver(post.dispatcher(limits=PATIENT))
        assert receiver.ids == [published.event.id] * 2
        assert {got.path for got in receiver.received} == {"/hook"}
        assert post.states(webhook.id) == ["delivered"]
        healthy = post.get(webhook.id)
        assert (healthy.failing_since, healthy.last_success_at) == (None, post.clock())


ACCEPTED: dict[str, Reply] = {
    "a huge body": Reply(200, body=b"x" * 20_000_000),
    "a body that is broken off": Reply(200, body=b"x" * 1000, cut=10),
    "a body that is no text": Reply(204 + 1, body=b"\xff\x00\xfe"),
    "an empty body": Reply(202, body=b""),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_status_of_success_counts_whatever_the_body_is(post: Post, name: str) -> None:
    with Receiver(ACCEPTED[name]) as receiver:
        webhook = post.webhook(receiver.url).webhook
        post.publish(2)
        post.deliver()
        assert post.states(webhook.id) == ["delivered"] * 2
        assert len(receiver.received) == 2
        excerpt = post.attempts(post.deliveries(webhook.id)[0].id)[0].answer.excerpt
        assert len(excerpt) <= 1000
        assert "\0" not in excerpt


def test_what_a_receiver_sends_back_of_our_headers_is_not_kept(post: Post) -> None:
    def echo(got: Received) -> Reply:
        return Reply(500, body=json.dumps(got.headers).encode())

    with Receiver(echo) as receiver:
        webhook = post.webhook(receiver.url, headers={"X-Api": "s3cret-value"}).webhook
        post.publish()
        post.deliver()
        [delivery] = post.deliveries(webhook.id)
        excerpt = post.attempts(delivery.id)[0].answer.excerpt
        assert "x-api" in excerpt
        assert "s3cret-value" not in excerpt


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_the_receiver_may_ask_for_patience(post: Post, form: str) -> None:
    asked = "90" if form == "seconds" else format_datetime(post.clock() + timedelta(seconds=90), usegmt=True)
    with Receiver(Reply(429, {"Retry-After": asked})) as receiver:
        webhook = post.webhook(receiver.url).webhook
        post.publish()
        post.deliver()
        receiver.answer = Reply()
        post.clock.advance(89)
        post.deliver()
        assert len(receiver.received) == 1
        post.clock.advance(1)
        post.deliver()
        assert post.pauses(post.deliveries(webhook.id)[0].id) == [90]


def test_a_receiver_that_is_away_for_hours_misses_nothing(post: Post) -> None:
    gone = Receiver()
    webhook = post.webhook(gone.url).webhook
    gone.close()
    published = post.publish(3, table=1) + post.publish(2, table=2)
    post.deliver()
    assert post.states(webhook.id) == ["pending"] * 5
    for pause in (5, 300, 1800):
        post.clock.advance(pause)
        post.deliver()
        published += post.publish(1, table=1)
    with Receiver(port=gone.port) as back:
        post.clock.advance(7199)
        post.deliver()
        assert back.received == []
        post.clock.advance(1)
        post.deliver()
        for table in ("tbl_1", "tbl_2"):
            expected = [each.event.id for each in published if each.event.table_id == table]
            assert [got.id for got in back.received if got.event["subject"] == table] == expected
    assert set(post.states(webhook.id)) == {"delivered"}
    assert post.pauses(post.deliveries(webhook.id)[0].id) == [5, 300, 1800, 7200]


def test_a_failing_delivery_holds_up_only_the_later_ones_of_its_table(post: Post) -> None:
    with Receiver() as receiver:
        webhook = post.webhook(receiver.url).webhook
        published = post.publish(3, table=1)
        poison = published[1].event.id
        other = post.publish(3, table=2)
        receiver.answer = lambda got: Reply(500 if got.id == poison else 200)
        post.deliver()
        assert [each for each in receiver.ids if each in ids(other)] == ids(other)
        assert post.states(webhook.id) == ["delivered", "pending", "pending", *["delivered"] * 3]
        for pause in post.terms.delivery.schedule:
            assert published[2].event.id not in receiver.ids
            post.clock.advance(pause)
            post.deliver()
        # The schedule is used up: it is a dead letter, and what came after it goes on.
        assert post.states(webhook.id) == ["delivered", "dead", *["delivered"] * 4]
        assert receiver.ids.count(poison) == 8
        assert receiver.ids[-1] == published[2].event.id


def test_the_hold_is_bounded_also_where_the_schedule_is_not_used_up(post: Post) -> None:
    post.terms = DispatchTerms(DeliveryTerms(schedule=(60,) * 100, jitter=0.0, most_hold=timedelta(minutes=3)))
    with Receiver() as receiver:
        webhook = post.webhook(receiver.url).webhook
        first, _ = post.publish(2)
        receiver.answer = lambda got: Reply(500 if got.id == first.event.id else 200)
        for _ in range(4):
            post.deliver()
            post.clock.advance(60)
        assert post.states(webhook.id) == ["dead", "delivered"]
        assert receiver.ids.count(first.event.id) == 4


def test_a_receiver_that_is_gone_is_told_nothing_more(post: Post, receiver: Receiver) -> None:
    with Receiver(Reply(410)) as gone:
        webhook = post.webhook(gone.url).webhook
        post.webhook(receiver.url, types=("webhook.*",))
        post.publish(3)
        post.deliver()
        post.publish(3)
        post.clock.advance(1_000_000)
        post.deliver()
        assert len(gone.received) == 1
        disabled = post.get(webhook.id)
        assert disabled.disabled_because == "The receiver answered 410 Gone."
        [told] = receiver.received
        assert told.event["data"]["webhook"]["id"] == webhook.id
        # Enabled again it gets what waited; and by a replay what it missed.
        gone.answer = Reply()
        flows.enable(post.engine, post.bell, post.clock, webhook.id)
        post.deliver()
        assert post.states(webhook.id) == ["delivered"] * 3
        since = post.clock() - timedelta(days=20)
        flows.replay(post.engine, post.bell, post.clock, webhook.id, since=since, until=None, with_delivered=False)
        post.deliver()
        commits = [got.id for got in gone.received if got.event["type"] == "commit.published"]
        assert len(set(commits)) == 6


def test_a_webhook_that_fails_for_days_is_disabled_with_the_reason(post: Post, receiver: Receiver) -> None:
    post.terms = DispatchTerms(DeliveryTerms(schedule=(43_200,) * 100, jitter=0.0, most_hold=timedelta(days=99)))
    with Receiver(Reply(503)) as failing:
        webhook = post.webhook(failing.url).webhook
        post.webhook(receiver.url, types=("webhook.disabled",))
        post.publish()
        for _ in range(20):
            post.deliver()
            post.clock.advance(43_200)
        assert len(failing.received) == 11  # Twice a day for five days.
        because = post.get(webhook.id).disabled_because or ""
        assert because == "Every attempt failed for more than 5 days; the last one: HTTP 503."
        assert [got.event["data"]["because"] for got in receiver.received] == [because]


def test_a_test_is_sent_once_and_past_what_is_held_up(post: Post) -> None:
    with Receiver(Reply(500)) as receiver:
        webhook = post.webhook(receiver.url, types=("job.*",)).webhook
        delivery = flows.test(post.engine, post.bell, post.clock, webhook.id)
        post.deliver()
        [attempt] = post.attempts(delivery.id)
        assert (attempt.answer.status, attempt.retry_at) == (500, None)
        receiver.answer = Reply()
        flows.test(post.engine, post.bell, post.clock, webhook.id)
        post.deliver()
        assert post.states(webhook.id) == ["dead", "delivered"]
        assert {got.event["type"] for got in receiver.received} == {"webhook.test"}


def test_a_dead_letter_is_sent_when_it_is_replayed(post: Post) -> None:
    post.terms = DispatchTerms(DeliveryTerms(schedule=(1,), jitter=0.0))
    with Receiver(Reply(500)) as receiver:
        webhook = post.webhook(receiver.url).webhook
        [published] = post.publish()
        post.deliver()
        post.clock.advance(1)
        post.deliver()
        assert post.states(webhook.id) == ["dead"]
        receiver.answer = Reply()
        [delivery] = post.deliveries(webhook.id)
        again = flows.replay_one(post.engine, post.bell, post.clock, delivery.id)
        assert (again.state, again.tries) == ("pending", 0)
        post.deliver()
        assert post.states(webhook.id) == ["delivered"]
        assert receiver.ids == [published.event.id] * 3
        assert len(post.attempts(delivery.id)) == 3


def test_a_replay_of_a_time_sends_what_is_missing_in_order_and_repeats_nothing(post: Post, receiver: Receiver) -> None:
    early = post.publish(2)
    post.clock.advance(60)
    since = post.clock()
    missed = post.publish(3)
    webhook = post.webhook(receiver.url).webhook

    def replay(**more: Any) -> flows.Replayed:
        wanted = {"since": since, "until": None, "with_delivered": False, **more}
        return flows.replay(post.engine, post.bell, post.clock, webhook.id, **wanted)

    post.clock.advance(60)
    assert replay() == flows.Replayed(3, is_complete=True)
    assert replay() == flows.Replayed(0, is_complete=True)
    post.deliver()
    assert receiver.ids == ids(missed)
    assert replay() == flows.Replayed(0, is_complete=True)
    assert replay(with_delivered=True).count == 3
    post.deliver()
    assert receiver.ids == ids(missed) * 2
    assert replay(since=early[0].event.at, until=since).count == 2
    post.deliver()
    assert receiver.ids[-2:] == ids(early)
    flows.disable(post.engine, post.bell, webhook.id, because="a test", now=post.clock())
    with pytest.raises(WebhookDisabledError):
        replay()


def test_a_replay_is_bounded_and_goes_on_when_it_is_repeated(
    post: Post, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flows, "MOST_REPLAYED", 10)
    monkeypatch.setattr(flows, "_LOOKED_AT_ONCE", 5)
    published = post.publish(23)
    webhook = post.webhook(receiver.url).webhook
    post.clock.advance(1)
    counts = []
    for _ in range(3):
        replayed = flows.replay(
            post.engine,
            post.bell,
            post.clock,
            webhook.id,
            since=published[0].event.at,
            until=None,
            with_delivered=False,
        )
        counts.append((replayed.count, replayed.is_complete))
    assert counts == [(10, False), (10, False), (3, True)]
    post.deliver()
    assert receiver.ids == ids(published)


def test_a_secret_of_another_key_is_a_failure_that_says_so(post: Post, receiver: Receiver) -> None:
    webhook = post.webhook(receiver.url).webhook
    post.publish()
    post.box = SecretBox.fresh()
    post.deliver()
    [attempt] = post.attempts(post.deliveries(webhook.id)[0].id)
    assert "kept with another key" in (attempt.answer.error or "")
    assert receiver.received == []


def test_a_webhook_that_is_removed_while_it_is_sent_to_leaves_nothing(post: Post) -> None:
    def remove(_: Received) -> Reply:
        flows.remove(post.engine, webhook.id)
        return Reply()

    with Receiver(remove) as receiver:
        webhook = post.webhook(receiver.url).webhook
        post.publish(3)
        post.deliver()
        with reading(post.engine) as connection:
            assert [each.seq for each in outbox.after(connection, 0, 9)] != []
        assert post.publish(1)
        post.deliver()


def test_a_webhook_that_is_changed_gets_the_rest_at_its_new_address(post: Post, receiver: Receiver) -> None:
    with Receiver(Reply(500)) as old:
        webhook = post.webhook(old.url).webhook
        published = post.publish(2)
        post.deliver()
        flows.change(post.engine, post.clock, post.box, LOCAL, webhook.id, {"url": receiver.url})
        post.clock.advance(5)
        post.deliver()
        assert receiver.ids == ids(published)


def test_old_events_go_but_not_what_somebody_has_yet_to_get(post: Post, receiver: Receiver) -> None:
    with Receiver(Reply(500)) as failing:
        slow = post.webhook(failing.url, tables=("orders_2",)).webhook
        post.webhook(receiver.url)
        post.publish(3, table=1)
        [kept] = post.publish(1, table=2)
        post.deliver()
        post.clock.advance(31 * 86_400)
        fresh = post.publish(1, table=1)
        month = timedelta(days=30)
        keep = prune.Keep(history=month, commits=month, events=month)
        assert prune.run_once(post.engine, post.clock, keep).events == 3
        assert prune.run_once(post.engine, post.clock, keep) == prune.Pruned()
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


def test_what_a_dead_service_had_claimed_is_sent_by_another_when_the_claim_is_over(post: Post) -> None:
    with Receiver(Reply(hang=True)) as receiver:
        webhook = post.webhook(receiver.url).webhook
        published = post.publish(3)
        dead, alive = post.dispatcher(), post.dispatcher()

        async def die() -> None:
            await dead.run_once()
            for task in dead._tasks:
                task.cancel()

        post.runner.run(die())
        dead._news = type(dead._news)()  # What it knew is lost with it.
        receiver.answer = Reply()
        post.deliver(alive)
        assert post.states(webhook.id) == ["pending"] * 3
        post.clock.advance(2 * post.limits.longest + 0.1)
        post.deliver(alive)
        assert post.states(webhook.id) == ["delivered"] * 3
        assert [each for each in receiver.ids if each][-3:] == ids(published)


def test_a_service_that_stops_lets_what_is_under_way_end_and_releases_the_rest(post: Post) -> None:
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
        # The next service goes on at once, and sends nothing again.
        post.deliver(post.dispatcher())
        assert len(receiver.ids) == len(set(receiver.ids)) == 50


def test_receivers_that_hang_do_not_delay_the_others(post: Post) -> None:
    with Receiver(Reply(hang=True)) as hanging, Receiver() as fast:
        for _ in range(10):
            post.webhook(hanging.url)
        post.webhook(fast.url)
        for table in range(10):
            post.publish(2, table=table)
        dispatcher = post.dispatcher(limits=SendLimits(connect=10, read=10, total=10))
        started = time.monotonic()

        async def work() -> None:
            while len(fast.received) < 20 and time.monotonic() - started < 9:
                await dispatcher.run_once()
                await asyncio.sleep(0.01)

        post.runner.run(work())
        assert len(fast.received) == 20
        assert time.monotonic() - started < 9  # The hanging ones are given up after 10 seconds.
        assert len(hanging.received) <= 10 * post.terms.per_webhook
