"""The allow-list of Flink clusters: only hosts that the operator has configured may be called."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from service.model.errors import FlinkHostNotAllowedError

if TYPE_CHECKING:
    from collections.abc import Iterable

_PORTS = {"http": 80, "https": 443}


def check_allowed(rest_url: str, hosts: Iterable[str]) -> None:
    """Raises FlinkHostNotAllowedError unless `hosts` has the URL's host. Entries are names or addresses, with a port or
    for any port."""
    try:
        url = urlsplit(rest_url)
        host, port = (url.hostname or "").lower(), url.port or _PORTS.get(url.scheme)
    except ValueError as error:
        raise FlinkHostNotAllowedError(f"{rest_url} is not a valid URL: {error}.") from error
    named = f"[{host}]" if ":" in host else host
    if not host or not {host, named, f"{named}:{port}"} & {each.lower() for each in hosts}:
        raise FlinkHostNotAllowedError(f"{host or rest_url} (port {port}) is not in GROUNDSKEEPER_FLINK_HOSTS.")
