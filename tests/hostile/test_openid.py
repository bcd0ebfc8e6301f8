"""Tests log-ins with a provider that lies, with forged tokens, and by callers who did not begin the log-in."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
import sqlalchemy as sa
from cryptography.hazmat.primitives import serialization
from starlette.testclient import TestClient

from service.access import token_store
from service.access.oidc import exchange, remembered
from service.access.oidc.identity import Identity
from service.access.oidc.provider import Grant, Provider
from service.access.token import Role
from service.api.app import create_app
from service.db import schema
from service.db.engine import reading, writing
from service.model.errors import SettingsError
from service.runtime import settings
from tests.hostile.openid import CLIENT, LyingProvider, drip, new_key, public, send
from tests.support.contexts import changed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from service.api.dependencies import AppContext
    from tests.integration.control_plane.conftest import FakeClock

CONFIGURATION = "/.well-known/openid-configuration"


@pytest.fixture(scope="module")
def _lying() -> Iterator[LyingProvider]:
    made = LyingProvider(lambda: 0.0)
    yield made
    made.close()


@pytest.fixture
def provider(_lying: LyingProvider, clock: FakeClock) -> LyingProvider:
    _lying.now = lambda: clock().timestamp()
    _lying.changed, _lying.asked, _lying.forms = {}, [], []
    _lying.keys, _lying.id_token = [public(_lying.key, "one")], _lying.signed
    return _lying


@pytest.fixture
def identity(provider: LyingProvider) -> Identity:
    roles = {"ops": Grant(Role.OPERATOR), "boss": Grant(Role.ADMIN)}
    return Identity(Provider(provider.issuer, CLIENT, roles=roles, audience="api"))


@pytest.fixture
def browser(app_context: AppContext, identity: Identity) -> Iterator[TestClient]:
    app = create_app(changed(app_context, identity=identity))
    with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False) as client:
        yield client


@pytest.fixture
def begin(browser: TestClient, provider: LyingProvider) -> Callable[..., dict[str, str]]:
    """Begins a log-in; returns what the provider would send back."""

    def begin_login(**more: str) -> dict[str, str]:
        answer = browser.get("/login", params=more)
        assert answer.status_code == 303, answer.text
        query = parse_qs(urlsplit(answer.headers["location"]).query)
        provider.nonce = query["nonce"][0]
        assert query["code_challenge_method"] == ["S256"]
        return {"state": query["state"][0], "code": "c1"}

    return begin_login


def require_refusal(answer: Any, status: int, kind: str) -> str:
    assert (answer.status_code, answer.json()["type"]) == (status, f"/problems/{kind}"), answer.text
    return str(answer.json()["detail"])


def test_the_verifier_of_the_browser_that_began_proves_the_exchange(
    browser: TestClient, begin: Any, provider: LyingProvider, sqlite: sa.Engine
) -> None:
    back = begin(next="#/tables/tbl_1?tab=jobs")
    answer = browser.get("/login/callback", params=back)
    assert (answer.status_code, answer.headers["location"]) == (303, "http://127.0.0.1/#/tables/tbl_1?tab=jobs")
    form = parse_qs(provider.forms[0])
    assert (form["code"], form["client_id"], len(form["code_verifier"][0])) == (["c1"], [CLIENT], 43)
    assert browser.get("/v1/session").json()["who"] == "ada"
    with reading(sqlite) as connection:
        trail = connection.execute(sa.select(schema.audit_entries)).all()
        [session] = connection.execute(sa.select(schema.sessions)).all()
    assert [(each.operation, each.who, each.role, each.status) for each in trail] == [("logIn", "ada", "operator", 303)]
    assert "ey" not in session.id_token[:2], "the ID token is stored encrypted"


@pytest.mark.parametrize("how", ["replayed", "other state", "no cookie", "forged cookie", "late", "no state"])
def test_an_answer_counts_once_and_only_in_the_browser_that_began(
    browser: TestClient, begin: Any, clock: FakeClock, how: str
) -> None:
    back = begin()
    cookies = dict(browser.cookies)
    match how:
        case "replayed":
            assert browser.get("/login/callback", params=back).status_code == 303
            browser.cookies.update(cookies)
        case "other state":
            back["state"] = "x" * 43
        case "no cookie":
            browser.cookies.clear()
        case "forged cookie":
            browser.cookies.clear()
            [name] = cookies
            browser.cookies.set(name, cookies[name][:-8] + "AAAAAAA=")
        case "late":
            clock.advance(601)
        case "no state":
            del back["state"]
    require_refusal(browser.get("/login/callback", params=back), 403, "login-expired")


@pytest.mark.parametrize(
    "page", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "#/\r\nX: y", "#" * 9]
)
def test_a_log_in_never_ends_on_another_site(browser: TestClient, page: str) -> None:
    answer = browser.get("/login", params={"next": page})
    assert "next" in require_refusal(answer, 422, "params-invalid")


def _unsigned(provider: LyingProvider) -> str:
    head, body, _ = provider.signed().split(".")
    head = base64.urlsafe_b64encode(b'{"alg":"none","kid":"one"}').decode().rstrip("=")
    return f"{head}.{body}."


def _confused(provider: LyingProvider) -> str:
    """Signs by HMAC with the public key as its secret. A library that lets the token choose the algorithm accepts
    this."""
    pem = provider.key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )

    def encoded(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    text = f"{encoded({'alg': 'HS256', 'kid': 'one'})}.{encoded(provider.claims())}"
    mac = hmac.new(pem, text.encode(), hashlib.sha256).digest()
    return f"{text}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


STRANGER = new_key()
FORGED: dict[str, Callable[[LyingProvider], str]] = {
    "another key": lambda each: each.signed(STRANGER),
    "an unknown key": lambda each: each.signed(STRANGER, key_id="two"),
    "no algorithm": _unsigned,
    "HMAC": _confused,
    "another issuer": lambda each: each.signed(iss="https://evil.example"),
    "another audience": lambda each: each.signed(aud="somebody-else"),
    "several audiences": lambda each: each.signed(aud=[CLIENT, "somebody-else"]),
    "another party": lambda each: each.signed(azp="somebody-else"),
    "another log-in": lambda each: each.signed(nonce="of another one"),
    "no nonce": lambda each: each.signed(nonce=None),
    "expired": lambda each: each.signed(exp=each.now() - 61),
    "no end": lambda each: each.signed(exp=None),
    "not yet": lambda each: each.signed(nbf=each.now() + 61),
    "an end that is no number": lambda each: each.signed(exp=True),
    "no subject": lambda each: each.signed(sub=None),
    "not a token": lambda _: "a.b.c",
    "huge": lambda each: each.signed(more="x" * 20_000),
    "nested": lambda each: each.signed().replace(".", "." + base64.urlsafe_b64encode(b"[" * 9000).decode() + "."),
}


@pytest.mark.parametrize("forged", FORGED)
def test_a_forged_id_token_opens_no_session(
    browser: TestClient, begin: Any, provider: LyingProvider, forged: str
) -> None:
    back = begin()
    provider.id_token = lambda: FORGED[forged](provider)
    require_refusal(browser.get("/login/callback", params=back), 403, "login-refused")
    assert browser.get("/v1/session").status_code == 401


def test_clocks_may_differ_by_a_minute(browser: TestClient, begin: Any, provider: LyingProvider) -> None:
    for times in ({"exp": provider.now() - 50}, {"nbf": provider.now() + 50, "iat": provider.now() + 50}):
        back = begin()
        provider.id_token = lambda times=times: provider.signed(**times)  # type: ignore[misc]
        assert browser.get("/login/callback", params=back).status_code == 303


def _access_token(provider: LyingProvider, **more: Any) -> str:
    return provider.signed(**{"aud": "api", "nonce": None, **more})


def test_an_access_token_is_checked_as_strictly_as_an_id_token(
    browser: TestClient, provider: LyingProvider, clock: FakeClock
) -> None:
    def call(token: str) -> Any:
        return browser.get("/v1/session", headers={"Authorization": f"Bearer {token}"})

    assert call(_access_token(provider)).json()["role"] == "operator"
    assert call(_access_token(provider, groups=["ops", "boss"])).json()["role"] == "admin"
    require_refusal(call(_access_token(provider, groups=["strangers"])), 403, "login-refused")
    require_refusal(call(_access_token(provider, groups=None)), 403, "login-refused")
    bad = [
        _access_token(provider, aud=CLIENT),
        _access_token(provider, exp=provider.now() - 61),
        _access_token(provider, iss="x"),
    ]
    bad += [_unsigned(provider), _confused(provider), _access_token(provider, key=STRANGER), "a.b.c", "x" * 20_000]
    for token in bad:
        assert require_refusal(call(token), 401, "unauthenticated") == "The token is not valid."
    valid = _access_token(provider)
    clock.advance(361)
    assert call(valid).status_code == 401


def test_unknown_keys_make_the_service_ask_the_provider_seldom(browser: TestClient, provider: LyingProvider) -> None:
    for number in range(5):
        token = _access_token(provider, key=STRANGER, key_id=f"unknown {number}")
        assert browser.get("/v1/session", headers={"Authorization": f"Bearer {token}"}).status_code in (200, 401)
    assert provider.asked.count("/keys") <= 2


def test_a_revoked_person_gets_no_session_and_no_access(
    browser: TestClient, begin: Any, provider: LyingProvider, sqlite: sa.Engine, clock: FakeClock
) -> None:
    browser.get("/login/callback", params=begin())
    person = browser.get("/v1/session").json()["token_id"]
    with writing(sqlite) as connection:
        token_store.revoke(connection, person, clock())
    assert browser.get("/v1/session").status_code == 401
    assert browser.get("/v1/session", headers={"Authorization": f"Bearer {_access_token(provider)}"}).status_code == 401
    assert "revoked" in require_refusal(browser.get("/login/callback", params=begin()), 403, "login-refused")


def test_a_person_is_not_a_token(browser: TestClient, begin: Any, provider: LyingProvider) -> None:
    browser.get("/login/callback", params=begin())
    person = browser.get("/v1/session").json()["token_id"]
    browser.cookies.clear()
    for secret in ("", "0" * 64):
        headers = {"Authorization": f"Bearer gk_{person}_{secret}"}
        assert browser.get("/v1/session", headers=headers).status_code == 401
    headers = {"Authorization": f"Bearer {_access_token(provider)}", "Content-Type": "application/json"}
    require_refusal(browser.post("/v1/session", headers=headers), 409, "no-login")


BROKEN: dict[str, Any] = {
    "of another issuer": {CONFIGURATION: {"issuer": "https://evil.example"}},
    "endpoints without encryption": {CONFIGURATION: {"token_endpoint": "http://evil.example/token"}},
    "no endpoint": {CONFIGURATION: {"authorization_endpoint": None}},
    "a list": {CONFIGURATION: lambda handler: send(handler, b"[]")},
    "an error": {CONFIGURATION: lambda handler: send(handler, b"{}", 503)},
    "a redirect": {CONFIGURATION: lambda handler: send(handler, b"", 302, Location="http://evil.example/")},
    "too large": {CONFIGURATION: lambda handler: send(handler, b" " * (exchange.MOST_BYTES + 1))},
    "compressed": {CONFIGURATION: lambda handler: send(handler, b"{}", Content_Encoding="gzip")},
    "slow": {CONFIGURATION: drip},
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_provider_is_named_and_tokens_still_work(
    browser: TestClient,
    provider: LyingProvider,
    make_token: Any,
    broken: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exchange, "SECONDS", 0.5)
    provider.changed = BROKEN[broken]
    began = time.monotonic()
    require_refusal(browser.get("/login"), 502, "provider-unavailable")
    require_refusal(
        browser.get("/v1/session", headers={"Authorization": f"Bearer {_access_token(provider)}"}),
        502,
        "provider-unavailable",
    )
    assert time.monotonic() - began < 60
    assert len(provider.asked) == 1, "a failure is remembered for a moment"
    page = browser.get("/login", headers={"Accept": "text/html,*/*"})
    assert (page.status_code, page.headers["content-type"]) == (502, "text/html; charset=utf-8")
    assert "does not answer as it should" in page.text
    assert browser.get("/v1/session", headers=make_token(Role.READER)).status_code == 200


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")
def test_too_many_keys_are_refused_and_many_searched_quickly(
    browser: TestClient, provider: LyingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "PAUSE_SECONDS", 0)
    headers = {"Authorization": f"Bearer {_access_token(provider)}"}
    one = provider.keys[0]
    provider.keys = [{**one, "kid": str(number)} for number in range(1000)]
    require_refusal(browser.get("/v1/session", headers=headers), 502, "provider-unavailable")
    provider.keys = [
        {"kty": "RSA"},
        {**one, "n": "AQAB"},
        {"kty": "oct", "k": "AAAA", "kid": "one"},
        7,
        *provider.keys[:100],
        one,
    ]  # type: ignore[list-item]
    assert browser.get("/v1/session", headers=headers).status_code == 200
    short = new_key(1024)
    provider.keys = [public(short, "short")]
    weak = _access_token(provider, key=short, key_id="short")
    assert browser.get("/v1/session", headers={"Authorization": f"Bearer {weak}"}).status_code == 401


def test_callers_do_not_pile_up_behind_a_provider_that_hangs(
    browser: TestClient, provider: LyingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "SECONDS", 2.0)
    provider.changed = {CONFIGURATION: drip}
    statuses: list[int] = []
    threads = [threading.Thread(target=lambda: statuses.append(browser.get("/login").status_code)) for _ in range(30)]
    began = time.monotonic()
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert statuses == [502] * 30
    assert time.monotonic() - began < 20
    assert len(provider.asked) <= 2


def test_another_party_that_answers_in_place_of_the_provider_is_refused(
    browser: TestClient, begin: Any, provider: LyingProvider
) -> None:
    back = begin()
    assert "another issuer" in require_refusal(
        browser.get("/login/callback", params={**back, "iss": "https://evil.example"}), 403, "login-refused"
    )
    assert provider.forms == [], "the code is not sent to anybody"
    words = {"state": back["state"], "error": "access_denied", "error_description": "<b>no\r\n"}
    answer = browser.get("/login/callback", params=words, headers={"Accept": "text/html"})
    assert answer.status_code == 403
    assert "access_denied &lt;b&gt;no" in answer.text


def test_without_a_provider_there_is_no_log_in(app_context: AppContext) -> None:
    with TestClient(create_app(app_context), base_url="http://127.0.0.1") as client:
        require_refusal(client.get("/login"), 404, "route-not-found")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"ISSUER": "http://sso.example.com"}, "https"),
        ({"ISSUER": "https://user:word@sso.example.com"}, "https"),
        ({"ISSUER": "https://sso.example.com/?a=b"}, "https"),
        ({"ISSUER": "ftp://sso.example.com"}, "https"),
        ({"ROLES": '{"ops": "worker"}'}, "reader"),
        ({"ROLES": '{"ops": {"role": "reader", "tables": ["a"]}}'}, "operator and admin"),
        ({"ROLES": '{"ops": {"role": "operator", "tables": []}}'}, "at least 1"),
        ({"ROLES": '{"ops": {"role": "operator", "table": ["a"]}}'}, "ROLES_OPS_TABLE: Extra"),
        ({"ROLES": "{}"}, "GROUNDSKEEPER_OIDC_ROLES"),
        ({"SCOPES": "profile"}, "openid"),
        ({"CA_FILE": "/nowhere.pem"}, "no file"),
    ],
)
def test_settings_that_would_not_be_safe_are_refused(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], words: str
) -> None:
    whole = {"ISSUER": "https://sso.example.com", "CLIENT_ID": "gk", "ROLES": '{"*": "reader"}', **given}
    for name, value in whole.items():
        monkeypatch.setenv(f"GROUNDSKEEPER_OIDC_{name}", value)
    with pytest.raises(SettingsError, match=words):
        settings.load()


def test_settings_of_a_provider_need_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDSKEEPER_OIDC_AUDIENCE", "api")
    with pytest.raises(SettingsError, match="OIDC_ISSUER"):
        settings.load()
