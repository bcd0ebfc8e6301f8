"""Writes one message to a Kafka topic, and says what came of it.

The client library is optional (the extra `kafka`), and imported when the first topic is named.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpcore

from service.delivery.http import EXCERPT_CHARACTERS, SendLimits, trusted
from service.delivery.kafka_url import KafkaUrl, parsed
from service.delivery.network import AddressRefusedError, GuardedNetwork
from service.delivery.sasl import login
from service.delivery.webhook import SendResult
from service.model.errors import GroundskeeperError, KafkaMissingError, UrlNotAllowedError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping
    from types import ModuleType

    from service.delivery.guard import Guard
    from service.delivery.network import Resolve

# Longer than any message takes.
_IDLE_SECONDS = 600.0
_CLOSE_SECONDS = 2.0


def library() -> ModuleType:
    """Raises KafkaMissingError."""
    try:
        import aiokafka
    except ImportError as error:
        raise KafkaMissingError from error
    module: ModuleType = aiokafka
    return module


@dataclass
class _Producer:
    """The way to a topic. A producer with which anything went wrong is `ending`, and none is used until it has ended.

    `idle` ends one that nobody has used for long, as when its webhook was removed: it would ask its brokers for news
    for ever.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    producer: Any = None
    ending: asyncio.Task[None] | None = None
    idle: asyncio.TimerHandle | None = None

    def keep(self) -> None:
        if self.idle is not None:
            self.idle.cancel()
        self.idle = asyncio.get_running_loop().call_later(
            _IDLE_SECONDS, lambda: self.end(self.producer, _CLOSE_SECONDS)
        )

    def end(self, producer: Any, patience: float) -> None:
        if producer is not None and self.producer is producer:
            self.producer, self.ending = None, asyncio.create_task(_end(producer, patience))


