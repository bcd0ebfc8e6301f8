"""Tests the calls of web pages and strangers while no token exists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient

from service.access.token import Role
from service.api.app import create_app
from tests.support.contexts import changed

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.api.dependencies import AppContext


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.com"},
        {"Host": "a{b.evil.com"},
        {"Host": "127.0.0.1.evil.com"},
        {"Host": "localhost@evil.com"},
        {"Host": "evil.com#localhost"},
        {"Host": "[::1"},
        {"Host": ""},
        {"Host": "127.0.0.1:80:80"},
        {"Origin": "https://evil.com"},
        {"Origin": "null"},
        {"Origin": "http://[::1"},
        {"Origin": "http://a{b"},
        {"Origin": ""},
        {"Origin": "http://localhost@evil.com"},
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_host_or_origin_that_is_not_surely_of_this_machine_is_refused(
    client: TestClient, headers: dict[str, str], method: str
) -> None:
    answer = client.request(method, "/v1/tables", headers=headers)
    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/forbidden")


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "localhost:8080"},
        {"Host": "LOCALHOST"},
        {"Host": "127.0.0.1"},
        {"Host": "[::1]:8080"},
        {"Host": "localhost", "Origin": "http://127.0.0.1:8080"},
        {"Host": "localhost", "Origin": "http://[::1]:8080"},
    ],
)
def test_hosts_and_origins_of_this_machine_are_accepted(client: TestClient, headers: dict[str, str]) -> None:
    assert client.get("/v1/tables", headers=headers).status_code == 200


def test_a_service_that_other_machines_reach_is_never_open(app_context: AppContext) -> None:
    """The rule also holds after the last token was revoked."""
    app = create_app(changed(app_context, is_loopback=False))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        assert client.get("/v1/tables").status_code == 401


def test_calls_with_a_token_may_name_any_host(client: TestClient, make_token: Callable[[Role], dict[str, str]]) -> None:
    headers = make_token(Role.READER)
    assert client.get("/v1/tables", headers={**headers, "Host": "groundskeeper.corp"}).status_code == 200


TYPES_OF_FORMS = [
    {"Content-Type": each} for each in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data")
]


# Browsers name the origin in each POST; some of them did not in forms of their own machine.
@pytest.mark.parametrize(
    "headers", [*TYPES_OF_FORMS, *({"Origin": "http://[::1]:9000", **each} for each in ({}, *TYPES_OF_FORMS))]
)
@pytest.mark.parametrize("path", ["/v1/tables", "/v1/jobs/job_1/cancel"])
def test_a_form_of_a_web_page_changes_nothing(app_context: AppContext, path: str, headers: dict[str, str]) -> None:
    with TestClient(create_app(app_context), base_url="http://127.0.0.1") as client:
        answer = client.post(path, headers=headers, content=b"{}" if "Content-Type" in headers else None)
    assert (answer.status_code, answer.json()["type"]) == (415, "/problems/json-required")


def test_a_call_of_a_program_without_a_body_needs_no_content_type(app_context: AppContext) -> None:
    with TestClient(create_app(app_context), base_url="http://127.0.0.1") as client:
        assert client.delete("/v1/pause").is_success
        assert client.post("/v1/jobs/job_1/cancel").status_code == 404


def test_another_page_is_never_granted_a_call_with_another_method(app_context: AppContext) -> None:
    """A page may not send these before the service has allowed it."""
    asked = {"Origin": "http://127.0.0.1:9000", "Access-Control-Request-Method": "DELETE"}
    with TestClient(create_app(app_context), base_url="http://127.0.0.1") as client:
        answer = client.options("/v1/pause", headers=asked)
    assert not answer.is_success
    assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_with_a_token_a_call_without_a_body_needs_no_content_type(
    app_context: AppContext, make_token: Callable[[Role], dict[str, str]]
) -> None:
    headers = make_token(Role.ADMIN)
    with TestClient(create_app(app_context), base_url="http://127.0.0.1", headers=headers) as client:
        assert client.delete("/v1/pause").is_success


@pytest.mark.parametrize(
    ("origin", "status"), [("http://127.0.0.1", 404), ("http://127.0.0.1:9000", 415), ("http://localhost", 415)]
)
def test_only_the_own_pages_need_no_content_type(app_context: AppContext, origin: str, status: int) -> None:
    with TestClient(create_app(app_context), base_url="http://127.0.0.1") as client:
        answer = client.post("/v1/jobs/job_1/cancel", headers={"Origin": origin})
    assert answer.status_code == status
