"""Limits the connections to the service, in total and for each address. At a limit, decides which connection to
close."""

from __future__ import annotations

import ipaddress
import resource
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from uvicorn.server import ServerState

# Number of descriptors that are left for files, database connections, and pipes to readers and workers.
_OTHER_DESCRIPTORS = 256
_ENOUGH_DESCRIPTORS = 65_536


class Connection(Protocol):
    def abort(self) -> None: ...


class Admission(Enum):
    """The result of an admission. `ONLY_PROBES`: the connection is only for health checks, and other requests are
    refused."""

    YES = "yes"
    ONLY_PROBES = "only probes"
    NO = "no"


@dataclass(frozen=True)
class ConnectionLimits:
    """The largest numbers of connections: of `all` together, of one address, and of further ones for health checks. The
    times are limits in seconds: for a client to send a head, to send a body, and to read a part of an answer. Trusted
    proxies have no limit per address, because many clients share them."""

    all: int = 2000
    per_address: int = 500
    probes: int = 16
    head_seconds: float = 10.0
    body_seconds: float = 60.0
    read_seconds: float = 60.0
    trusted_proxies: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network] = ()


@dataclass
class _Client:
    """The connections of one address. `waiting` are those that wait for the client, the longest waiting first."""

    open: int = 0
    waiting: dict[Connection, None] = field(default_factory=dict)


class Connections:
    """The open connections. At a limit, one connection is closed: the one that has waited the longest for its client to
    send a head, a body, or the next request. A connection is not closed while the service works on its request. Only
    the event loop uses this class."""

    def __init__(self, limits: ConnectionLimits | None = None) -> None:
        self.limits = limits or ConnectionLimits()
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        spare = (_ENOUGH_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft) - _OTHER_DESCRIPTORS
        self._most = max(1, min(self.limits.all, spare - self.limits.probes))
        self._open: dict[Connection, str] = {}
        self._waiting: dict[Connection, None] = {}
        self._clients: defaultdict[str, _Client] = defaultdict(_Client)
        self._second = 0

    def renew_date(self, state: ServerState) -> None:
        """Renews the header `Date` of answers. uvicorn would do this each second, even if no request comes."""
        if (second := int(time.time())) != self._second:
            self._second = second
            others = [each for each in state.default_headers if each[0] != b"date"]
            state.default_headers = [(b"date", formatdate(second, usegmt=True).encode()), *others]

    def admit(self, connection: Connection, address: str) -> Admission:
        """Counts the connection, unless it is refused. The connection first waits for its client."""
        address = "" if self._is_proxy(address) else address
        client = self._clients[address]
        is_full = bool(address) and client.open >= self.limits.per_address and not self._shed(client.waiting)
        is_full = is_full or (len(self._open) >= self._most and not self._shed(self._waiting))
        if is_full and len(self._open) >= self._most + self.limits.probes:
            self._forget_if_gone(address)
            return Admission.NO
        self._open[connection] = address
        client = self._clients[address]
        client.open += 1
        self.wait(connection)
        return Admission.ONLY_PROBES if is_full else Admission.YES

    def wait(self, connection: Connection) -> None:
        """Records that the connection waits for its client from now on."""
        address = self._open.get(connection)
        if address is not None:
            for waiting in (self._waiting, self._clients[address].waiting):
                waiting.pop(connection, None)
                waiting[connection] = None

    def work(self, connection: Connection) -> None:
        """Records that the service works on a request of the connection."""
        address = self._open.get(connection)
        if address is not None:
            self._waiting.pop(connection, None)
            self._clients[address].waiting.pop(connection, None)

    def close(self, connection: Connection) -> None:
        self.work(connection)
        address = self._open.pop(connection, None)
        if address is not None:
            self._clients[address].open -= 1
            self._forget_if_gone(address)

    def _shed(self, waiting: dict[Connection, None]) -> bool:
        longest = next(iter(waiting), None)
        if longest is None:
            return False
        # The connection is no longer counted from now on, and not only when the event loop reports its end.
        self.close(longest)
        longest.abort()
        return True

    def _forget_if_gone(self, address: str) -> None:
        if not self._clients[address].open:
            del self._clients[address]

    def _is_proxy(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self.limits.trusted_proxies)


def use_all_descriptors() -> None:
    """Raises the limit of open files as far as the system allows. Many systems start processes with a limit of 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
