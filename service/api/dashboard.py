"""The dashboard at /: one page and its files from `service/dashboard`. It gets all data from the REST API."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI, Request, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).resolve().parent.parent / "dashboard"

_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # The modules import each other without a version: browsers must revalidate them (ETag), so that versions never mix.
    "Cache-Control": "no-cache",
}


class _Files(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(_HEADERS)
        return response


def install(app: FastAPI) -> None:
    """Adds the routes. The page and its files need no token, because they contain no data of tables."""
    files = _Files(directory=FOLDER)

    async def page(request: Request) -> Response:
        return await files.get_response("index.html", request.scope)

    app.add_api_route("/", page, methods=["GET", "HEAD"], include_in_schema=False)
    app.mount("/dashboard", files, name="dashboard")