class KafkaSender:
    """Keeps connections open and uses them again. Belongs to the event loop that it is first used in."""

    def __init__(
        self,
        guard: Guard,
        limits: SendLimits | None = None,
        *,
        client_id: str = "groundskeeper",
        tls: ssl.SSLContext | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        self._guard = guard
        self._limits = limits or SendLimits()
        # The library waits so long up to three times: for the topic's place, in its buffer, for the acknowledgement.
        self._step_seconds = min(self._limits.connect, self._limits.total / 3)
        self._client_id = client_id
        self._tls = tls or trusted()
        self._network = GuardedNetwork(guard, resolve)
        self._lines: dict[tuple[str, frozenset[tuple[str, str]]], _Producer] = {}

    async def produce(
        self, url: str, key: str, body: bytes, headers: Mapping[str, str], own: Mapping[str, str]
    ) -> SendResult:
        """Accepted when all replicas in sync have it; the excerpt then says where. `own` are the headers that the
        webhook's owner added.

        Raises nothing but cancellation: what goes wrong is an answer too.
        """
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._limits.total):
                excerpt = await self._acknowledged(url, key, body, headers, own)
                return SendResult(time.monotonic() - started, excerpt=excerpt, is_acknowledged=True)
        except TimeoutError:
            why = f"not acknowledged within {self._limits.total:g} s"
        except GroundskeeperError as error:
            why = error.detail or error.title
        except Exception as error:
            # Not only the library's own errors: a broker that talks nonsense must not end the service.
            why = str(error) or type(error).__name__
        return SendResult(time.monotonic() - started, error=why.replace("\0", "")[:EXCERPT_CHARACTERS])

    async def close(self) -> None:
        for line in self._lines.values():
            line.end(line.producer, _CLOSE_SECONDS)
        if ending := [line.ending for line in self._lines.values() if line.ending is not None]:
            await asyncio.wait(ending, timeout=_CLOSE_SECONDS)

    async def _acknowledged(
        self, url: str, key: str, body: bytes, headers: Mapping[str, str], own: Mapping[str, str]
    ) -> str:
        target, credentials = parsed(url), login(own)
        line = self._lines.setdefault((url, frozenset(credentials.items())), _Producer())
        line.keep()
        producer = await self._producer(line, target, credentials)
        try:
            record = await producer.send_and_wait(
                target.topic,
                value=body,
                key=key.encode(),
                headers=[
                    *((name, value.encode()) for name, value in own.items() if name.lower() != "authorization"),
                    *((name.lower(), value.encode()) for name, value in headers.items()),
                ],
            )
        except BaseException:
            # It may hold the message still, and would send it later on: after the next try, and what follows that.
            line.end(producer, 2 * self._step_seconds)
            raise
        return f"partition {record.partition}, offset {record.offset}"

    async def _producer(self, line: _Producer, target: KafkaUrl, credentials: Mapping[str, str]) -> Any:
        async with line.lock:
            if line.ending is not None:
                await asyncio.shield(line.ending)
                line.ending = None
            if line.producer is None:
                line.producer = await self._started(target, credentials)
            return line.producer

    async def _started(self, target: KafkaUrl, credentials: Mapping[str, str]) -> Any:
        for broker in target.brokers:
            await self._check(broker.host, broker.port, target)
        transport = "SSL" if target.is_encrypted else "PLAINTEXT"
        producer = library().AIOKafkaProducer(
            bootstrap_servers=[str(broker) for broker in target.brokers],
            client_id=self._client_id,
            acks="all",
            request_timeout_ms=round(self._step_seconds * 1000),
            security_protocol=f"SASL_{transport}" if credentials else transport,
            ssl_context=self._tls if target.is_encrypted else None,
            **credentials,
        )
        self._keep_guarded(producer.client, target)
        try:
            await _bootstrapped(producer)
            for broker in producer.client.cluster.brokers():
                await self._check(broker.host, broker.port, target)
        except BaseException:
            await _end(producer, _CLOSE_SECONDS)
            raise
        return producer

    def _keep_guarded(self, client: Any, target: KafkaUrl) -> None:
        """Brokers say where the others are, at any time anew, so each is checked before the first connection to it.
        The library has no public place for that; its version is pinned, and a test holds this to it."""
        connection = client._get_conn
        allowed: set[tuple[str, int]] = set()

        async def checked(node_id: Any, **options: Any) -> Any:
            broker = client.cluster.broker_metadata(node_id)
            try:
                if broker is not None and (broker.host, broker.port) not in allowed:
                    await self._check(broker.host, broker.port, target)
                    allowed.add((broker.host, broker.port))
            except UrlNotAllowedError:
                return None  # As for a broker that is away.
            return await connection(node_id, **options)

        client._get_conn = checked

    async def _check(self, host: str, port: int, target: KafkaUrl) -> None:
        """Raises UrlNotAllowedError. A name that is not known passes; there is nothing to connect to.

        The library looks the name up again. Who answers otherwise by then gains nothing: without TLS only trusted hosts
        pass, and with TLS the certificate has to be that of the name.
        """
        self._guard.check_host(host, is_encrypted=target.is_encrypted)
        try:
            await self._network.checked(host, port)
        except AddressRefusedError as error:
            raise UrlNotAllowedError(f"Broker {error}.") from error
        except httpcore.ConnectError:
            pass


async def _bootstrapped(producer: Any) -> None:
    try:
        await producer.start()
    except library().errors.KafkaConnectionError as error:
        # The library does not hand on why, it only logs it.
        raise ConnectionError(
            "none of the brokers can be reached, or lets us in; the service's log says why"
        ) from error


async def _end(producer: Any, patience: float) -> None:
    """Sends what it holds for the others, for so many seconds; then it sends nothing any more."""
    with suppress(Exception):
        try:
            async with asyncio.timeout(patience):
                await producer.stop()
        except TimeoutError:
            await producer._sender.close()
            await producer.client.close()
