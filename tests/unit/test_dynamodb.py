"""Compares the signature of a request to DynamoDB with that of Amazon's own client."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import botocore.auth
import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as Theirs

from service.lake import dynamodb
from service.lake.dynamodb import Credentials

if TYPE_CHECKING:
    from collections.abc import Mapping

NOW = datetime(2026, 11, 26, 4, 5, 6, tzinfo=UTC)
BODY = b'{"TableName": "locks"}'


@pytest.mark.parametrize("token", [None, "a/token+with=signs"])
@pytest.mark.parametrize(
    ("endpoint", "region"), [("https://dynamodb.eu-central-1.amazonaws.com", "eu-central-1"), ("http://h:8000", "x")]
)
def test_the_signature_is_that_of_amazons_client(
    monkeypatch: pytest.MonkeyPatch, endpoint: str, region: str, token: str | None
) -> None:
    ours = dynamodb._signed(BODY, urlsplit(endpoint).netloc, region, Credentials("AKID", "secret/key", token), NOW)
    theirs = _signed_by_amazon(monkeypatch, endpoint, region, token, ours)
    assert ours["authorization"] == theirs["Authorization"]
    assert ours["x-amz-date"] == theirs["X-Amz-Date"]


def _signed_by_amazon(
    monkeypatch: pytest.MonkeyPatch, endpoint: str, region: str, token: str | None, ours: Mapping[str, str]
) -> Mapping[str, str]:
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda **_: NOW.replace(tzinfo=None))
    headers = {"content-type": ours["content-type"], "x-amz-target": ours["x-amz-target"]}
    request = AWSRequest("POST", f"{endpoint}/", data=BODY, headers=headers)
    botocore.auth.SigV4Auth(Theirs("AKID", "secret/key", token), "dynamodb", region).add_auth(request)
    found: Mapping[str, str] = request.headers
    return found
