"""Tests the clients that wait while the service is away, against a server of HTTP. The tests of tools use real
outages."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from groundskeeper_client import Call, Client, ClientError, NoAnswerError, Retries, calls, patience

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

READ = Call("GET", "/", str)
CHANGE = Call("POST", "/", str)
ONCE = Retries(times=0)
TABLES = calls.list_tables()
HTML = (200, "text/html; charset=utf-8", b"<h1>We are back soon</h1>")
FOREIGN = (200, "application/json", b'{"status": "maintenance"}')


def _sent(url: str, call: Call[Any]) -> Any:
    with patience.PatientClient(url, retries=ONCE) as client:
        return client.send(call)


def _sent_in_a_loop(url: str, call: Call[Any]) -> Any:
    async def send() -> Any:
        async with patience.PatientAsyncClient(url, retries=ONCE) as client:
            return await client.send(call)

    return asyncio.run(send())


@contextmanager
def _proxy(*answers: int | tuple[int, str, bytes]) -> Iterator[tuple[str, list[Any]]]:
    """Yields the address of a server that gives these answers, without problem documents, and the answers left. An
    answer is a status, or a status with a content type and a body."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = left.pop(0)
            status, kind, body = (answer, "", b"") if isinstance(answer, int) else answer
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

        def do_DELETE(self) -> None:
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
    send: Callable[[str, Call[Any]], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "PAUSE_SECONDS", 0.01)
    with _proxy(502, 504, 500, 429, 200) as (url, left):
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
def test_an_answer_of_another_server_is_no_outage(send: Callable[[str, Call[Any]], Any]) -> None:
    with _proxy(404, 200) as (url, left), pytest.raises(NoAnswerError):
        send(url, READ)
    assert left == [200]


@pytest.mark.parametrize("send", [_sent, _sent_in_a_loop])
def test_a_page_of_a_proxy_in_place_of_an_answer_is_an_outage(
    send: Callable[[str, Call[Any]], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "PAUSE_SECONDS", 0.01)
    with _proxy(HTML, FOREIGN, (200, "application/json", b'{"items": [], "next_cursor": null}')) as (url, left):
        assert send(url, TABLES).items == []
    assert left == []
    monkeypatch.setattr(patience, "PATIENCE_SECONDS", 0.0)
    with _proxy(HTML) as (url, _), pytest.raises(NoAnswerError, match="with text/html instead of application/json"):
        send(url, TABLES)
    with _proxy(FOREIGN) as (url, _), pytest.raises(NoAnswerError, match="missing required field `items`"):
        send(url, TABLES)


@pytest.mark.parametrize("call", [READ, calls.delete_freeze("night")])
def test_a_page_of_a_proxy_is_neither_a_text_nor_a_success_without_body(call: Call[Any]) -> None:
    with _proxy(HTML) as (url, _), Client(url) as client, pytest.raises(NoAnswerError, match="a proxy has answered"):
        client.send(call)


def test_a_stream_tells_each_sign_of_life_and_is_no_page_of_a_proxy() -> None:
    heard: list[bool] = []
    quiet = (200, "text/event-stream", b"id: 7\n: still here\n\n")
    with (
        _proxy(quiet, HTML) as (url, left),
        Client(url, retries=Retries(times=1, first=0.01)) as client,
        pytest.raises(NoAnswerError, match="with text/html instead of text/event-stream"),
    ):
        next(client.events(heard=lambda: heard.append(True)))
    assert left == []
    assert len(heard) == 3
