"""Takes the client's address and scheme from headers, but only from those of trusted proxies."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware


class TrustedProxies:
    """Applies `X-Forwarded-For` and `X-Forwarded-Proto` of requests from `networks`. Marks these requests, because
    their `Host` is trusted too (`service.api.dependencies.Exposure.url_for`). Such headers of other requests are
    ignored."""

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
