"""The demo's receiver of webhooks, which teams can take as an example. The receiver accepts only messages with a valid
signature."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Inbox:
    """The received messages. Each is kept once, because a sender that gets no answer sends the message again with the
    same id. Thread-safe."""

    def __init__(self) -> None:
        self.secret = ""
        self._guard = threading.Lock()
        self._verified: dict[str, dict[str, Any]] = {}
        self._refused: set[str] = set()

    def take(self, headers: Mapping[str, str], body: bytes) -> bool:
        """Stores the message if its signature is valid, and returns whether the signature is valid."""
        message_id = headers.get("webhook-id", "")
        is_valid = is_signed(self.secret, headers, body)
        with self._guard:
            if is_valid:
                self._verified[message_id] = json.loads(body)
            else:
                self._refused.add(message_id)
        return is_valid

    @property
    def received(self) -> int:
        with self._guard:
            return len(self._verified.keys() | self._refused)

    @property
    def verified(self) -> int:
        with self._guard:
            return len(self._verified)

    def instants(self) -> set[str]:
        """Returns the instants of all commits in the messages."""
        with self._guard:
            events = list(self._verified.values())
        return {event["data"]["commit"]["instant"] for event in events if event["type"].endswith("commit.published")}


def is_signed(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Returns whether one of the signatures was made with this secret (Standard Webhooks, version 1)."""
    content = f"{headers.get('webhook-id', '')}.{headers.get('webhook-timestamp', '')}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(expected, given) for given in headers.get("webhook-signature", "").split())


@contextmanager
def running(inbox: Inbox) -> Iterator[str]:
    """Listens on a free port of this machine, and yields the URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(204 if inbox.take(headers, body) else 401)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, name="receiver", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/hudi"
    finally:
        server.shutdown()
        server.server_close()
