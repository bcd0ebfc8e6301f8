"""An OpenID provider that gives the false answers that a test sets."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

if TYPE_CHECKING:
    from collections.abc import Callable

CLIENT = "groundskeeper"


def new_key(size: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65_537, key_size=size)


def public(key: rsa.RSAPrivateKey, key_id: str) -> dict[str, Any]:
    return {**json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key())), "kid": key_id, "use": "sig"}


class LyingProvider:
    """`answers` are by path: members for the document, or a function that writes the whole answer."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.key = new_key()
        self.asked: list[str] = []
        self.forms: list[str] = []
        self.changed: dict[str, Any] = {}
        self.keys: list[dict[str, Any]] = [public(self.key, "one")]
        self.id_token: Callable[[], str] = lambda: self.signed()
        self.nonce = ""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                outer._answer(self)

            def do_POST(self) -> None:
                outer.forms.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self.do_GET()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def claims(self, **other: Any) -> dict[str, Any]:
        at = self.now()
        found = {"iss": self.issuer, "sub": "1", "aud": CLIENT, "exp": at + 300, "iat": at, "nonce": self.nonce}
        found |= {"preferred_username": "ada", "groups": ["ops"], **other}
        return {name: value for name, value in found.items() if value is not None}

    def signed(self, key: Any = None, algorithm: str = "RS256", key_id: str | None = "one", **other: Any) -> str:
        headers = {} if key_id is None else {"kid": key_id}
        return jwt.encode(self.claims(**other), key or self.key, algorithm=algorithm, headers=headers)

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.partition("?")[0]
        changed = self.changed.get(path, {})
        if callable(changed):
            changed(handler)
            return
        document: dict[str, Any] = {
            "/.well-known/openid-configuration": {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/auth",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
            },
            "/keys": {"keys": self.keys},
            "/token": {"access_token": "opaque", "token_type": "Bearer", "id_token": ""},
        }.get(path, {})
        if path == "/token":
            document["id_token"] = self.id_token()
        send(handler, json.dumps({**document, **changed}).encode())


def send(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def drip(handler: BaseHTTPRequestHandler) -> None:
    """Sends a byte now and then, so that no limit for the wait between two bytes is reached."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    try:
        for _ in range(1000):
            handler.wfile.write(b" ")
            time.sleep(0.1)
    except OSError:
        pass
