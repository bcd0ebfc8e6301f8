"""The dashboard at /: one page and its files from `service/dashboard`. It gets all data from the REST API."""

from __future__ import annotations

import hashlib
import mimetypes
import re
from pathlib import Path

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
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
_IMPORT = re.compile(r'^import [^;]* from "\./([a-z_]+\.js)";', re.MULTILINE)
# Below a path that names the content, and so never has another one.
_FOREVER = {**_HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}


class _Files(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(_HEADERS)
        return response


class Bundle:
    """The files in memory, since a page asks for all of them at once, and the page that names their version."""

    def __init__(self, folder: Path) -> None:
        self._files = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
        digest = hashlib.sha256()
        for name, content in self._files.items():
            digest.update(b"%s %d " % (name.encode(), len(content)) + content)
        self.version = digest.hexdigest()[:16]
        self.page = self._page()

    def response(self, version: str, name: str) -> Response:
        """Raises HTTPException. Another replica may have another version, and its page must not stay empty."""
        if name not in self._files:
            raise HTTPException(404)
        media_type = mimetypes.guess_type(name)[0]
        headers = _FOREVER if version == self.version else _HEADERS
        return Response(self._files[name], media_type=media_type, headers=headers)

    def _page(self) -> str:
        """The modules import each other in several steps; named by the page, those of the overview are loaded in one.
        Those of other pages are imported when such a page is opened."""
        own = f"dashboard/{self.version}"
        links = "".join(f'  <link rel="modulepreload" href="{own}/{name}">\n' for name in self._imported("main.js"))
        text = self._files["index.html"].decode().replace('"dashboard/', f'"{own}/')
        return text.replace("</head>", f"{links}</head>")

    def _imported(self, name: str) -> list[str]:
        """Returns the modules that a module imports at once, and those that these import, each once."""
        found = [name]
        for each in found:
            imported = _IMPORT.findall(self._files[each].decode())
            found += [other for other in dict.fromkeys(imported) if other not in found]
        return found[1:]


def install(app: FastAPI) -> None:
    """Adds the routes. The page and its files need no token, because they contain no data of tables."""
    bundle = Bundle(FOLDER)

    async def page(_: Request) -> Response:
        return Response(bundle.page, media_type="text/html", headers=_HEADERS)

    async def file(version: str, name: str) -> Response:
        return bundle.response(version, name)

    app.add_api_route("/", page, methods=["GET", "HEAD"], include_in_schema=False)
    app.add_api_route("/dashboard/{version}/{name}", file, methods=["GET", "HEAD"], include_in_schema=False)
    app.mount("/dashboard", _Files(directory=FOLDER), name="dashboard")
