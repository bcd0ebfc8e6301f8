"""A TCP proxy before a local server. Tests can close the proxy, so that the server is unreachable but keeps its
state."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class TcpGate:
    def __init__(self, target: int) -> None:
        self._target = target
        self._guard = threading.Lock()
        self._open: set[socket.socket] = set()
        self._lost: bytes | None = None
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listening.getsockname()[1]
        self._start()

    @contextmanager
    def shut(self) -> Iterator[None]:
        """Ends all connections, and refuses new ones meanwhile."""
        self.end()
        try:
            yield
        finally:
            self._listening = socket.create_server(("127.0.0.1", self.port), backlog=128)
            self._start()

    @property
    def is_used(self) -> bool:
        """Returns whether a connection is open."""
        with self._guard:
            return bool(self._open)

    def lose_answer(self, to: bytes) -> None:
        """Ends the connection of the next request that contains these bytes at the moment when the server answers
        it."""
        with self._guard:
            self._lost = to

    def end(self) -> None:
        # `close` alone leaves a thread that waits in `accept` with a socket that still listens.
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        with self._guard:
            for each in self._open:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _start(self) -> None:
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            client.close()
            return
        with self._guard:
            self._open |= {client, server}
        loses = threading.Event()

        def asks(request: bytes) -> bool:
            with self._guard:
                if self._lost is not None and self._lost in request:
                    self._lost = None
                    loses.set()
            return True

        back = threading.Thread(target=_forward, args=(server, client, lambda _: not loses.is_set()), daemon=True)
        back.start()
        _forward(client, server, asks)
        back.join()
        with self._guard:
            self._open -= {client, server}
        client.close()
        server.close()


def _forward(one: socket.socket, other: socket.socket, passes: Callable[[bytes], bool]) -> None:
    with suppress(OSError):
        while (received := one.recv(65_536)) and passes(received):
            other.sendall(received)
    for each in (one, other):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
