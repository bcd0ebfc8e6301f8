"""An S3 server (moto's) in its own process, which counts requests, and refuses some of them on demand.

`python -m tests.support.s3 PORT AHEAD` is the server, whose clock is AHEAD seconds ahead; `running` starts this
program.
"""

from __future__ import annotations

import io
import json
import random
import re
import ssl
import sys
import threading
import time
import urllib.request
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyarrow import fs

from tests.support.ports import free_port, listening

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

_CONTROL = "/-control"
SLOW_DOWN = b"""<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"""
ACCESS_DENIED = b"""<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"""

INTERNAL = b"""<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>"""
EXPIRED = b"""<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"""
# S3 says this if the key's policy or the caller's does not allow the use of the key.
KEY_DENIED = b"""<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>AccessDenied</Code><Message>User: arn:aws:sts::123456789012:assumed-role/lake/gk is not authorized to
 perform: kms:Decrypt on resource: arn:aws:kms:us-east-1:123456789012:key/1 because no identity-based policy allows the
 kms:Decrypt action</Message></Error>""".replace(b"\n ", b" ")

STALE_TOKEN = b"""<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
<Code>ExpiredTokenException</Code><Message>Token expired</Message></Error><RequestId>1</RequestId></ErrorResponse>"""


@dataclass
class Front:
    """A proxy before the server. `refused_share` of the requests get 503, and listings take `listing_seconds` longer.
    `denies_writes` refuses writes like a bucket policy; `needs_keys` refuses unknown keys, wrong signatures and what a
    policy does not allow. Sessions of STS end after `session_seconds`, if these are not 0; `key_denied` refuses reads
    like KMS. An object whose path matches the pattern `loses` is stored, and the answer is an error of the server."""

    application: Callable[..., Iterable[bytes]]
    refused_share: float = 0.0
    listing_seconds: float = 0.0
    denies_writes: bool = False
    session_seconds: float = 0.0
    key_denied: bool = False
    loses: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    ends: dict[str, float] = field(default_factory=dict)
    _random: random.Random = field(default_factory=lambda: random.Random(7))
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _conditions: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == _CONTROL:
            return self._controlled(environ, start_response)
        if self._has_ended(environ):
            return _refuse(environ, start_response, "400 Bad Request", EXPIRED)
        if environ["REQUEST_METHOD"] == "POST" and environ["PATH_INFO"] == "/":
            return self._session(environ, start_response)
        query = f"&{environ.get('QUERY_STRING', '')}"
        is_listing = environ["REQUEST_METHOD"] == "GET" and ("&prefix=" in query or "&list-type=" in query)
        kind = "LIST" if is_listing else "POST delete" if "&delete" in query else environ["REQUEST_METHOD"]
        with self._guard:
            is_refused = self._random.random() < self.refused_share
            self.counts["refused" if is_refused else kind] += 1
            if "aws-chunked" in environ.get("HTTP_CONTENT_ENCODING", "") or "HTTP_X_AMZ_TRAILER" in environ:
                self.counts["with a trailing checksum"] += 1
        if is_refused:
            return _refuse(environ, start_response, "503 Slow Down", SLOW_DOWN)
        if self.denies_writes and environ["REQUEST_METHOD"] in ("PUT", "POST", "DELETE"):
            return _refuse(environ, start_response, "403 Forbidden", ACCESS_DENIED)
        if self.key_denied and environ["REQUEST_METHOD"] == "GET" and not is_listing:
            return _refuse(environ, start_response, "403 Forbidden", KEY_DENIED)
        if is_listing:
            time.sleep(self.listing_seconds)
        if self.loses and environ["REQUEST_METHOD"] == "PUT" and re.search(self.loses, environ["PATH_INFO"]):
            return self._stored_unheard(environ, start_response)
        if "HTTP_IF_MATCH" in environ or "HTTP_IF_NONE_MATCH" in environ:
            # moto checks the condition before it writes; S3 does both atomically.
            with self._conditions:
                return list(self.application(environ, start_response))
        return self.application(environ, start_response)

    def _stored_unheard(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        answered: list[Any] = []
        list(self.application(environ, lambda *said: answered.append(said)))
        assert answered[0][0].startswith("200"), answered
        with self._guard:
            self.counts[f"lost {environ['PATH_INFO'].rpartition('/')[2]}"] += 1
        return _refuse({**environ, "CONTENT_LENGTH": "0"}, start_response, "500 Internal Server Error", INTERNAL)

    def _has_ended(self, environ: dict[str, Any]) -> bool:
        """Moto itself never ends a session."""
        key = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].partition("/")[0]
        return time.time() > self.ends.get(key, float("inf"))

    def _session(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answers a call of STS; a session gets an earlier end."""
        sent = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(sent)
        if b"WebIdentityToken=stale" in sent:
            return _refuse(environ, start_response, "400 Bad Request", STALE_TOKEN)
        with self._guard, _unsigned_if(b"WebIdentityToken=" in sent):
            answered: list[Any] = []
            body = b"".join(self.application(environ, lambda *said: answered.append(said)))
            status, headers, *_ = answered[0]
            self.counts[f"STS {status[:3]}"] += 1
            # The form of STS, in which Java's client finds the code.
            body = re.sub(rb"</?Errors>", b"", body)
            key = re.search(rb"<AccessKeyId>([^<]+)", body)
            if key and self.session_seconds:
                end = time.time() + self.session_seconds
                self.ends[key[1].decode()] = end
                shown = datetime.fromtimestamp(end, UTC).strftime("%Y-%m-%dT%H:%M:%SZ").encode()
                body = re.sub(rb"(?<=<Expiration>)[^<]+", shown, body)
        start_response(status, [each for each in headers if each[0].lower() != "content-length"])
        return [body]

    def _controlled(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        wanted = json.loads(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)) or b"{}")
        with self._guard:
            answer = json.dumps(self.counts).encode()
            self.counts.clear()
            # The second value of this seed is below a fifth, so that few requests are enough for a refusal.
            self._random.seed(7)
            self.refused_share = wanted.get("refused_share", 0.0)
            self.listing_seconds = wanted.get("listing_seconds", 0.0)
            self.denies_writes = bool(wanted.get("denies_writes"))
            self.key_denied = bool(wanted.get("key_denied"))
            self.loses = wanted.get("loses", "")
            self.session_seconds = wanted.get("session_seconds", 0.0)
        if wanted.get("needs_keys"):
            from moto import settings

            # The listed calls need no key.
            settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(answer)))])
        return [answer]


def _refuse(environ: dict[str, Any], start_response: Callable[..., Any], status: str, answer: bytes) -> Iterable[bytes]:
    # The body is read first, because otherwise the client would see a broken connection instead of the answer.
    environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(answer)))])
    return [answer]


@contextmanager
def _unsigned_if(is_unsigned: bool) -> Iterator[None]:
    """moto wants a signature of every call, and nobody has a key before `AssumeRoleWithWebIdentity`."""
    from moto import settings

    kept = settings.INITIAL_NO_AUTH_ACTION_COUNT
    settings.INITIAL_NO_AUTH_ACTION_COUNT = float("inf") if is_unsigned else kept
    try:
        yield
    finally:
        settings.INITIAL_NO_AUTH_ACTION_COUNT = kept


class Server:
    """`options` are Hadoop's, by which all clients find the server."""

    def __init__(self, endpoint: str, ca_file: str | None = None) -> None:
        self.endpoint = endpoint
        self.ca_file = ca_file
        self.options = {
            "fs.s3a.access.key": "someone",
            "fs.s3a.secret.key": "anything",
            "fs.s3a.endpoint": endpoint,
            "fs.s3a.path.style.access": "true",
        }
        self.files = fs.S3FileSystem(
            access_key="someone",
            secret_key="anything",
            region="us-east-1",
            endpoint_override=endpoint,
            allow_bucket_creation=True,
            tls_ca_file_path=ca_file,
        )

    def counted(self, **faults: float | str) -> Counter[str]:
        """Returns, by kind, the number of requests since the last call, and gives the server these faults instead of
        its earlier ones."""
        request = urllib.request.Request(f"{self.endpoint}{_CONTROL}", json.dumps(faults).encode(), method="POST")
        trusted = ssl.create_default_context(cafile=self.ca_file) if self.ca_file else None
        with urllib.request.urlopen(request, timeout=30, context=trusted) as answer:
            return Counter(json.load(answer))

    def upload(self, folder: Path, root: str) -> None:
        fs.copy_files(str(folder), root, destination_filesystem=self.files)

    def names(self, root: str) -> set[str]:
        infos = self.files.get_file_info(fs.FileSelector(root, recursive=True))
        return {info.path.removeprefix(f"{root}/") for info in infos if info.is_file}


@contextmanager
def running(*, ahead: timedelta = timedelta(), certificate: tuple[Path, Path] | None = None) -> Iterator[Server]:
    """Starts the server. `ahead` is the difference of its clock, and so of its files' times, to this machine's. A
    server with a certificate and its key speaks TLS as `localhost`."""
    # The server has its own process, because Arrow may wait for it while it holds the interpreter's lock.
    port = free_port()
    command = [sys.executable, "-m", "tests.support.s3", str(port), str(ahead.total_seconds())]
    command += map(str, certificate or ())
    with listening(command, port):
        server = Server(f"http://127.0.0.1:{port}")
        if certificate:
            server = Server(f"https://localhost:{port}", str(certificate[0]))
        server.files.create_dir("lake")
        yield server


def main(port: int, ahead: timedelta, certificate: tuple[str, str] | None = None) -> None:
    import botocore.auth
    from moto.core.utils import utcnow
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import run_simple

    for module in [each for each in sys.modules.values() if getattr(each, "utcnow", None) is utcnow]:
        vars(module)["utcnow"] = lambda: utcnow() + ahead
    # Amazon's SDK for Java signs all headers; the check leaves one out, and finds another signature.
    botocore.auth.SIGNED_HEADERS_BLACKLIST.clear()
    application = Front(DomainDispatcherApplication(create_backend_app))
    run_simple("127.0.0.1", port, application, threaded=True, ssl_context=certificate)


if __name__ == "__main__":
    main(int(sys.argv[1]), timedelta(seconds=float(sys.argv[2])), (sys.argv[3], sys.argv[4]) if sys.argv[3:] else None)
