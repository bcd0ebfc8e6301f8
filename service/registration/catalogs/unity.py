"""Lists the tables of a Unity Catalog server (open source, 0.2 and later) by its REST API."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec

from jobs.format import paging
from service.registration.catalogs import errors
from service.registration.catalogs.catalog import Broken, Entry, Source, qualified, tables_of

_PATH = "/api/2.1/unity-catalog/"
_TIMEOUT = httpx.Timeout(10.0, connect=3.0)
_PAGE, _MOST_BYTES = 100, 32 * 1024 * 1024
_ATTEMPTS, _MOST_PAUSE = 4, 5.0
_BUSY = {429, 503}
# The server refuses an expired, revoked or foreign token with 401, 403 or 500, which depends on its version
# (`AuthDecorator`).
_OF_TOKEN = re.compile(r"invalid access token|token has (been revoked|expired)|user does not exist", re.IGNORECASE)


def entries(source: Source) -> Iterator[Entry | Broken | None]:
    """Lists all schemas; the database of a table is `catalog.schema`. Yields None after each page. Raises the errors
    of catalogs."""
    headers = {"Authorization": f"Bearer {source.token}"} if source.token else {}
    with httpx.Client(base_url=source.address.rstrip("/") + _PATH, headers=headers, timeout=_TIMEOUT) as client:
        for schema in _schemas(client):
            if schema is None:
                yield None
                continue
            database = ".".join(schema)
            if not source.wants_database(database):
                continue
            tables = _pages(client, "tables", catalog_name=schema[0], schema_name=schema[1])
            yield from tables_of(database, tables, _entry)


def _schemas(client: httpx.Client) -> Iterator[tuple[str, str] | None]:
    """Yields the catalog and the schema, and None after each page."""
    for catalogs in _pages(client, "catalogs"):
        yield None
        for catalog in _names(catalogs):
            for schemas in _pages(client, "schemas", catalog_name=catalog):
                yield None
                yield from ((catalog, schema) for schema in _names(schemas))


def _entry(database: str, table: dict[str, Any]) -> Entry:
    properties = table.get("properties")
    texts = properties.items() if isinstance(properties, dict) else ()
    return Entry(
        name=qualified(database, str(table.get("name"))),
        location=str(table.get("storage_location") or ""),
        owner=str(table["owner"]) if table.get("owner") else None,
        provider=str(table.get("data_source_format") or ""),
        parameters={str(name): str(value) for name, value in texts},
    )


def _names(page: list[dict[str, Any]]) -> Iterator[str]:
    return (str(each["name"]) for each in page if each.get("name"))


def _pages(client: httpx.Client, kind: str, **asked: str) -> Iterator[list[dict[str, Any]]]:
    return paging.bounded(_promised(client, kind, **asked), lambda why: errors.CatalogError(f"{kind}: {why}"))


def _promised(client: httpx.Client, kind: str, **asked: str) -> Iterator[list[dict[str, Any]]]:
    """Yields pages as long as the server names a next one."""
    page: str | None = None
    while True:
        answer = _answer(client, kind, {**asked, "max_results": _PAGE, **({"page_token": page} if page else {})})
        listed = answer.get(kind)
        if not isinstance(listed, list):
            raise errors.CatalogError(f"The answer has no list `{kind}`.")
        yield [each for each in listed if isinstance(each, dict)]
        before, page = page, answer.get("next_page_token") or None
        if page is None:
            return
        if page == before:
            raise errors.CatalogError(f"{kind}: a page names itself as the next one.")


def _answer(client: httpx.Client, kind: str, asked: dict[str, Any]) -> dict[str, Any]:
    for attempt in range(_ATTEMPTS):
        try:
            with client.stream("GET", kind, params=asked) as response:
                body = bytearray()
                for part in response.iter_bytes():
                    body += part
                    if len(body) > _MOST_BYTES:
                        raise errors.CatalogError(f"{kind}: the answer is larger than {_MOST_BYTES} bytes.")
        except httpx.HTTPError as error:
            raise errors.CatalogUnavailableError(f"{kind}: {error or type(error).__name__}"[:600]) from error
        if response.status_code not in _BUSY or attempt == _ATTEMPTS - 1:
            return _parsed(kind, response.status_code, bytes(body))
        time.sleep(_pause(response.headers.get("Retry-After"), attempt))
    raise AssertionError


def _pause(wanted: str | None, attempt: int) -> float:
    return min(float(wanted) if wanted and wanted.isdecimal() else 0.5 * 2**attempt, _MOST_PAUSE)


def _parsed(kind: str, status: int, body: bytes) -> dict[str, Any]:
    said = body[:300].decode(errors="replace")
    if status == 429:
        raise errors.CatalogThrottledError(f"{kind}: HTTP 429: {said}")
    if status == 401 or (status != 200 and _OF_TOKEN.search(said)):
        raise errors.CatalogLoginError(f"{kind}: HTTP 401: {said}")
    if status == 403:
        raise errors.CatalogDeniedError(f"{kind}: HTTP 403: {said}")
    if status in (502, 503, 504):
        raise errors.CatalogUnavailableError(f"{kind}: HTTP {status}: {said}")
    if status != 200:
        raise errors.CatalogError(f"{kind}: HTTP {status}: {said}")
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise errors.CatalogError(f"{kind}: the answer is no JSON object: {error}") from error
