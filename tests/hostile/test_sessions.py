"""Tests the sessions of browsers: their permissions, their end, and their use by other pages and thieves."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from service.access import session_store, token_store
from service.access.token import Bearer, Role, issued
from service.api.app import create_app
from service.api.authentication import Failures
from service.db import schema
from service.db.engine import reading, writing
from service.runtime import retention
from tests.support.contexts import changed

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.api.dependencies import AppContext
    from tests.integration.control_plane.conftest import FakeClock

JSON = {"Content-Type": "application/json"}
LIFETIME = timedelta(hours=12)


@pytest.fixture
def issue(sqlite: sa.Engine, clock: FakeClock) -> Callable[..., tuple[str, dict[str, str]]]:
    """Returns the id of a new token, and the headers of a call with it."""

    def make(role: Role = Role.OPERATOR, **more: Any) -> tuple[str, dict[str, str]]:
        bearer, token = issued("ada", role, clock(), **more)
        with writing(sqlite) as connection:
            token_store.add(connection, token)
        return token.id, {"Authorization": f"Bearer {bearer}"}

    return make


@pytest.fixture
def browser(app_context: AppContext) -> TestClient:
    """A client with cookies, whose calls have no content type by default."""
    return TestClient(create_app(app_context), base_url="http://127.0.0.1")


def test_a_token_that_is_sent_once_opens_a_session_with_its_rights(browser: TestClient, issue: Any) -> None:
    token_id, headers = issue(Role.OPERATOR)
    answer = browser.post("/v1/session", headers=headers)
    assert answer.status_code == 201, answer.text
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("groundskeeper-80=")
    assert {"HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    expected = {"who": "ada", "token_id": token_id, "role": "operator", "tables": None, "way": "session"}
    assert answer.json() == {**expected, "expires_at": "2026-01-01T12:00:00Z"}
    assert browser.get("/v1/session").json() == answer.json()
    assert browser.get("/v1/session", headers=headers).json()["way"] == "bearer"
    assert browser.put("/v1/pause", json={}).json()["by"] == f"ada ({token_id})"
    assert browser.get("/v1/audit").status_code == 403


@pytest.mark.parametrize("how", ["time", "log-out", "revoked", "token expires"])
def test_a_session_ends_by_itself_with_its_token_and_by_a_log_out(
    browser: TestClient, issue: Any, sqlite: sa.Engine, clock: FakeClock, how: str
) -> None:
    more = {"expires_at": clock() + timedelta(hours=1)} if how == "token expires" else {}
    token_id, headers = issue(**more)
    issue()
    browser.post("/v1/session", headers=headers)
    stolen = dict(browser.cookies)
    assert browser.get("/v1/tables").status_code == 200
    match how:
        case "time":
            clock.advance(LIFETIME.total_seconds())
        case "token expires":
            clock.advance(3600)
        case "revoked":
            with writing(sqlite) as connection:
                token_store.revoke(connection, token_id, clock())
        case "log-out":
            gone = browser.delete("/v1/session", headers=JSON)
            assert (gone.status_code, gone.json()) == (200, {"log_out_url": None})
            assert not dict(browser.cookies)
    browser.cookies.clear()
    for name, value in stolen.items():
        browser.cookies.set(name, value)
    refused = browser.get("/v1/tables")
    assert (refused.status_code, refused.json()["type"]) == (401, "/problems/unauthenticated")
    assert refused.json()["hint"] == "Log in again."
    # The token itself is not affected by a log-out.
    assert browser.get("/v1/tables", headers=headers).status_code == (200 if how in ("time", "log-out") else 401)


def test_the_event_stream_of_a_session_ends_with_it(browser: TestClient, issue: Any, clock: FakeClock) -> None:
    _, headers = issue(Role.READER)
    has_ended = threading.Event()
    with browser:
        browser.post("/v1/session", headers=headers)

        def listen() -> None:
            browser.get("/v1/events")
            has_ended.set()

        threading.Thread(target=listen, daemon=True).start()
        assert not has_ended.wait(0.5)
        browser.delete("/v1/session", headers=JSON)
        assert has_ended.wait(60)


def test_the_database_has_only_a_hash_of_the_cookie(browser: TestClient, issue: Any, sqlite: sa.Engine) -> None:
    browser.post("/v1/session", headers=issue()[1])
    [value] = dict(browser.cookies).values()
    with reading(sqlite) as connection:
        [session] = connection.execute(sa.select(schema.sessions)).all()
        trail = connection.execute(sa.select(schema.audit_entries)).all()
    session_id, secret = value.split(".")
    assert session.id == session_id
    assert secret not in str(session)
    assert secret not in str(trail)
    assert [(each.operation, each.object_id, each.who) for each in trail] == [("logIn", session_id, "ada")]


@pytest.mark.parametrize(
    ("headers", "base"), [({"Origin": "https://gk.corp"}, "http://upstream:8080"), ({}, "https://gk.corp")]
)
def test_the_cookie_is_secure_unless_the_page_is_of_a_loopback_address(
    app_context: AppContext, issue: Any, headers: dict[str, str], base: str
) -> None:
    with TestClient(create_app(app_context), base_url=base) as client:
        cookie = client.post("/v1/session", headers={**issue()[1], **headers}).headers["set-cookie"]
    assert cookie.startswith("__Host-groundskeeper=")
    assert "Secure" in cookie.split("; ")
    assert "Domain" not in cookie


def test_without_encryption_nobody_logs_in_from_another_machine(browser: TestClient, issue: Any) -> None:
    headers = issue()[1]
    for origin in ("http://gk.corp", "http://127.0.0.1.evil.com", "null", "http://[::1", ""):
        refused = browser.post("/v1/session", headers={**headers, "Origin": origin})
        assert (refused.status_code, refused.json()["type"]) == (403, "/problems/login-unencrypted"), origin
        assert "set-cookie" not in refused.headers


def test_no_other_page_changes_anything_with_the_cookie(browser: TestClient, issue: Any) -> None:
    browser.post("/v1/session", headers=issue()[1])
    for headers, status in (
        (JSON, 404),
        ({"Origin": "http://127.0.0.1"}, 404),
        ({"Sec-Fetch-Site": "same-origin", **JSON}, 404),
        ({}, 404),  # The caller is a program, because browsers name the origin in each POST.
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Origin": "http://127.0.0.1:9000"}, 415),
        ({"Origin": "https://evil.com"}, 415),
        ({"Sec-Fetch-Site": "cross-site", **JSON}, 403),
        ({"Sec-Fetch-Site": "same-site", **JSON}, 403),
    ):
        assert browser.post("/v1/jobs/job_1/cancel", headers=headers).status_code == status, headers


def test_a_session_neither_prolongs_itself_nor_serves_workers_and_writers(browser: TestClient, issue: Any) -> None:
    browser.post("/v1/session", headers=issue(Role.ADMIN)[1])
    again = browser.post("/v1/session", headers=JSON)
    assert (again.status_code, again.json()["type"]) == (409, "/problems/no-login")
    assert browser.post("/v1/worker/leases", json={"worker_id": "w"}).status_code == 403
    assert browser.post("/v1/session", headers=issue(Role.WORKER)[1]).status_code == 403


def test_while_no_token_exists_nobody_has_to_log_in(client: TestClient) -> None:
    assert client.get("/v1/session").json()["way"] == "open"
    assert client.post("/v1/session").status_code == 409
    assert client.delete("/v1/session").status_code == 200
    client.cookies.set("groundskeeper-80", "old.cookie")
    assert client.get("/v1/tables").status_code == 200


def test_failed_log_ins_slow_down_as_failed_calls_do(
    browser: TestClient, issue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    issue()
    paused: list[float] = []

    async def sleep(seconds: float) -> None:
        paused.append(seconds)

    monkeypatch.setattr("service.api.authentication.asyncio.sleep", sleep)
    for _ in range(Failures.FREE):
        assert browser.post("/v1/session", headers={"Authorization": f"Bearer {Bearer.new()}"}).status_code == 401
    browser.cookies.set("groundskeeper-80", "0123456789abcdef.guess")
    assert browser.get("/v1/tables").status_code == 401
    assert browser.post("/v1/session", headers={"Authorization": f"Bearer {Bearer.new()}"}).status_code == 401
    assert paused[: Failures.FREE] == [0.0] * Failures.FREE
    assert 0 < paused[-2] < paused[-1]


def test_a_malformed_or_unknown_cookie_is_refused(
    browser: TestClient, issue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Failures, "MOST_SECONDS", 0.0)
    issue()
    for value in ("", ".", "x", "x.", ".y", "é.y", "a b.c", f"{'a' * 40}.b", "1234567890abcdef.0"):
        cookie: Any = f"groundskeeper-80={value}".encode("latin-1")
        assert browser.get("/v1/tables", headers={"Cookie": cookie}).status_code == 401, value


def test_only_the_newest_sessions_of_a_token_continue_and_old_ones_are_deleted(
    browser: TestClient, issue: Any, sqlite: sa.Engine, clock: FakeClock
) -> None:
    _, headers = issue()
    browser.post("/v1/session", headers=headers)
    first = dict(browser.cookies)
    for _ in range(session_store.MOST_OF_TOKEN):
        clock.advance(1)
        browser.post("/v1/session", headers=headers)
    assert browser.get("/v1/tables").status_code == 200
    browser.cookies.clear()
    assert browser.get("/v1/tables", headers={"Cookie": "; ".join("=".join(each) for each in first.items())}).is_error
    clock.advance(LIFETIME.total_seconds() + 60)
    month = timedelta(days=30)
    pruned = retention.run_once(sqlite, clock, retention.Keep(month, month, month))
    assert pruned["sessions"] == session_store.MOST_OF_TOKEN


def test_a_session_serves_every_replica(app_context: AppContext, issue: Any) -> None:
    _, headers = issue()
    one, other = (TestClient(create_app(changed(app_context)), base_url="http://127.0.0.1") for _ in range(2))
    one.post("/v1/session", headers=headers)
    other.cookies = one.cookies
    assert other.get("/v1/tables").status_code == 200
