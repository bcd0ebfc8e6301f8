"""Sends one message, and says what came of it.

Built on httpcore, the engine below httpx: a client would add cookies, redirects, decompression and proxies from the
environment, none of which a webhook may have.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import httpcore
import httpx

from service.model.secret import MASK
from service.model.webhook import Answer
from service.webhook.network import GuardedNetwork, Resolve

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from service.webhook.guard import Guard

EXCERPT_CHARACTERS = 1000
# Nobody waits longer for the rest of an answer whose status is known.
_EXCERPT_SECONDS = 2.0
_IDLE_SECONDS = 30.0
# To whom connections are kept open.
_MOST_RECEIVERS = 256


@dataclass(frozen=True)
class SendLimits:
    """Seconds to connect, to wait for the next bytes, and for all until the status is there; bytes of an answer that
    are read."""

    connect: float = 5.0
    read: float = 10.0
    total: float = 15.0
    answer_bytes: int = 16 * 1024

    @property
    def longest(self) -> float:
        """Seconds that one message may take in all."""
        return self.total + _EXCERPT_SECONDS


class Sender:
    """Keeps connections open and uses them again. Belongs to the event loop that it is first used in."""

    def __init__(
        self,
        guard: Guard,
        limits: SendLimits | None = None,
        *,
        user_agent: str = "groundskeeper",
        tls: ssl.SSLContext | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        self.limits = limits or SendLimits()
        self._user_agent = user_agent
        self._tls = tls or trusted()
        self._network = GuardedNetwork(guard, resolve)
        # One for each receiver: a pool looks through all of its connections for every request.
        self._pools: dict[str, httpcore.AsyncConnectionPool] = {}

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], own: Mapping[str, str]) -> Answer:
        """`own` are the headers that the webhook's owner added; what stands in them is kept out of the excerpt.

        Raises nothing but cancellation: what goes wrong is an answer too. Redirects are answers, and not followed.
        """
        started = time.monotonic()
        try:
            async with asyncio.timeout(self.limits.total) as patience:
                return await self._exchange(url, body, headers, own, started, patience)
        except TimeoutError:
            why = f"no answer within {self.limits.total:g} s"
        except (
            httpcore.NetworkError,
            httpcore.TimeoutException,
            httpcore.ProtocolError,
            httpx.InvalidURL,
            OSError,
        ) as error:
            why = _words(error)
        return Answer(time.monotonic() - started, error=why)

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.aclose()

    async def _exchange(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        own: Mapping[str, str],
        started: float,
        patience: asyncio.Timeout,
    ) -> Answer:
        target, host = _target(url)
        limits = self.limits
        seconds = {"connect": limits.connect, "read": limits.read, "write": limits.read, "pool": limits.total}
        async with (await self._pool(str(target.origin))).stream(
            "POST",
            target,
            headers=[*own.items(), ("Host", host), ("User-Agent", self._user_agent), *headers.items()],
            content=body,
            extensions={"timeout": seconds},
        ) as response:
            # The receiver has spoken: whatever happens to the rest of its answer does not change what it said.
            patience.reschedule(None)
            answered = time.monotonic() - started
            excerpt = _excerpt(await self._beginning(response), own)
            fields = {name.lower(): value for name, value in response.headers}
            return Answer(
                answered,
                status=response.status,
                retry_after=fields.get(b"retry-after", b"").decode("ascii", "replace")[:100] or None,
                excerpt=excerpt,
            )

    async def _pool(self, origin: str) -> httpcore.AsyncConnectionPool:
        # The one used last comes last.
        pool = self._pools.pop(origin, None) or httpcore.AsyncConnectionPool(
            ssl_context=self._tls,
            max_connections=None,
            keepalive_expiry=_IDLE_SECONDS,
            network_backend=self._network,
        )
        self._pools[origin] = pool
        if len(self._pools) > _MOST_RECEIVERS:
            await self._forget_one()
        return pool

    async def _forget_one(self) -> None:
        """The receiver that was not spoken to for longest, unless its connections are in use."""
        origin, pool = next(iter(self._pools.items()))
        if all(connection.is_idle() for connection in pool.connections):
            del self._pools[origin]
            await pool.aclose()

    async def _beginning(self, response: httpcore.Response) -> bytes:
        """Of an answer that is longer, slower or broken off: what came until then. Its connection is not used again."""
        read = b""
        try:
            async with asyncio.timeout(_EXCERPT_SECONDS):
                async for part in response.aiter_stream():
                    read += part
                    if len(read) >= self.limits.answer_bytes:
                        break
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, TimeoutError, OSError):
            pass
        return read


@lru_cache(maxsize=1024)
def _target(url: str) -> tuple[httpcore.URL, bytes]:
    """A URL for the engine, and the header `Host`. Raises httpx.InvalidURL."""
    parsed = httpx.URL(url)
    target = httpcore.URL(
        scheme=parsed.raw_scheme, host=parsed.raw_host, port=parsed.port, target=parsed.raw_path or b"/"
    )
    return target, parsed.netloc


def trusted(more: str | None = None) -> ssl.SSLContext:
    """The public certificate authorities, and those in the PEM file `more`. The environment has no say."""
    context = httpx.create_ssl_context(trust_env=False)
    if more:
        context.load_verify_locations(cafile=more)
    return context


def _excerpt(answer: bytes, own: Mapping[str, str]) -> str:
    # No database takes a NUL, and some receivers send back what they got, with all its headers.
    text = answer.decode("utf-8", "replace").replace("\0", "")
    for value in own.values():
        text = text.replace(value, MASK)
    return text[:EXCERPT_CHARACTERS]


def _words(error: Exception) -> str:
    known = {
        httpcore.ConnectTimeout: "no connection in time",
        httpcore.ReadTimeout: "no answer in time",
        httpcore.WriteTimeout: "the receiver does not read",
        httpcore.ReadError: "the connection broke",
        httpcore.WriteError: "the connection broke",
    }
    return str(error) or known.get(type(error), type(error).__name__)
