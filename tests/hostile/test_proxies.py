"""Tests headers by which a caller claims another identity or address."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient

from service.access.token import Role
from service.api.app import create_app
from service.model.errors import SettingsError
from service.runtime import settings
from service.runtime.proxies import TrustedProxies

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.api.dependencies import AppContext

PROXY = "10.0.0.7"
FORWARDED = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https", "Host": "groundskeeper.corp"}
NEW_TABLE = {"engine": "spark", "base_path": "/lake/orders"}


@pytest.mark.parametrize(
    ("peer", "seen", "url"),
    [
        (PROXY, "203.0.113.9", "https://groundskeeper.corp"),
        ("10.0.1.7", "203.0.113.9", "https://groundskeeper.corp"),
        ("10.0.2.7", "10.0.2.7", "http://10.0.0.1:8080"),
        ("127.0.0.1", "127.0.0.1", "http://10.0.0.1:8080"),
    ],
)
def test_only_trusted_proxies_are_believed(
    app_context: AppContext,
    make_token: Callable[[Role], dict[str, str]],
    caplog: pytest.LogCaptureFixture,
    peer: str,
    seen: str,
    url: str,
) -> None:
    headers = {**make_token(Role.ADMIN), **FORWARDED}
    app = TrustedProxies(create_app(app_context), [PROXY, "10.0.1.0/24"])
    with (
        caplog.at_level(logging.INFO, logger="groundskeeper.audit"),
        TestClient(app, base_url="http://10.0.0.1:8080", client=(peer, 1234), headers=headers) as client,
    ):
        client.post("/v1/tables", json={"base_path": "/lake/orders"})
        options = client.get("/v1/writer-options", params=NEW_TABLE).json()["options"]
    assert json.loads(caplog.records[-1].message)["from"] == seen
    assert options["hoodie.write.commit.callback.http.url"] == f"{url}/v1/callbacks/hudi"


def test_without_the_setting_nobody_is_a_proxy(app_context: AppContext) -> None:
    app = TrustedProxies(create_app(app_context), settings.load(workers=0).trusted_proxies)
    headers = {**FORWARDED, "Host": "127.0.0.1:8080"}
    with TestClient(app, base_url="http://127.0.0.1:8080", client=("127.0.0.1", 1), headers=headers) as client:
        options = client.get("/v1/writer-options", params=NEW_TABLE).json()["options"]
    assert options["hoodie.write.commit.callback.http.url"].startswith("http://127.0.0.1:8080/")


@pytest.mark.parametrize("wrong", ["*", "proxy.corp", "10.0.0.1/8"])
def test_proxies_are_addresses_and_networks(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv("GROUNDSKEEPER_TRUSTED_PROXIES", wrong)
    with pytest.raises(SettingsError, match="GROUNDSKEEPER_TRUSTED_PROXIES"):
        settings.load()
