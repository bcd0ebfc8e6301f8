"""An event loop that checks and pins the addresses of connections, for libraries that resolve names by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Such a function takes host, port and whether TLS is used, and returns the addresses to connect to. If it refuses
    # the connection, it raises ConnectionError.
    Allow = Callable[[str, int, bool], Awaitable[Sequence[str]]]

_allow: ContextVar[Allow | None] = ContextVar("allow", default=None)


@contextmanager
def guarded_by(allow: Allow) -> Iterator[None]:
    """Lets `allow` decide about the connections of this block, and of all tasks that are created in it.

    Raises RuntimeError outside of a GuardedEventLoop.
    """
    if not isinstance(asyncio.get_running_loop(), GuardedEventLoop):
        raise RuntimeError("Connections can be guarded only in a GuardedEventLoop")
    token = _allow.set(allow)
    try:
        yield
    finally:
        _allow.reset(token)


class GuardedEventLoop(asyncio.SelectorEventLoop):
    """Connects to the very addresses that were checked. A second look-up is not made, because it could return other
    addresses."""

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any) -> Any:
        allow = _allow.get()
        if allow is None or host is None:
            return await super().create_connection(protocol_factory, host, port, **options)
        is_encrypted = bool(options.get("ssl"))
        addresses = await allow(host, port, is_encrypted)
        if is_encrypted:
            options.setdefault("server_hostname", host)
        for address in addresses[:-1]:
            try:
                return await super().create_connection(protocol_factory, address, port, **options)
            except OSError:
                continue
        return await super().create_connection(protocol_factory, addresses[-1], port, **options)
