"""Tests a worker with several URLs of the service, on real sockets."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from jobs.contract import WorkerInfo
from jobs.worker.service import Service, ServiceUnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator


class Replica(ThreadingHTTPServer):
    """Answers every POST with `status`, and counts them."""

    status = 204
    calls = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Replica

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.calls += 1
        body = b"" if self.server.status == 204 else json.dumps({"title": "no"}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def replica(status: int = 204) -> Iterator[Replica]:
    with Replica(("127.0.0.1", 0), _Handler) as server:
        server.status = status
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def nobody() -> str:
    """The URL of a closed port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_call_goes_to_the_next_url_when_one_is_unreachable_and_stays_there(nobody: str) -> None:
    with replica() as one, replica() as other:
        service = Service([nobody, one.url, other.url], None)
        for _ in range(3):
            service.announce("w1", WorkerInfo())
        assert (one.calls, other.calls) == (3, 0)
        one.status = 503
        for _ in range(3):
            assert service.lease("w1", WorkerInfo()) is None
        assert (one.calls, other.calls) == (4, 3)


def test_an_answer_that_every_replica_would_give_is_final() -> None:
    with replica(403) as one, replica() as other:
        with pytest.raises(ServiceUnreachableError, match="403"):
            Service([one.url, other.url], None).lease("w1", WorkerInfo())
        assert (one.calls, other.calls) == (1, 0)


def test_without_any_replica_the_call_fails_and_is_tried_again(nobody: str) -> None:
    with replica(503) as one:
        service = Service([nobody, one.url], None)
        with pytest.raises(ServiceUnreachableError, match="503"):
            service.lease("w1", WorkerInfo())
        one.status = 204
        assert service.lease("w1", WorkerInfo()) is None
    with pytest.raises(ServiceUnreachableError):
        Service([nobody, nobody], None).announce("w1", WorkerInfo())


def test_a_service_of_an_older_version_needs_no_announcement() -> None:
    with replica(404) as one:
        Service([one.url], None).announce("w1", WorkerInfo())
