"""Calls of an OpenID provider, limited in time and size. Redirects are not followed, and neither cookies nor proxies
from the environment are used."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping
from typing import Any

import httpx

from service.access.errors import ProviderUnavailableError

SECONDS = 5.0
"""The time limit for a whole answer."""

MOST_BYTES = 512 * 1024


def call(
    method: str,
    url: str,
    tls: ssl.SSLContext,
    *,
    form: Mapping[str, str] | None = None,
    basic: tuple[str, str] | None = None,
    bearer: str | None = None,
) -> tuple[int, dict[str, Any]]:
    """Returns the status and the JSON object of an answer whose status is below 500. Raises ProviderUnavailableError.
    Call this in a thread without an event loop."""
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    if bearer is not None:
        headers["Authorization"] = f"Bearer {bearer}"
    auth = httpx.BasicAuth(*basic) if basic else None
    try:
        status, body = asyncio.run(_call(httpx.Request(method, url, headers=headers, data=form), tls, auth))
    except TimeoutError as error:
        raise ProviderUnavailableError(f"{url} has not answered within {SECONDS:g} s.") from error
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise ProviderUnavailableError(f"{url} cannot be reached: {error or type(error).__name__}.") from error
    if status >= httpx.codes.INTERNAL_SERVER_ERROR:
        raise ProviderUnavailableError(f"{url} has answered with status {status}.")
    try:
        return status, parsed(body)
    except ValueError as error:
        raise ProviderUnavailableError(
            f"{url} has not answered with a JSON object, but with status {status}."
        ) from error


def parsed(text: bytes) -> dict[str, Any]:
    """Returns the JSON object. Raises ValueError."""
    try:
        found = json.loads(text, parse_constant=_refused)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found


async def _call(request: httpx.Request, tls: ssl.SSLContext, auth: httpx.BasicAuth | None) -> tuple[int, bytes]:
    body = bytearray()
    async with asyncio.timeout(SECONDS), httpx.AsyncClient(verify=tls, trust_env=False, timeout=SECONDS) as client:
        answer = await client.send(request, auth=auth, stream=True, follow_redirects=False)
        if answer.headers.get("content-encoding", "identity") != "identity":
            raise httpx.DecodingError("its answer is compressed, but the service has not asked for this")
        async for part in answer.aiter_raw():
            body += part
            if len(body) > MOST_BYTES:
                raise httpx.DecodingError(f"its answer has more than {MOST_BYTES} bytes")
        await answer.aclose()
    return answer.status_code, bytes(body)


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
