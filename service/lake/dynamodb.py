"""Reads one item of a table in DynamoDB by a request of DynamoDB's protocol, signed by AWS Signature Version 4."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import httpx

_TARGET = "DynamoDB_20120810.GetItem"
_TYPE = "application/x-amz-json-1.0"
_NOT_FOUND = "ResourceNotFoundException"


class DynamodbError(Exception):
    """DynamoDB refuses the request."""


@dataclass(frozen=True)
class Credentials:
    access_key: str
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


def item(
    endpoint: str,
    region: str,
    credentials: Credentials,
    table: str,
    key: Mapping[str, str],
    *,
    seconds: float,
    now: datetime,
) -> dict[str, str]:
    """Returns the current attributes of an item that are text; empty if there is no such item or table.

    Raises httpx.HTTPError, and DynamodbError.
    """
    wanted = {
        "TableName": table,
        "Key": {name: {"S": value} for name, value in key.items()},
        "ConsistentRead": True,
    }
    body = json.dumps(wanted).encode()
    headers = _signed(body, urlsplit(endpoint).netloc, region, credentials, now)
    answer = httpx.post(endpoint, content=body, headers=headers, timeout=seconds, follow_redirects=False)
    found: Any = answer.json() if answer.content else {}
    if answer.status_code != httpx.codes.OK:
        kind = str(found.get("__type", "")).rpartition("#")[2]
        if kind == _NOT_FOUND:
            return {}
        said = found.get("message") or found.get("Message") or ""
        raise DynamodbError(f"{kind or answer.status_code} {said}".strip())
    attributes = found.get("Item") or {}
    return {name: str(value["S"]) for name, value in attributes.items() if isinstance(value, dict) and "S" in value}


def _signed(body: bytes, host: str, region: str, credentials: Credentials, now: datetime) -> dict[str, str]:
    """Returns the headers of a request, with its signature (AWS: "Create a signed AWS API request")."""
    at, day = f"{now:%Y%m%dT%H%M%SZ}", f"{now:%Y%m%d}"
    headers = {"content-type": _TYPE, "host": host, "x-amz-date": at}
    if credentials.session_token:
        headers["x-amz-security-token"] = credentials.session_token
    headers["x-amz-target"] = _TARGET  # The headers are in alphabetical order.
    signed = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    request = f"POST\n/\n\n{lines}\n{signed}\n{hashlib.sha256(body).hexdigest()}"
    scope = f"{day}/{region}/dynamodb/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{credentials.secret_key}".encode()
    for part in (day, region, "dynamodb", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, SignedHeaders={signed}, Signature={signature}"
    )
    return headers
