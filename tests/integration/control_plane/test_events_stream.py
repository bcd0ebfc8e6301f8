"""Tests GET /v1/events of a running service, as a stream and by pages."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.integration.control_plane.posting import publish
from tests.integration.serving import Serving, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("events")) as service:
        publish(service.engine, 0, 250)
        yield service


class Listener(threading.Thread):
    """Reads a stream until it has received `count` events, or without end."""

    def __init__(
        self, service: Serving, count: int = 10**9, headers: dict[str, str] | None = None, **query: Any
    ) -> None:
        super().__init__(daemon=True)
        self._service, self._count, self._headers, self._query = service, count, headers or {}, query
        self.ids: list[int] = []
        self.events: list[dict[str, Any]] = []
        self.is_open = threading.Event()
        self.has_ended = threading.Event()
        self.start()
        assert self.is_open.wait(60)

    def run(self) -> None:
        url = f"{self._service.url}/v1/events"
        headers = {"Accept": "text/event-stream", **self._headers}
        with (
            suppress(httpx.RemoteProtocolError),  # A service that is killed breaks off.
            httpx.stream("GET", url, params=self._query, headers=headers, timeout=30) as answer,
        ):
            assert answer.headers["content-type"].startswith("text/event-stream")
            for line in answer.iter_lines():
                self.is_open.set()
                name, _, value = line.partition(": ")
                if name == "id":
                    self.ids.append(int(value))
                elif name == "data":
                    self.events.append(json.loads(value))
                    if len(self.events) >= self._count:
                        break
        self.has_ended.set()


def test_a_stream_sends_each_later_event_at_once(service: Serving) -> None:
    listener = Listener(service)
    time.sleep(0.3)  # The stream looks for the newest event after it has opened.
    published = publish(service.engine, 1000, 3)
    assert eventually(lambda: len(listener.events) >= 3, 60)
    assert [event["id"] for event in listener.events] == published
    assert listener.ids == sorted(listener.ids)


def test_a_stream_that_was_broken_off_goes_on_where_it_was(service: Serving) -> None:
    first = Listener(service, 100, after=0)
    assert first.has_ended.wait(60)
    second = Listener(service, 150, headers={"Last-Event-ID": str(first.ids[-1])}, after=0)
    assert second.has_ended.wait(60)
    ids = first.ids + second.ids
    assert ids == list(range(1, 251))
    assert len({event["id"] for event in first.events + second.events}) == 250


def test_a_stream_can_be_limited_to_some_events(service: Serving) -> None:
    listener = Listener(service, 50, after=0, table_id="tbl_2", types="commit.*,job.*")
    assert listener.has_ended.wait(60)
    assert {event["subject"] for event in listener.events} == {"tbl_2"}
    none = Listener(service, 1, after=0, types="job.*")
    assert not none.has_ended.wait(1.5)


def test_pages_hold_the_same_events(service: Serving) -> None:
    seen, after = [], 0
    while True:
        answer = httpx.get(
            f"{service.url}/v1/events", params={"after": after}, headers={"Accept": "application/json"}
        ).json()
        if not answer["items"]:
            break
        seen += answer["items"]
        after = answer["next_after"]
    listener = Listener(service, len(seen), after=0)
    assert listener.has_ended.wait(60)
    assert listener.events == seen


@pytest.mark.parametrize("wrong", ["x", "-1", "1.5"])
def test_an_invalid_last_event_id_is_refused(service: Serving, wrong: str) -> None:
    answer = httpx.get(f"{service.url}/v1/events", headers={"Last-Event-ID": wrong})
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/params-invalid")


def test_many_listeners_delay_nobody_and_each_gets_every_event(service: Serving) -> None:
    listeners = [Listener(service, 5) for _ in range(60)]
    time.sleep(1.0)
    started = time.monotonic()
    assert httpx.get(f"{service.url}/v1/tables", timeout=60).status_code == 200
    assert time.monotonic() - started < 30
    published = publish(service.engine, 2000, 5)
    for listener in listeners:
        assert listener.has_ended.wait(60)
        assert [event["id"] for event in listener.events] == published


def test_a_stream_ends_when_the_service_does(tmp_path: Any) -> None:
    with Serving(tmp_path) as service:
        listener = Listener(service)
        started = time.monotonic()
        assert service.stop() == 0
        assert time.monotonic() - started < 5
        assert listener.has_ended.wait(60)
