"""Tests deliveries to real receivers with typical faults, on a clock that the tests set."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import timedelta
from email.utils import format_datetime

import pytest
from cloudevents.v1.http import from_http
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from service.access.secret_cipher import SecretCipher
from service.db.engine import reading
from service.delivery import outbox
from service.delivery import webhooks as flows
from service.delivery.attempt_policy import DeliveryConfig
from service.delivery.dispatcher import DispatcherConfig
from service.delivery.http import SendLimits
from service.model.clock import utc_now
from tests.integration.control_plane.posting import LOCAL, PATIENT, Post, ids
from tests.integration.receiver import Received, Receiver, Reply


def test_the_reference_libraries_verify_and_parse_what_is_received(post: Post, receiver: Receiver) -> None:
    post.clock.advance((utc_now() - post.clock()).total_seconds())  # The library uses the real time.
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


@pytest.mark.mostly_sqlite
def test_after_a_rotation_both_secrets_sign_for_a_day(post: Post, receiver: Receiver) -> None:
    post.clock.advance((utc_now() - post.clock()).total_seconds() - 86_400)
    old = post.webhook(receiver.url)
    new = flows.rotate_secret(post.database, old.webhook.id)
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


def test_each_webhook_gets_its_selected_events_once_and_in_order(post: Post) -> None:
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


@pytest.mark.mostly_sqlite
def test_connections_are_used_again(post: Post, receiver: Receiver) -> None:
    post.webhook(receiver.url)
    post.publish(20)
    post.deliver()
    assert len(receiver.received) == 20
    assert len({got.client for got in receiver.received}) == 1


FAILURES: dict[str, tuple[Reply, int | None, str]] = {
    "500": (Reply(500, body=b"oh no"), 500, ""),
    "404": (Reply(404), 404, ""),
    "redirect": (Reply(302, {"Location": "http://169.254.169.254/latest/meta-data"}), 302, ""),
    "permanent redirect": (Reply(308, {"Location": "/elsewhere"}), 308, ""),
    "hangs": (Reply(hang=True), None, "no answer"),
    "closes without an answer": (Reply(cut=0), None, "Server disconnected"),
}


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.mostly_sqlite
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
@pytest.mark.mostly_sqlite
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


def test_headers_of_ours_that_a_receiver_echoes_are_not_stored(post: Post) -> None:
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
@pytest.mark.mostly_sqlite
def test_the_receiver_may_ask_for_a_longer_pause_by_retry_after(post: Post, form: str) -> None:
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
        for pause in post.config.delivery.schedule:
            assert published[2].event.id not in receiver.ids
            post.clock.advance(pause)
            post.deliver()
        # After the last retry the delivery is a dead letter, and later deliveries continue.
        assert post.states(webhook.id) == ["delivered", "dead", *["delivered"] * 4]
        assert receiver.ids.count(poison) == 8
        assert receiver.ids[-1] == published[2].event.id


def test_later_deliveries_are_held_up_for_a_limited_time_even_if_retries_are_left(post: Post) -> None:
    post.config = DispatcherConfig(DeliveryConfig(schedule=(60,) * 100, jitter=0.0, most_hold=timedelta(minutes=3)))
    with Receiver() as receiver:
        webhook = post.webhook(receiver.url).webhook
        first, _ = post.publish(2)
        receiver.answer = lambda got: Reply(500 if got.id == first.event.id else 200)
        for _ in range(4):
            post.deliver()
            post.clock.advance(60)
        assert post.states(webhook.id) == ["dead", "delivered"]
        assert receiver.ids.count(first.event.id) == 4


def test_a_receiver_that_answers_gone_gets_no_more_events(post: Post, receiver: Receiver) -> None:
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
        # The enabled webhook gets the waiting deliveries, and a replay sends the missed ones.
        gone.answer = Reply()
        flows.enable(post.database, webhook.id)
        post.deliver()
        assert post.states(webhook.id) == ["delivered"] * 3
        since = post.clock() - timedelta(days=20)
        flows.replay(post.database, webhook.id, since=since, until=None, with_delivered=False)
        post.deliver()
        commits = [got.id for got in gone.received if got.event["type"] == "commit.published"]
        assert len(set(commits)) == 6


def test_a_webhook_that_fails_for_days_is_disabled_with_the_reason(post: Post, receiver: Receiver) -> None:
    post.config = DispatcherConfig(DeliveryConfig(schedule=(43_200,) * 100, jitter=0.0, most_hold=timedelta(days=99)))
    with Receiver(Reply(503)) as failing:
        webhook = post.webhook(failing.url).webhook
        post.webhook(receiver.url, types=("webhook.disabled",))
        post.publish()
        for _ in range(20):
            post.deliver()
            post.clock.advance(43_200)
        assert len(failing.received) == 11  # The webhook is tried twice a day for five days.
        because = post.get(webhook.id).disabled_because or ""
        assert because == "Every attempt failed for more than 5 days; the last one: HTTP 503."
        assert [got.event["data"]["because"] for got in receiver.received] == [because]


def test_a_secret_of_another_key_is_a_failure_that_says_so(post: Post, receiver: Receiver) -> None:
    webhook = post.webhook(receiver.url).webhook
    post.publish()
    post.cipher = SecretCipher.fresh()
    post.deliver()
    [attempt] = post.attempts(post.deliveries(webhook.id)[0].id)
    assert "encrypted with another key" in (attempt.answer.error or "")
    assert receiver.received == []


def test_a_webhook_that_is_removed_while_it_is_sent_to_leaves_nothing(post: Post) -> None:
    def remove(_: Received) -> Reply:
        flows.remove(post.database, webhook.id)
        return Reply()

    with Receiver(remove) as receiver:
        webhook = post.webhook(receiver.url).webhook
        post.publish(3)
        post.deliver()
        with reading(post.engine) as connection:
            assert [each.seq for each in outbox.after(connection, 0, 9)] != []
        assert post.publish(1)
        post.deliver()


def test_a_changed_webhook_gets_the_remaining_events_at_its_new_address(post: Post, receiver: Receiver) -> None:
    with Receiver(Reply(500)) as old:
        webhook = post.webhook(old.url).webhook
        published = post.publish(2)
        post.deliver()
        flows.change(post.database, LOCAL, webhook_id=webhook.id, changes={"url": receiver.url})
        post.clock.advance(5)
        post.deliver()
        assert receiver.ids == ids(published)


def test_receivers_that_hang_do_not_delay_the_others(post: Post) -> None:
    with Receiver(Reply(hang=True)) as hanging, Receiver() as fast:
        for _ in range(10):
            post.webhook(hanging.url)
        post.webhook(fast.url)
        for table in range(10):
            post.publish(2, table=table)
        dispatcher = post.dispatcher(limits=SendLimits(connect=60, read=60, total=60))
        started = time.monotonic()

        async def work() -> None:
            while len(fast.received) < 20 and time.monotonic() - started < 50:
                await dispatcher.run_once()
                await asyncio.sleep(0.01)

        post.runner.run(work())
        assert len(fast.received) == 20
        assert time.monotonic() - started < 50  # The hanging ones are given up after a minute.
        assert len(hanging.received) <= 10 * post.config.per_webhook
