"""Tests clients that hold connections open, and send little or nothing."""

from __future__ import annotations

import asyncio
import resource
import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import httpx
import pytest
import uvicorn

from service.access.token import Role
from service.api.app import create_app
from service.runtime.connections import ConnectionLimits, Connections
from service.runtime.http import BoundedHttp, only_probes
from service.runtime.process import listen
from tests.integration.serving import Serving, eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from starlette.types import ASGIApp, Receive, Scope, Send

    from service.api.dependencies import AppContext

HALF_HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "
HALF_BODY = (
    b"POST /v1/tables HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
)
MEGABYTES = 64


async def slow_or_large(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers /slow only after the caller has disconnected, and all other paths with a large document."""
    if scope["type"] != "http":
        return
    if scope["path"] == "/slow":
        await receive()
        while (await receive())["type"] != "http.disconnect":
            pass
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(MEGABYTES if scope["path"] == "/large" else 1):
        await send({"type": "http.response.body", "body": b"x" * 1024 * 1024, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


@contextmanager
def serving(app: ASGIApp, **limits: float) -> Iterator[tuple[str, int]]:
    """The service's HTTP server with these limits, and its address."""
    opened = listen("127.0.0.1", 0)
    connections = Connections(ConnectionLimits(**limits))  # type: ignore[arg-type]
    http = partial(BoundedHttp, connections=connections, busy=only_probes(app))
    config = uvicorn.Config(app, http=http, log_config=None, lifespan="off", timeout_graceful_shutdown=1)  # type: ignore[arg-type]
    server = uvicorn.Server(config)
    thread = threading.Thread(target=asyncio.run, args=(server.serve([opened]),))
    thread.start()
    try:
        yield opened.getsockname()[:2]
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def flood(address: tuple[str, int], count: int, says: bytes) -> Iterator[list[socket.socket]]:
    """Opens this number of connections, each of which sends these bytes and then nothing more."""
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection(address, timeout=10)) for _ in range(count)]
        for each in opened:
            with ExitStack() as ignoring:
                # The server may have closed the connection already.
                ignoring.push(lambda kind, *_: kind is not None and issubclass(kind, OSError))
                each.sendall(says)
        yield opened


def _size_of_all(client: socket.socket) -> int:
    client.settimeout(5)
    received = 0
    with suppress(ConnectionResetError):
        while part := client.recv(1024 * 1024):
            received += len(part)
    return received


def is_closed(connection: socket.socket, seconds: float) -> bool:
    connection.settimeout(seconds)
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


@pytest.mark.parametrize(
    ("says", "limit"),
    [(b"", "head_seconds"), (b"G", "head_seconds"), (HALF_HEAD, "head_seconds"), (HALF_BODY, "body_seconds")],
)
def test_a_connection_whose_client_stops_sending_is_closed(app_context: AppContext, says: bytes, limit: str) -> None:
    with (
        serving(create_app(app_context), **{"head_seconds": 30, "body_seconds": 30, limit: 0.3}) as address,
        socket.create_connection(address) as client,
    ):
        client.sendall(says)
        assert is_closed(client, 5)


def test_a_connection_whose_client_stops_in_its_second_request_is_closed(app_context: AppContext) -> None:
    with (
        serving(create_app(app_context), head_seconds=0.5) as address,
        socket.create_connection(address) as client,
    ):
        client.sendall(HALF_HEAD + b"\r\n\r\n")
        answer = b""
        while not answer.endswith(b'"ok"}'):
            answer += client.recv(10_000)
        client.sendall(HALF_HEAD)
        assert is_closed(client, 3)


def test_a_connection_whose_client_does_not_read_its_answer_is_closed() -> None:
    with serving(slow_or_large, read_seconds=0.5) as address, socket.create_connection(address) as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(2)
        assert _size_of_all(client) < MEGABYTES * 1024 * 1024


def test_at_the_limit_of_an_address_the_longest_silent_connection_makes_room(app_context: AppContext) -> None:
    with (
        serving(create_app(app_context), per_address=10) as address,
        flood(address, 30, HALF_HEAD) as silent,
    ):
        answer = httpx.get(f"http://127.0.0.1:{address[1]}/healthz", timeout=5)
        assert answer.status_code == 200
        # The server has closed one of the last ten connections for this call.
        assert [is_closed(each, 0.5) for each in silent] == [True] * 21 + [False] * 9


def test_connections_at_work_are_not_closed_and_room_is_left_for_health_checks(app_context: AppContext) -> None:
    app = create_app(app_context)
    at_work = []

    async def recorded_app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("path") == "/slow":
            at_work.append(scope)
            await slow_or_large(scope, receive, send)
        else:
            await app(scope, receive, send)

    with (
        serving(recorded_app, all=5, probes=2) as address,
        flood(address, 5, b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n") as busy,
    ):
        url = f"http://127.0.0.1:{address[1]}"
        # An earlier call would take the place of a connection that still waits for its client.
        assert eventually(lambda: len(at_work) == len(busy), 60)
        refused = httpx.get(f"{url}/v1/tables")
        assert (refused.json()["type"], refused.headers["connection"]) == ("/problems/service-busy", "close")
        assert httpx.get(f"{url}/healthz").status_code == httpx.get(f"{url}/readyz").status_code == 200
        assert not any(is_closed(each, 0.05) for each in busy)


@pytest.mark.parametrize(
    ("headers", "status"),
    [("Authorization: Bearer gk_ab_cd\r\nContent-Length: 5000000\r\n", 401), ("Content-Length: 5000000000\r\n", 413)],
)
def test_a_call_is_refused_before_its_body_is_sent(
    app_context: AppContext, make_token: Callable[[Role], dict[str, str]], headers: str, status: int
) -> None:
    if status == 413:
        headers += f"Authorization: {make_token(Role.ADMIN)['Authorization']}\r\n"
    else:
        make_token(Role.ADMIN)
    with serving(create_app(app_context)) as address, socket.create_connection(address, timeout=5) as client:
        client.sendall(f"POST /v1/tables HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode())
        assert client.recv(1000).startswith(f"HTTP/1.1 {status} ".encode())
        assert eventually(lambda: is_closed(client, 1) or True, 60)


def test_two_thousand_incomplete_requests_delay_nobody(tmp_path: Path) -> None:
    with Serving(tmp_path) as service:
        address = ("127.0.0.1", int(service.url.rpartition(":")[2]))
        with flood(address, 2000, HALF_HEAD), flood(address, 150, HALF_BODY):
            took = []
            for path in ("/healthz", "/readyz", "/v1/tables") * 5:
                began = time.monotonic()
                assert httpx.get(service.url + path, timeout=60).status_code == 200
                took.append(time.monotonic() - began)
            assert sorted(took)[len(took) // 2] < 1
        assert service.stop() == 0


@pytest.mark.exhaustive
def test_a_service_without_descriptors_says_so_once_and_recovers(tmp_path: Path) -> None:
    with Serving(tmp_path) as service:
        address = ("127.0.0.1", int(service.url.rpartition(":")[2]))
        time.sleep(3)  # After this time the service has opened all files that it needs.
        before = service.log.stat().st_size
        # The service has set its limits when it could open more files.
        hard = resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (100, hard))
        with flood(address, 200, HALF_HEAD):
            time.sleep(4)
        assert "Connections cannot be accepted" in service.log.read_text()
        assert service.log.stat().st_size - before < 10_000
        assert eventually(lambda: httpx.get(f"{service.url}/healthz", timeout=10).status_code == 200, 60)
        assert service.stop() == 0
