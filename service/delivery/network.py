"""Network backend that connects only to addresses that the guard allows.

A name is resolved once, all of its addresses are checked, and the connection goes to a checked address. A second
look-up is not made, because it could return another address (DNS rebinding). TLS still verifies the name, and the
header `Host` still has it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import select
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpcore

from service.delivery.guard import Guard

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

_RESOLVING_AT_ONCE = 32


class AddressRefusedError(httpcore.ConnectError):
    """The guard refuses this connection."""


class GuardedNetwork(httpcore.AsyncNetworkBackend):
    """The backend. `resolve` returns the addresses of a host and a port, as text."""

    def __init__(self, guard: Guard, resolve: Resolve | None = None) -> None:
        self._guard = guard
        self._resolve = resolve or Resolver()
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                addresses = await self.checked(host, port)
                return _Stream(await self._first(addresses, port, local_address, socket_options))
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"no connection within {timeout:g} s") from error

    async def checked(self, host: str, port: int) -> list[str]:
        """Returns the addresses of a host. Raises AddressRefusedError, and ConnectError when there is none."""
        try:
            found = list(await self._resolve(host, port))
        except OSError as error:
            raise httpcore.ConnectError(f"the name {host} cannot be resolved: {error.strerror or error}") from error
        if not found:
            raise httpcore.ConnectError(f"the name {host} has no address")
        for text in found:
            if not self._guard.trusts(host) and self._guard.refuses(ipaddress.ip_address(text)):
                raise AddressRefusedError(f"{host} resolves to {text}, which no webhook may reach")
        return found

    async def _first(
        self, addresses: Sequence[str], port: int, local_address: str | None, options: Iterable[Any] | None
    ) -> httpcore.AsyncNetworkStream:
        for text in addresses[:-1]:
            try:
                return await self._inner.connect_tcp(text, port, None, local_address, options)
            except httpcore.ConnectError:
                continue
        return await self._inner.connect_tcp(addresses[-1], port, None, local_address, options)


class _Stream(httpcore.AsyncNetworkStream):
    """A stream that checks cheaply whether the other side has closed the connection. The check comes before each
    request."""

    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner
        self._closes = select.poll()
        self._closes.register(inner.get_extra_info("socket"), select.POLLIN)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._inner.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        return _Stream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":
            return bool(self._closes.poll(0))
        return self._inner.get_extra_info(info)


class Resolver:
    """The system's resolver in separate threads, so that look-ups without an answer block nothing else."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_RESOLVING_AT_ONCE, thread_name_prefix="resolver")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _resolve, host, port)
        return list(dict.fromkeys(found))


def _resolve(host: str, port: int) -> list[str]:
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
