"""Sends one message, and says what came of it.

Built on httpcore, the engine below httpx: a client would add cookies, redirects, decompression and proxies from the
environment, none of which a webhook may have.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import httpcore
import httpx

from service.delivery.network import GuardedNetwork, Resolve
from service.delivery.webhook import SendResult
from service.model.secret import MASK

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Iterable, Mapping

    from service.delivery.guard import Guard

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
        # Open connections by receiver. Not the engine's own pool: that looks through all of its connections for every
        # request, and how many may be open is decided elsewhere.
        self._idle: dict[str, list[httpcore.AsyncHTTPConnection]] = {}

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], own: Mapping[str, str]) -> SendResult:
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
        return SendResult(time.monotonic() - started, error=why)

    async def close(self) -> None:
        for idle in self._idle.values():
            await _close(idle)

    async def _exchange(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        own: Mapping[str, str],
        started: float,
        patience: asyncio.Timeout,
    ) -> SendResult:
        target, host = _target(url)
        limits = self.limits
        seconds = {"connect": limits.connect, "read": limits.read, "write": limits.read, "pool": limits.total}
        async with (
            self._connection(target.origin) as connection,
            connection.stream(
                "POST",
                target,
                headers=[*own.items(), ("Host", host), ("User-Agent", self._user_agent), *headers.items()],
                content=body,
                extensions={"timeout": seconds},
            ) as response,
        ):
            # The receiver has spoken: whatever happens to the rest of its answer does not change what it said.
            patience.reschedule(None)
            answered = time.monotonic() - started
            excerpt = _excerpt(await self._beginning(response), own)
            fields = {name.lower(): value for name, value in response.headers}
            return SendResult(
                answered,
                status=response.status,
                retry_after=fields.get(b"retry-after", b"").decode("ascii", "replace")[:100] or None,
                excerpt=excerpt,
            )

    @asynccontextmanager
    async def _connection(self, origin: httpcore.Origin) -> AsyncIterator[httpcore.AsyncHTTPConnection]:
        """One that is open already, or a new one; kept afterwards if it can be used again."""
        # The receiver spoken to last comes last.
        key = str(origin)
        idle = self._idle[key] = self._idle.pop(key, [])
        connection = await self._reusable(idle) or httpcore.AsyncHTTPConnection(
            origin, ssl_context=self._tls, keepalive_expiry=_IDLE_SECONDS, network_backend=self._network
        )
        try:
            yield connection
        finally:
            if connection.is_available() and self._idle.get(key) is idle:
                idle.append(connection)
            else:
                await connection.aclose()
        if len(self._idle) > _MOST_RECEIVERS:
            await _close(self._idle.pop(next(iter(self._idle))))

    async def _reusable(self, idle: list[httpcore.AsyncHTTPConnection]) -> httpcore.AsyncHTTPConnection | None:
        while idle:
            connection = idle.pop()
            if not connection.has_expired():
                return connection
            # Those below were idle for even longer.
            expired = [connection, *idle]
            idle.clear()
            await _close(expired)
        return None

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


async def _close(connections: Iterable[httpcore.AsyncHTTPConnection]) -> None:
    for connection in connections:
        await connection.aclose()


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
    words = str(error) or known.get(type(error), type(error).__name__)
    return words.replace("\0", "")[:EXCERPT_CHARACTERS]
