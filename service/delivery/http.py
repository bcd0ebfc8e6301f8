"""Sends messages over HTTP.

The module uses httpcore, the layer below httpx: a client of httpx would add cookies, redirects, decompression and
proxies from the environment, none of which a webhook may have.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, lru_cache

import httpcore
import httpx

from jobs.redaction import MASK
from service.delivery.guard import Guard
from service.delivery.network import GuardedNetwork, Resolve
from service.delivery.webhook import SendResult

EXCERPT_CHARACTERS = 1000
# The longest time to wait for the rest of a response after its status.
_EXCERPT_SECONDS = 2.0
_IDLE_SECONDS = 30.0
# The largest number of receivers with open connections.
_MOST_RECEIVERS = 256


@dataclass(frozen=True)
class SendLimits:
    """The limits of one message, in seconds."""

    connect: float = 5.0
    read: float = 10.0  # Wait for the next bytes.
    total: float = 15.0  # Time until the status.
    answer_bytes: int = 16 * 1024  # Bytes that are read of a response.

    @property
    def longest(self) -> float:
        """Longest duration of one message, in seconds."""
        return self.total + _EXCERPT_SECONDS


class Sender:
    """Sends over reused connections. A sender belongs to the first event loop that calls it."""

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
        # Open connections by receiver; the dispatcher already limits how many are open. httpcore's own pool is not
        # used, because it scans all of its connections for each request. The pool took 2.3 times the CPU time for one
        # receiver, and 21 times for 200 (`tests/benchmarks/connections.py`).
        self._idle: dict[str, list[httpcore.AsyncHTTPConnection]] = {}

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], own: Mapping[str, str]) -> SendResult:
        """Sends one message. `own` are the headers that the webhook's owner added; their values are masked in the
        excerpt.

        Raises nothing but cancellation: errors are results too. Redirects are results and not followed.
        """
        started = time.monotonic()
        try:
            async with asyncio.timeout(self.limits.total) as timeout:
                return await self._exchange(url, body, headers, own, started=started, timeout=timeout)
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
        *,
        started: float,
        timeout: asyncio.Timeout,
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
            # The time limit ends here, because the status is known, and an error in the rest of the response does not
            # change the result.
            timeout.reschedule(None)
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
        """Yields an open connection or a new one, and keeps it afterwards if it can be reused."""
        # The most recently used receiver comes last.
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
            # The connections before this one in the list have been idle for even longer.
            expired = [connection, *idle]
            idle.clear()
            await _close(expired)
        return None

    async def _beginning(self, response: httpcore.Response) -> bytes:
        """Returns the beginning of the body. If the rest is too long, slow or missing, the connection is not reused."""
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
    """Returns the URL for httpcore, and the header `Host`. Raises httpx.InvalidURL."""
    parsed = httpx.URL(url)
    target = httpcore.URL(
        scheme=parsed.raw_scheme, host=parsed.raw_host, port=parsed.port, target=parsed.raw_path or b"/"
    )
    return target, parsed.netloc


@cache
def trusted(more: str | None = None) -> ssl.SSLContext:
    """Returns a context with the public certificate authorities and those in the PEM file `more`. The context ignores
    the environment. All senders share one context, because reading the authorities takes 20 ms."""
    context = httpx.create_ssl_context(trust_env=False)
    if more:
        context.load_verify_locations(cafile=more)
    return context


async def _close(connections: Iterable[httpcore.AsyncHTTPConnection]) -> None:
    for connection in connections:
        await connection.aclose()


def _excerpt(answer: bytes, own: Mapping[str, str]) -> str:
    # NUL is removed, because databases do not accept it in text. Secrets are masked, because some receivers echo the
    # request with all headers.
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
    # Databases accept neither NUL nor half of a surrogate pair.
    return words.replace("\0", "").encode(errors="replace").decode()[:EXCERPT_CHARACTERS]
