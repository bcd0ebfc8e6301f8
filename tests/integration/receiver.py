"""A receiver of webhooks: a real HTTP server that records the calls, and answers as a test says."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes
    client: tuple[str, int]

    @property
    def event(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.body)
        return document

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


@dataclass(frozen=True)
class Reply:
    """`hang` delays the answer, or its body, until the receiver closes; `cut` closes the connection after this number
    of bytes of the body, 0 without any answer."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"ok"
    hang: bool = False
    cut: int | None = None


class Receiver:
    def __init__(
        self,
        answer: Callable[[Received], Reply] | Reply | None = None,
        *,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.answer: Callable[[Received], Reply] | Reply = answer or Reply()
        self.received: list[Received] = []
        self.closing = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body are written apart; Nagle's algorithm would hold the second one back.
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                got = Received(self.path, headers, body, self.client_address)
                receiver.received.append(got)
                reply = receiver.answer(got) if callable(receiver.answer) else receiver.answer
                if reply.hang:
                    receiver.closing.wait(60)
                    self.close_connection = True
                    return
                if reply.cut == 0:
                    self.close_connection = True
                    return
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body[: reply.cut])
                self.close_connection = self.close_connection or reply.cut is not None

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_: object) -> None:
                """Ignores senders that disconnect in the middle of an answer."""

        self._server = Server(("127.0.0.1", port), Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://127.0.0.1:{self.port}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def ids(self) -> list[str]:
        return [got.id for got in self.received]

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Receiver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
