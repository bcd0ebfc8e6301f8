"""Tests the patience of the Airflow provider's clients, against a server of HTTP. The tests of tools use real
outages."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from groundskeeper_client import Call, ClientError, NoAnswerError
from groundskeeper_client.airflow import patience

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

READ = Call("GET", "/", str)
CHANGE = Call("POST", "/", str)


def _sent(url: str, call: Call[str]) -> str:
    with patience.PatientClient(url) as client:
        return client.send(call)


def _sent_in_a_loop(url: str, call: Call[str]) -> str:
    async def sent() -> str:
        async with patience.PatientAsyncClient(url) as client:
            return await client.send(call)

    return asyncio.run(sent())


@contextmanager
def _proxy(*statuses: int) -> Iterator[tuple[str, list[int]]]:
    """Yields the address of a server that gives these answers, without problem documents, and the answers left."""
    left = list(statuses)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(left.pop(0))
            self.send_header("content-length", "0")
            self.end_headers()

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", left
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("send", [_sent, _sent_in_a_loop])
def test_only_a_call_that_may_be_repeated_waits_for_the_end_of_an_outage(
    send: Callable[[str, Call[str]], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "PAUSE_SECONDS", 0.01)
    with _proxy(502, 504, 500, 200) as (url, left):
        assert send(url, READ) == ""
    assert left == []
    with _proxy(502, 200) as (url, left), pytest.raises(ClientError):
        send(url, CHANGE)
    assert left == [200]
    monkeypatch.setattr(patience, "PATIENCE_SECONDS", 0.0)
    with _proxy(502, 200) as (url, left), pytest.raises(ClientError):
        send(url, READ)
    assert left == [200]


@pytest.mark.parametrize("send", [_sent, _sent_in_a_loop])
def test_an_answer_of_another_server_is_no_outage(send: Callable[[str, Call[str]], str]) -> None:
    with _proxy(404, 200) as (url, left), pytest.raises(NoAnswerError):
        send(url, READ)
    assert left == [200]
