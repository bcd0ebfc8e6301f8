"""Selects the transport of a message by its URL: HTTP (also to an OpenLineage endpoint), mail or a Kafka topic."""

from __future__ import annotations

from collections.abc import Mapping

from service.delivery import kafka, open_lineage
from service.delivery.guard import Guard
from service.delivery.http import Sender, SendLimits
from service.delivery.kafka import KafkaSender
from service.delivery.kafka_url import SCHEMES, parsed
from service.delivery.smtp import SmtpSender
from service.delivery.webhook import SendResult


def checked(url: str, guard: Guard) -> str:
    """Returns the URL unchanged. Raises UrlNotAllowedError or KafkaMissingError."""
    if not _is_kafka(url):
        guard.checked(url.removeprefix(open_lineage.SCHEME))
        return url
    target = parsed(url)
    for broker in target.brokers:
        guard.check_host(broker.host, is_encrypted=target.is_encrypted)
    kafka.library()
    return url


def _is_kafka(url: str) -> bool:
    return url.partition("://")[0] in SCHEMES


class Transport:
    """Sends messages. A transport belongs to the first event loop that uses it."""

    def __init__(self, http: Sender, kafka: KafkaSender, smtp: SmtpSender) -> None:
        self._http = http
        self._kafka = kafka
        self._smtp = smtp

    @property
    def limits(self) -> SendLimits:
        return self._http.limits

    async def send(
        self, url: str, key: str, body: bytes, headers: Mapping[str, str], own: Mapping[str, str]
    ) -> SendResult:
        """Sends one message. `own` are the headers that the webhook's owner added. Raises nothing but cancellation."""
        if _is_kafka(url):
            return await self._kafka.produce(url, key, body, headers, own)
        if url.startswith("smtp://"):
            return await self._smtp.send(url, body, own)
        return await self._http.post(url.removeprefix(open_lineage.SCHEME), body, headers, own)

    async def close(self) -> None:
        await self._http.close()
        await self._kafka.close()
        await self._smtp.close()
