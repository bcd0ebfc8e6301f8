"""A stand-in for a service that speaks HTTP, on a free port of 127.0.0.1 in this process."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from email.message import Message


@dataclass(frozen=True)
class Asked:
    """A received request; `path` includes the query."""

    method: str
    path: str
    headers: Message
    body: bytes


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, value: Any, status: int = 200, **headers: str) -> Answer:
        """Returns an answer in JSON."""
        return cls(status, json.dumps(value).encode(), headers)


class StandIn:
    """Answers each request with what the function returns. `close`, or the end of the block, ends the server."""

    def __init__(self, answer: Callable[[Asked], Answer]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                given = answer(Asked(self.command, self.path, self.headers, body))
                self.send_response(given.status)
                for name, value in {**given.headers, "Content-Length": str(len(given.body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(given.body)

            do_POST = do_GET  # noqa: N815 - a name of the base class

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
