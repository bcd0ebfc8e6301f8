"""A TCP proxy before the socket of a PostgreSQL server. The proxy can stop forwarding, like a network that has lost the
server's host without a reset: the proxy still accepts connections and acknowledges bytes, but nothing answers. The
proxy can also answer instead of the server."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class StallingProxy:
    """A proxy that holds back bytes during a stall, and forwards them afterwards. If `own_answer` is set, the proxy
    sends it instead of the next answer, and closes that connection."""

    own_answer: bytes | None = None

    def __init__(self, folder: Path) -> None:
        self._target = str(folder / ".s.PGSQL.5432")
        self._forwards = threading.Event()
        self._forwards.set()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def stall(self) -> None:
        self._forwards.clear()

    def go_on(self) -> None:
        self._forwards.set()

    def __enter__(self) -> StallingProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        self._forwards.set()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._forwards.wait()
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self._target)
        except OSError:
            client.close()
            return
        for one, other in ((client, server), (server, client)):
            threading.Thread(target=self._forward, args=(one, other), daemon=True).start()

    def _forward(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while received := one.recv(65_536):
                self._forwards.wait()
                if one.family == socket.AF_UNIX and self.own_answer:
                    answer, self.own_answer = self.own_answer, None
                    other.sendall(answer)
                    break
                other.sendall(received)
        self._forwards.wait()
        for each in (one, other):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
