"""Writes messages to Kafka topics.

The client library is optional (the extra `kafka`) and imported when the first topic is used.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import httpcore

from service.delivery.errors import HeaderNotAllowedError, KafkaMissingError, UrlNotAllowedError
from service.delivery.guard import Guard
from service.delivery.guarded_loop import guarded_by
from service.delivery.http import EXCERPT_CHARACTERS, SendLimits, trusted
from service.delivery.kafka_url import KafkaUrl, parsed
from service.delivery.network import AddressRefusedError, GuardedNetwork, Resolve
from service.delivery.webhook import SendResult
from service.model.errors import GroundskeeperError

# A producer ends after this time without a message, which is longer than any message can take.
_IDLE_SECONDS = 600.0
_CLOSE_SECONDS = 2.0


def library() -> ModuleType:
    """Imports the client library. Raises KafkaMissingError."""
    try:
        import aiokafka
    except ImportError as error:
        raise KafkaMissingError from error
    module: ModuleType = aiokafka
    return module


class _Brokers:
    """Decides about each connection of one producer. Checking the URL alone is not enough, because brokers may announce
    other brokers at any time."""

    def __init__(self, guard: Guard, network: GuardedNetwork) -> None:
        self._guard = guard
        self._network = network
        self._is_closed = False

    async def __call__(self, host: str, port: int, is_encrypted: bool) -> Sequence[str]:
        if self._is_closed:
            raise ConnectionRefusedError("The producer is closed.")
        try:
            return await self.checked(host, port, is_encrypted)
        except (UrlNotAllowedError, httpcore.ConnectError) as error:
            # The library treats the broker as unavailable after this error.
            raise ConnectionRefusedError(str(error)) from error

    async def checked(self, host: str, port: int, is_encrypted: bool) -> Sequence[str]:
        """Returns the addresses of a broker. Raises UrlNotAllowedError, and ConnectError when there is none."""
        self._guard.check_host(host, is_encrypted=is_encrypted)
        try:
            return await self._network.checked(host, port)
        except AddressRefusedError as error:
            raise UrlNotAllowedError(f"Broker {error}.") from error

    def close(self) -> None:
        """Refuses all connections from now on."""
        self._is_closed = True


@dataclass
class _Slot:
    """The producer of one topic. After an error the producer is moved to `ending`, and no new producer starts until the
    old one has ended.

    The timer `idle` ends a producer that was not used for long, for example because its webhook was removed. Such a
    producer would go on refreshing its metadata for ever.
    """

    brokers: _Brokers
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
            self.producer, self.ending = None, asyncio.create_task(_end(producer, self.brokers, patience))


class KafkaSender:
    """Sends through reused producers. A sender belongs to the first event loop that uses it, a `GuardedEventLoop`."""

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
        # The library waits up to three times: for the topic's metadata, in its buffer, for the acknowledgement.
        self._step_seconds = min(self._limits.connect, self._limits.total / 3)
        self._client_id = client_id
        self._tls = tls or trusted()
        self._network = GuardedNetwork(guard, resolve)
        self._slots: dict[tuple[str, frozenset[tuple[str, str]]], _Slot] = {}

    async def produce(
        self, url: str, key: str, body: bytes, headers: Mapping[str, str], own: Mapping[str, str]
    ) -> SendResult:
        """Sends one message. Kafka has accepted the message when all in-sync replicas have it; the excerpt then names
        partition and offset. `own` are the headers that the webhook's owner added.

        Raises nothing but cancellation: errors are results too.
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
            # All errors are caught, not only those of the library, because a broker that misbehaves must not end the
            # service.
            why = str(error) or type(error).__name__
        return SendResult(time.monotonic() - started, error=why.replace("\0", "")[:EXCERPT_CHARACTERS])

    async def close(self) -> None:
        for slot in self._slots.values():
            slot.end(slot.producer, _CLOSE_SECONDS)
        if ending := [slot.ending for slot in self._slots.values() if slot.ending is not None]:
            await asyncio.wait(ending, timeout=_CLOSE_SECONDS)

    async def _acknowledged(
        self, url: str, key: str, body: bytes, headers: Mapping[str, str], own: Mapping[str, str]
    ) -> str:
        target, credentials = parsed(url), login(own)
        slot = self._slots.setdefault((url, frozenset(credentials.items())), _Slot(self._brokers()))
        slot.keep()
        producer = await self._producer(slot, target, credentials)
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
            # The producer may still hold the message, and would send it again after the next try or after later
            # messages.
            slot.end(producer, 2 * self._step_seconds)
            raise
        return f"partition {record.partition}, offset {record.offset}"

    async def _producer(self, slot: _Slot, target: KafkaUrl, credentials: Mapping[str, str]) -> Any:
        async with slot.lock:
            if slot.ending is not None:
                await asyncio.shield(slot.ending)
                slot.ending = None
            if slot.producer is None:
                slot.brokers = self._brokers()
                with guarded_by(slot.brokers):
                    slot.producer = await self._started(slot.brokers, target, credentials)
            return slot.producer

    def _brokers(self) -> _Brokers:
        return _Brokers(self._guard, self._network)

    async def _started(self, brokers: _Brokers, target: KafkaUrl, credentials: Mapping[str, str]) -> Any:
        await _check(brokers, target, ((broker.host, broker.port) for broker in target.brokers))
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
        try:
            await _bootstrapped(producer)
            announced = producer.client.cluster.brokers()
            await _check(brokers, target, ((broker.host, broker.port) for broker in announced))
        except BaseException:
            await _end(producer, brokers, _CLOSE_SECONDS)
            raise
        return producer


