"""Addresses of servers in options and parameters, and the lists of hosts that an administrator allows."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Collection

METASTORE_PORT = 9083


def address(text: str, port: int) -> tuple[str, int]:
    """Returns host and port of `//host:port` or of a URI; `port` is the default port. Raises ValueError."""
    parts = urlsplit(text)
    if not parts.hostname:
        raise ValueError(f"'{text}' names no host")
    return parts.hostname, parts.port or port


def metastores(uris: str) -> list[tuple[str, int]]:
    """Returns host and port of each of the URIs of a Hive metastore, separated by commas. Raises ValueError."""
    return [address(each.strip(), METASTORE_PORT) for each in uris.split(",") if each.strip()]


def is_among(hosts: Collection[str], host: str, port: int) -> bool:
    """Returns whether the list has this host, with this port or for any port."""
    named = f"[{host}]" if ":" in host else host
    return bool({host, named, f"{named}:{port}"} & {each.lower() for each in hosts})
