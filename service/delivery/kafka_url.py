"""URLs of Kafka topics: `kafka://broker-1:9092,broker-2:9092/topic`, or with TLS `kafka+ssl://...`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from service.delivery.errors import UrlNotAllowedError

SCHEMES = {"kafka": False, "kafka+ssl": True}
"""The schemes, and whether each is encrypted."""

_URL = re.compile(r"(?P<scheme>[a-z+]+)://(?P<brokers>[^/?#]+)/(?P<topic>[^/?#]+)")
_BROKER = re.compile(r"(?P<host>[0-9A-Za-z._-]{1,253}|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{1,5}))?")
# The names of topics that brokers accept.
_TOPIC = re.compile(r"(?!\.{1,2}$)[0-9A-Za-z._-]{1,249}")
_PORT = 9092
_MOST_CHARACTERS = 2048


@dataclass(frozen=True)
class Broker:
    """A broker. `host` is a name or an address, without brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class KafkaUrl:
    """A parsed URL. `brokers` are the bootstrap servers, which announce all other brokers."""

    brokers: tuple[Broker, ...]
    topic: str
    is_encrypted: bool


def parsed(url: str) -> KafkaUrl:
    """Raises UrlNotAllowedError."""
    if "@" in url:
        raise UrlNotAllowedError("The URL contains a user or a password.", hint="Send credentials in `headers`.")
    match = _URL.fullmatch(url)
    if match is None or match["scheme"] not in SCHEMES or len(url) > _MOST_CHARACTERS:
        raise UrlNotAllowedError(
            "The URL is not that of a Kafka topic.", hint="An example is kafka+ssl://broker-1:9093,broker-2:9093/topic."
        )
    if not _TOPIC.fullmatch(match["topic"]):
        raise UrlNotAllowedError(f"'{match['topic']}' is not a valid name of a topic.")
    brokers = tuple(_broker(part) for part in match["brokers"].split(","))
    return KafkaUrl(brokers, match["topic"], SCHEMES[match["scheme"]])


def _broker(text: str) -> Broker:
    match = _BROKER.fullmatch(text)
    port = int(match["port"] or _PORT) if match else 0
    if match is None or not 0 < port < 65_536:
        raise UrlNotAllowedError(f"'{text}' is not a broker, which is a host and a port.")
    return Broker(match["host"].strip("[]"), port)
