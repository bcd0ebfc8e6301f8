"""An S3 server (moto's) in its own process, which counts requests, and fails some on demand.

`python -m tests.support.s3 PORT AHEAD` is the server, whose clock is AHEAD seconds ahead; `running` starts this
program.
"""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pyarrow import fs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

_CONTROL = "/-control"
_START_SECONDS = 30.0
SLOW_DOWN = b"""<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"""
ACCESS_DENIED = b"""<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"""


@dataclass
class Front:
    """A proxy before the server. `refused_share` of the requests get 503, and listings take `listing_seconds` longer.
    `denies_writes` refuses writes like a bucket policy; `needs_keys` refuses all keys as unknown."""

    application: Callable[..., Iterable[bytes]]
    refused_share: float = 0.0
    listing_seconds: float = 0.0
    denies_writes: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    _random: random.Random = field(default_factory=lambda: random.Random(7))
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _conditions: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == _CONTROL:
            return self._controlled(environ, start_response)
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
        if is_listing:
            time.sleep(self.listing_seconds)
        if "HTTP_IF_MATCH" in environ or "HTTP_IF_NONE_MATCH" in environ:
            # moto checks the condition before it writes; S3 does both atomically.
            with self._conditions:
                return list(self.application(environ, start_response))
        return self.application(environ, start_response)

    def _controlled(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        wanted = json.loads(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)) or b"{}")
        with self._guard:
            answer = json.dumps(self.counts).encode()
            self.counts.clear()
            self._random.seed(7)  # its second value is below a fifth, so that few requests are enough for a refusal
            self.refused_share = wanted.get("refused_share", 0.0)
            self.listing_seconds = wanted.get("listing_seconds", 0.0)
            self.denies_writes = bool(wanted.get("denies_writes"))
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


class Server:
    """`options` are Hadoop's, by which all clients find the server."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
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
        )

    def counted(self, **faults: float) -> Counter[str]:
        """Returns the requests since the last call by kind, and replaces the faults by these."""
        request = urllib.request.Request(f"{self.endpoint}{_CONTROL}", json.dumps(faults).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=30) as answer:
            return Counter(json.load(answer))

    def upload(self, folder: Path, root: str) -> None:
        fs.copy_files(str(folder), root, destination_filesystem=self.files)

    def names(self, root: str) -> set[str]:
        infos = self.files.get_file_info(fs.FileSelector(root, recursive=True))
        return {info.path.removeprefix(f"{root}/") for info in infos if info.is_file}


@contextmanager
def running(*, ahead: timedelta = timedelta()) -> Iterator[Server]:
    """Starts the server. `ahead` is the difference of its clock, and so of its files' times, to this machine's."""
    # The server has its own process, because Arrow may wait for it while it holds the interpreter's lock.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.support.s3", str(port), str(ahead.total_seconds())]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not _accepts(port):
            assert process.poll() is None
            assert time.monotonic() < deadline, "the S3 server does not start"
            time.sleep(0.1)
        server = Server(f"http://127.0.0.1:{port}")
        server.files.create_dir("lake")
        yield server
    finally:
        process.terminate()
        process.wait()


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def main(port: int, ahead: timedelta) -> None:
    from moto.core.utils import utcnow
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import run_simple

    for module in [each for each in sys.modules.values() if getattr(each, "utcnow", None) is utcnow]:
        vars(module)["utcnow"] = lambda: utcnow() + ahead
    run_simple("127.0.0.1", port, Front(DomainDispatcherApplication(create_backend_app)), threaded=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), timedelta(seconds=float(sys.argv[2])))
