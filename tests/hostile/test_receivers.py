"""Receivers and addresses that make attempts fail in unusual ways do not stop the deliveries to others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from service.db import schema
from service.db.engine import writing
from service.delivery import outbox
from service.delivery.errors import UrlNotAllowedError
from service.observation.poll_events import commit_published
from tests.integration.control_plane.posting import LOCAL, a_table, commits, ids
from tests.integration.receiver import Receiver, Reply

if TYPE_CHECKING:
    from tests.integration.control_plane.posting import Post

ADDRESSES = [
    "https://a..b/",
    f"https://{'a' * 64}.example/",
    "https://hooks.example:99999/",
    "https://xn--a.com/",
    "https://[::1/",
    "https://hooks.example:0/",
    "https://\ud800.example/",
]


@pytest.mark.parametrize("url", ADDRESSES)
def test_an_address_that_no_name_server_can_be_asked_for_is_refused(url: str) -> None:
    with pytest.raises(UrlNotAllowedError):
        LOCAL.checked(url)


@pytest.mark.parametrize("url", [*ADDRESSES[:-1], "", "nonsense"])
def test_a_stored_address_that_cannot_be_resolved_is_a_failed_attempt(post: Post, receiver: Receiver, url: str) -> None:
    bad, good = post.webhook(receiver.url).webhook, post.webhook(receiver.url).webhook
    with writing(post.engine) as connection:
        connection.execute(sa.update(schema.webhooks).where(schema.webhooks.c.id == bad.id).values(url=url))
    published = post.publish(3)
    post.deliver()
    assert receiver.ids == ids(published)
    assert post.states(good.id) == ["delivered"] * 3
    [attempt, *_] = post.attempts(post.deliveries(bad.id)[0].id)
    assert attempt.answer.error
    assert attempt.retry_at is not None


@pytest.mark.parametrize(
    "value",
    [
        "99999999999999999999",
        "1e400",
        "-5",
        "Wed, 21 Oct 99999 07:28:00 GMT",
        "Fri, 31 Dec 9999 23:59:59 -1400",
        "Mon, 01 Jan 0001 00:00:00 +1400",
        "Wed, 21 Oct 2026 99:99:99 GMT",
        "Wed, 21 Oct 2026 07:28:00 +9999999999",
    ],
)
def test_a_retry_after_of_any_kind_is_a_pause_at_most(post: Post, value: str) -> None:
    with Receiver(Reply(503, {"Retry-After": value})) as odd, Receiver() as other:
        hook = post.webhook(odd.url).webhook
        post.webhook(other.url)
        published = post.publish()
        post.deliver()
        assert other.ids == ids(published)
        [attempt] = post.attempts(post.deliveries(hook.id)[0].id)
        assert attempt.retry_at is not None
        assert 5 <= (attempt.retry_at - attempt.at).total_seconds() <= 12 * 3600


def test_half_a_surrogate_pair_in_an_event_is_sent_as_a_question_mark(post: Post, receiver: Receiver) -> None:
    post.webhook(receiver.url)
    table = replace(a_table(), name="orders \ud800")
    [commit] = commits(table, range(1), post.clock())
    with writing(post.engine) as connection:
        outbox.publish(connection, [commit_published(commit, table)], now=post.clock())
    post.deliver()
    [got] = receiver.received
    assert "orders ?" in got.body.decode()
