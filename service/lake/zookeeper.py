"""A client of ZooKeeper that can only read: the children of a node, and when a child was created.

The messages are those of ZooKeeper's own protocol (`org.apache.zookeeper.proto`, 3.4 and later): each is a length and a
record of big-endian numbers and length-prefixed bytes.
"""

from __future__ import annotations

import itertools
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

_SESSION_MILLISECONDS = 10_000
_EXISTS, _GET_CHILDREN, _CLOSE = 3, 8, -11
_NO_NODE, _NO_AUTH, _AUTH_FAILED = -101, -102, -115
_MOST_BYTES = 1024 * 1024


class ZookeeperError(Exception):
    """A ZooKeeper server refuses reads, or another kind of server answers."""


@dataclass(frozen=True)
class Node:
    """A node. `created` is in seconds since the epoch. `session` is the session that created the node; ZooKeeper
    removes the node when this session ends. A permanent node has 0."""

    created: float
    session: int


class Session:
    """A session with one server."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline
        self._numbers = itertools.count(1)

    def children(self, path: str) -> list[str] | None:
        """Returns the names below a node, None if there is no such node."""
        reply = self._call(_GET_CHILDREN, _text(path) + b"\0")
        if reply is None:
            return None
        (count,) = struct.unpack_from(">i", reply)
        names, at = [], 4
        for _ in range(count):
            (length,) = struct.unpack_from(">i", reply, at)
            names.append(reply[at + 4 : at + 4 + length].decode(errors="replace"))
            at += 4 + length
        return names

    def node(self, path: str) -> Node | None:
        reply = self._call(_EXISTS, _text(path) + b"\0")
        if reply is None:
            return None
        # Fields of `Stat`: czxid, mzxid, ctime, mtime, three versions, ephemeralOwner.
        created, session = struct.unpack_from(">16xq20xQ", reply)
        return Node(created / 1000, session)

    def _call(self, kind: int, body: bytes) -> bytes | None:
        number = next(self._numbers)
        self._send(struct.pack(">ii", number, kind) + body)
        while True:
            reply = self._receive()
            answered, _, error = struct.unpack_from(">iqi", reply)
            if answered == number:
                break
        if error == _NO_NODE:
            return None
        if error in (_NO_AUTH, _AUTH_FAILED):
            raise ZookeeperError("it lets only logged-in clients read")
        if error:
            raise ZookeeperError(f"it answers with error {error}")
        return reply[16:]

    def _begin(self) -> None:
        self._send(struct.pack(">iqiqi16sb", 0, 0, _SESSION_MILLISECONDS, 0, 16, b"", 0))
        _, timeout = struct.unpack_from(">ii", self._receive())
        if timeout <= 0:
            raise ZookeeperError("it refuses the session")

    def _end(self) -> None:
        self._send(struct.pack(">ii", next(self._numbers), _CLOSE))

    def _send(self, message: bytes) -> None:
        self._wait_at_most()
        self._connection.sendall(struct.pack(">i", len(message)) + message)

    def _receive(self) -> bytes:
        (length,) = struct.unpack(">i", self._exactly(4))
        if not 0 < length <= _MOST_BYTES:
            raise ZookeeperError("the server is not a ZooKeeper server")
        return self._exactly(length)

    def _exactly(self, length: int) -> bytes:
        found = b""
        while len(found) < length:
            self._wait_at_most()
            if not (more := self._connection.recv(length - len(found))):
                raise ConnectionResetError("it closed the connection")
            found += more
        return found

    def _wait_at_most(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)


@contextmanager
def connected(servers: Sequence[tuple[str, int]], seconds: float) -> Iterator[Session]:
    """Opens a session with the first of the servers that answers. All calls together may take `seconds`.

    Raises OSError if no server answers, and ZookeeperError. Calls within the block raise the same errors.
    """
    deadline = time.monotonic() + seconds
    error: OSError | None = None
    for number, (host, port) in enumerate(servers):
        left = deadline - time.monotonic()
        if left <= 0:
            break
        try:
            # The remaining time is shared equally among the remaining servers.
            share = left / (len(servers) - number)
            connection = socket.create_connection((host, port), share)
        except OSError as failure:
            error = failure
            continue
        with connection:
            session = Session(connection, time.monotonic() + share)
            try:
                session._begin()
            except OSError as failure:
                error = failure
                continue
            session._deadline = deadline
            try:
                yield session
            except struct.error as malformed:
                raise ZookeeperError("the server is not a ZooKeeper server") from malformed
            session._end()
            return
    raise error or TimeoutError()


def _text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack(">i", len(encoded)) + encoded
