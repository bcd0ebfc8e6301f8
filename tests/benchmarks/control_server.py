"""A server that does nothing, in a process of its own: the times of its answers are those that a machine and a caller
need without any service."""

from __future__ import annotations

import multiprocessing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

_forks = multiprocessing.get_context("fork")


class ControlServer:
    """Serves on `url` while the context is open."""

    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Nothing)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._process = _forks.Process(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        self._server.socket.close()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()


class _Nothing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # HTTP/1.0 would need a connection for each call.

    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass
