"""The address of the service, who may call it, and how much callers may send."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from datetime import timedelta

from fastapi import Request

from service.access.token import Token


@dataclass(frozen=True)
class Exposure:
    """The part of the settings that calls see."""

    is_loopback: bool = True
    public_url: str | None = None
    callback_key: str | None = field(default=None, repr=False)
    # The token of the workers that this process starts: not in the database, so it ends with the process.
    local_worker: Token | None = None
    session_lifetime: timedelta = timedelta(hours=12)
    max_request_bytes: int = 8 * 1024 * 1024
    open_metrics: bool = False  # Whether anybody may scrape.
    event_source: str = "/groundskeeper"  # The `source` of the CloudEvents.

    def url_for(self, request: Request) -> str:
        """Returns the public URL of this service, without a trailing slash: the setting, or else that of the request.

        The caller chooses the Host that it sends. It counts only if it names this machine, or a trusted proxy passes it
        on; otherwise the address at which the request has arrived.
        """
        if self.public_url is not None:
            return self.public_url.rstrip("/")
        server = request.scope.get("server")
        is_known = getattr(request.state, "is_proxied", False) or is_loopback(request.url.hostname or "")
        if is_known or not server or server[1] is None:
            return str(request.base_url).rstrip("/")
        host = f"[{server[0]}]" if ":" in server[0] else server[0]
        return f"{request.url.scheme}://{host}:{server[1]}"


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
