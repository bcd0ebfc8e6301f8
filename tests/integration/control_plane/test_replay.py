"""Tests the deliveries that calls request: test events, dead letters, and missed events."""

from __future__ import annotations

from typing import Any

import pytest

from service.db.engine import reading
from service.delivery import delivery_store
from service.delivery import webhooks as flows
from service.delivery.attempt_policy import DeliveryConfig
from service.delivery.dispatcher import DispatcherConfig
from service.delivery.errors import DeliveryEndedError, WebhookDisabledError
from service.delivery.webhook import DeliveryState
from tests.integration.control_plane.posting import Post, ids
from tests.integration.receiver import Receiver, Reply


def test_a_test_event_is_sent_once_and_not_held_up_by_others(post: Post) -> None:
    with Receiver(Reply(500)) as receiver:
        webhook = post.webhook(receiver.url, types=("job.*",)).webhook
        delivery = flows.test(post.database, webhook.id)
        post.deliver()
        [attempt] = post.attempts(delivery.id)
        assert (attempt.answer.status, attempt.retry_at) == (500, None)
        receiver.answer = Reply()
        flows.test(post.database, webhook.id)
        post.deliver()
        assert post.states(webhook.id) == ["dead", "delivered"]
        assert {got.event["type"] for got in receiver.received} == {"webhook.test"}


def test_a_dead_letter_is_sent_when_it_is_replayed(post: Post) -> None:
    post.config = DispatcherConfig(DeliveryConfig(schedule=(1,), jitter=0.0))
    with Receiver(Reply(500)) as receiver:
        webhook = post.webhook(receiver.url).webhook
        [published] = post.publish()
        post.deliver()
        post.clock.advance(1)
        post.deliver()
        assert post.states(webhook.id) == ["dead"]
        receiver.answer = Reply()
        [delivery] = post.deliveries(webhook.id)
        again = flows.replay_one(post.database, delivery.id)
        assert (again.state, again.tries) == ("pending", 0)
        post.deliver()
        assert post.states(webhook.id) == ["delivered"]
        assert receiver.ids == [published.event.id] * 3
        assert len(post.attempts(delivery.id)) == 3


def test_a_replay_of_a_period_sends_missing_events_in_order_and_repeats_none(post: Post, receiver: Receiver) -> None:
    early = post.publish(2)
    post.clock.advance(60)
    since = post.clock()
    missed = post.publish(3)
    webhook = post.webhook(receiver.url).webhook

    def replay(**more: Any) -> flows.Replayed:
        wanted = {"since": since, "until": None, "with_delivered": False, **more}
        return flows.replay(post.database, webhook.id, **wanted)

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
    flows.disable(post.database, webhook.id, because="a test")
    with pytest.raises(WebhookDisabledError):
        replay()


def test_a_replay_has_a_limit_and_continues_when_it_is_repeated(
    post: Post, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flows, "MOST_REPLAYED", 10)
    monkeypatch.setattr(flows, "_REPLAY_BATCH", 5)
    published = post.publish(23)
    webhook = post.webhook(receiver.url).webhook
    post.clock.advance(1)
    counts = []
    for _ in range(3):
        replayed = flows.replay(
            post.database,
            webhook.id,
            since=published[0].event.at,
            until=None,
            with_delivered=False,
        )
        counts.append((replayed.count, replayed.is_complete))
    assert counts == [(10, False), (10, False), (3, True)]
    post.deliver()
    assert receiver.ids == ids(published)


def test_a_delivery_that_holds_others_up_is_named_with_them_and_can_be_skipped(post: Post, receiver: Receiver) -> None:
    webhook = post.webhook(receiver.url).webhook
    first, *others = post.publish(3)
    receiver.answer = Reply(500, body=b"no room")
    post.deliver()
    with reading(post.engine) as connection:
        [(blocked, behind)] = delivery_store.blocking(connection, webhook.id, 20)
    assert (blocked.event_id, blocked.tries, behind) == (first.event.id, 1, 2)
    receiver.answer = Reply()
    skipped = flows.skip(post.database, blocked.id)
    assert (skipped.state, skipped.ended_at) == (DeliveryState.DEAD, post.clock())
    post.deliver()
    assert receiver.ids == [first.event.id, *ids(others)]
    with pytest.raises(DeliveryEndedError, match="is dead"):
        flows.skip(post.database, blocked.id)
    with reading(post.engine) as connection:
        assert delivery_store.blocking(connection, webhook.id, 20) == []
    flows.replay_one(post.database, blocked.id)
    post.deliver()
    assert receiver.ids[-1] == first.event.id