async def _check(brokers: _Brokers, target: KafkaUrl, places: Iterable[tuple[str, int]]) -> None:
    """Checks in advance whether the brokers may be reached, for a clear error. Raises UrlNotAllowedError.

    A name without an address passes the check, because there is nothing to connect to.
    """
    for host, port in places:
        with suppress(httpcore.ConnectError):
            await brokers.checked(host, port, target.is_encrypted)


async def _bootstrapped(producer: Any) -> None:
    try:
        await producer.start()
    except library().errors.KafkaConnectionError as error:
        # The library does not pass the reason on; it only logs it.
        raise ConnectionError(
            "none of the brokers is reachable and accepts the connection; the service's log has the reason"
        ) from error


async def _end(producer: Any, brokers: _Brokers, patience: float) -> None:
    """Lets the producer send its buffered messages for `patience` seconds, and then closes its connections.

    Without connections the messages expire, and the producer ends in the background.
    """
    stopping = asyncio.ensure_future(producer.stop())
    _stopping.add(stopping)
    stopping.add_done_callback(_stopped)
    if not (await asyncio.wait([stopping], timeout=patience))[0]:
        brokers.close()
        with suppress(Exception):
            await producer.client.close()


# The task is kept here, because asyncio itself keeps only weak references to tasks.
_stopping: set[asyncio.Future[None]] = set()


def _stopped(stopping: asyncio.Future[None]) -> None:
    _stopping.discard(stopping)
    if not stopping.cancelled():
        # The message already has its result. The exception is fetched only so that asyncio does not report it as
        # unhandled.
        stopping.exception()


def login(headers: Mapping[str, str]) -> dict[str, str]:
    """Returns the client's options for the user and the password in the header `Authorization: Basic ...`, as for HTTP
    receivers; none without the header.

    Raises HeaderNotAllowedError; its detail contains no header value.
    """
    value = next((value for name, value in headers.items() if name.lower() == "authorization"), None)
    if value is None:
        return {}
    scheme, _, encoded = value.partition(" ")
    try:
        user, colon, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        user, colon, password = "", "", ""
    if scheme.lower() != "basic" or not colon:
        raise HeaderNotAllowedError("For Kafka, Authorization is `Basic` and user:password in base64 (RFC 7617).")
    return {"sasl_mechanism": "PLAIN", "sasl_plain_username": user, "sasl_plain_password": password}
