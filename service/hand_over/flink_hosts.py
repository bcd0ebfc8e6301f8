"""Which Flink clusters may be called: those that the operator names, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from service.model.errors import FlinkHostNotAllowedError

if TYPE_CHECKING:
    from collections.abc import Iterable

_PORTS = {"http": 80, "https": 443}


def check_allowed(rest_url: str, hosts: Iterable[str]) -> None:
    """`hosts` are names or addresses, with a port or for any port. Raises FlinkHostNotAllowedError."""
    try:
        url = urlsplit(rest_url)
        host, port = (url.hostname or "").lower(), url.port or _PORTS.get(url.scheme)
    except ValueError as error:
        raise FlinkHostNotAllowedError(f"{rest_url} is no URL of a host: {error}.") from error
    named = f"[{host}]" if ":" in host else host
    if not host or not {host, named, f"{named}:{port}"} & {each.lower() for each in hosts}:
        raise FlinkHostNotAllowedError(f"{host or rest_url} (port {port}) is not among GROUNDSKEEPER_FLINK_HOSTS.")
