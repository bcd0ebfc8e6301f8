"""Takes the client's address and scheme from proxies that are trusted, and from nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send


class TrustedProxies:
    """Applies `X-Forwarded-For` and `X-Forwarded-Proto` of requests from `networks`, and marks these requests, whose
    Host is believed too: `service.api.dependencies.url_of_service`. The headers of all others are ignored."""

    def __init__(self, app: ASGIApp, networks: Sequence[str]) -> None:
        self._app = app
        self._behind = ProxyHeadersMiddleware(app, trusted_hosts=list(networks))  # type: ignore[arg-type]  # uvicorn's own ASGI types

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")
        if client and client[0] in self._behind.trusted_hosts:
            scope.setdefault("state", {})["is_proxied"] = True
            await self._behind(scope, receive, send)  # type: ignore[arg-type]
        else:
            await self._app(scope, receive, send)
