"""The documentation of the API at /docs: Swagger UI, in which users can try calls in the browser."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

from fastapi import FastAPI, Request
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import HTMLResponse

_FILES = "/static-offline-docs"  # The path at which `FastAPIOffline` serves the page's files.
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def install(app: FastAPI) -> None:
    """Adds the page, which needs no token because it contains no data of tables."""

    async def page(request: Request) -> HTMLResponse:
        root = request.scope.get("root_path", "")
        rendered = bytes(
            get_swagger_ui_html(
                openapi_url=f"{root}{app.openapi_url}",
                title=app.title,
                swagger_js_url=f"{root}{_FILES}/swagger-ui-bundle.js",
                swagger_css_url=f"{root}{_FILES}/swagger-ui.css",
                swagger_favicon_url=f"{root}{_FILES}/favicon.png",
            ).body
        ).decode()
        return HTMLResponse(rendered, headers=_headers(rendered))

    for path in ("/docs", "/docs/"):
        app.add_api_route(path, page, methods=["GET", "HEAD"], include_in_schema=False)


def _headers(page: str) -> dict[str, str]:
    """Returns headers that make browsers run the page's own scripts and no others."""
    own = " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in _SCRIPT.findall(page))
    return {
        "Content-Security-Policy": f"default-src 'self'; script-src 'self' {own}; img-src 'self' data:;"
        " base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }
