"""The allow-list of Flink clusters: only hosts that the operator has configured may be called."""

from __future__ import annotations

from collections.abc import Collection

from jobs.format.server_addresses import is_among
from service.delivery.errors import UrlNotAllowedError
from service.delivery.guard import parsed_url
from service.model.table_errors import FlinkHostNotAllowedError

_PORTS = {"http": 80, "https": 443}


def check_allowed(rest_url: str, hosts: Collection[str]) -> None:
    """Raises FlinkHostNotAllowedError unless `hosts` has the URL's host. Entries are names or addresses. An entry
    without a port allows each port."""
    try:
        url = parsed_url(rest_url)
    except UrlNotAllowedError as error:
        raise FlinkHostNotAllowedError(f"No request can be sent to {rest_url}. {error.detail}") from error
    host, port = url.host.lower(), url.port or _PORTS.get(url.scheme, 0)
    if not is_among(hosts, host, port):
        raise FlinkHostNotAllowedError(f"{host} (port {port}) is not in GROUNDSKEEPER_FLINK_HOSTS.")
