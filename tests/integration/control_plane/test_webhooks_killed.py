"""A service that is killed and stopped while it sends webhooks loses no event."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import httpx
import pytest
from standardwebhooks import Webhook as Verifier

from tests.integration.control_plane.posting import publish
from tests.integration.receiver import Receiver
from tests.integration.serving import Serving, eventually

if TYPE_CHECKING:
    from pathlib import Path

TABLES = 5
EVENTS = 500
WEBHOOKS = 20
AT_ONCE = 10


@pytest.mark.exhaustive
def test_a_service_that_is_killed_again_and_again_delivers_every_event_to_everybody(tmp_path: Path) -> None:
    receivers = [Receiver() for _ in range(WEBHOOKS)]
    published: list[str] = []
    try:
        with Serving(tmp_path, WEBHOOK_TIMEOUT_SECONDS="1", WEBHOOK_SCHEDULE_SECONDS="0.2,1,1,1,1") as service:
            for receiver in receivers:
                httpx.post(f"{service.url}/v1/webhooks", json={"url": receiver.url}).raise_for_status()

            def produce() -> None:
                for first in range(0, EVENTS, AT_ONCE):
                    published.extend(publish(service.engine, first, AT_ONCE, TABLES))
                    time.sleep(0.1)

            producer = threading.Thread(target=produce)
            producer.start()
            kills = 0
            while producer.is_alive():
                before = sum(len(receiver.received) for receiver in receivers)
                # The service is killed while it sends, not while it starts.
                assert eventually(lambda: sum(len(each.received) for each in receivers) > before + 200, 60)  # noqa: B023
                service.kill()
                kills += 1
                service.start()
            producer.join()
            assert len(published) == EVENTS

            def have_all() -> bool:
                return all(len(set(receiver.ids)) == EVENTS for receiver in receivers)

            assert eventually(have_all, 120), [len(set(receiver.ids)) for receiver in receivers]
            assert kills >= 2
            for receiver in receivers:
                assert set(receiver.ids) == set(published)
                # The first receipts of each table's events are in the order of the commits, even if deliveries were
                # repeated.
                for table in range(TABLES):
                    of_table = published[table::TABLES]
                    seen = dict.fromkeys(each for each in receiver.ids if each in set(of_table))
                    assert list(seen) == of_table
            sent = sum(len(receiver.received) for receiver in receivers)
            print(f"{kills} kills, {sent} messages of {EVENTS * WEBHOOKS} deliveries")
            assert sent >= EVENTS * WEBHOOKS
    finally:
        for receiver in receivers:
            receiver.close()


@pytest.mark.exhaustive
def test_a_service_that_is_stopped_sends_nothing_again_that_was_acknowledged(tmp_path: Path) -> None:
    with Receiver() as receiver, Serving(tmp_path) as service:
        made = httpx.post(f"{service.url}/v1/webhooks", json={"url": receiver.url}).json()
        published = publish(service.engine, 0, 500, TABLES)
        for _ in range(3):
            before = len(receiver.received)
            assert eventually(lambda: len(receiver.received) > before + 20, 60)  # noqa: B023 - called at once
            assert service.stop() == 0
            service.start()
        assert eventually(lambda: len(receiver.received) >= len(published), 60)
        assert sorted(receiver.ids) == sorted(published)
        for got in receiver.received:
            Verifier(made["secret"]).verify(got.body, got.headers)
        assert "Traceback" not in service.log.read_text()
        secret = made["secret"].encode()
        assert not any(secret in path.read_bytes() for path in tmp_path.iterdir())
