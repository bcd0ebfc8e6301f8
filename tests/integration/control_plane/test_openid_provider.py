"""Tests the log-in and access tokens of a real OpenID provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from service.access.oidc import remembered
from service.catalog import table_store
from service.catalog.registration import Registration
from service.db.engine import writing
from service.model.clock import utc_now
from tests.integration.serving import Serving, eventually
from tests.support.openid_provider import OpenIdProvider, logged_in

if TYPE_CHECKING:
    from collections.abc import Iterator

ROLES = {
    "lake-operators": "operator",
    "lake-admins": "admin",
    "robots": "reader",
    "shop": {"role": "operator", "tables": ["tag:team=shop"]},
    "web": {"role": "operator", "tables": ["owner:web", "clicks_*"]},
    "shop-admins": {"role": "admin", "tables": ["tag:team=shop"]},
}


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenIdProvider]:
    persons = {
        "ada": ["staff", "lake-operators"],
        "eve": ["staff"],
        "robot": ["robots"],
        "sue": ["shop", "robots"],
        "both": ["shop", "web"],
        "free": ["shop", "lake-operators"],
        "chief": ["shop-admins", "lake-operators"],
    }
    running = OpenIdProvider(**persons)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def service(provider: OpenIdProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("service"), **provider.settings(ROLES)) as running:
        # The provider is away while the service starts.
        away = httpx.get(f"{running.url}/login")
        assert (away.status_code, away.json()["type"]) == (502, "/problems/provider-unavailable")
        assert "cannot be reached" in away.json()["detail"]
        provider.start(running.url)
        yield running


@pytest.fixture(autouse=True)
def _known(service: Serving) -> None:
    """Waits until the service asks the provider again that was away."""
    assert eventually(lambda: httpx.get(f"{service.url}/login").status_code == 303, remembered.PAUSE_SECONDS + 10)


def test_a_person_logs_in_with_the_role_of_a_group_and_logs_out_there_too(
    service: Serving, provider: OpenIdProvider
) -> None:
    assert httpx.get(f"{service.url}/v1/tables").status_code == 401, "nobody calls without a token"
    browser, answer = logged_in(service.url, "ada", "#/jobs")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{service.url}/#/jobs")
    [cookie] = [each for each in answer.headers.get_list("set-cookie") if "Max-Age=43200" in each]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    session = browser.get(f"{service.url}/v1/session").json()
    assert (session["who"], session["role"], session["way"]) == ("ada", "operator", "session")
    json = {"Content-Type": "application/json"}
    assert browser.put(f"{service.url}/v1/pause", json={}).status_code == 200
    assert browser.get(f"{service.url}/v1/audit").status_code == 403

    stolen = {each.name: each.value for each in browser.cookies.jar if each.name.startswith("groundskeeper-")}
    assert len(stolen) == 1, "that of the log-in is gone"
    ended = browser.delete(f"{service.url}/v1/session", headers=json)
    url = httpx.URL(ended.json()["log_out_url"])
    assert str(url).startswith(f"{provider.issuer}/session/end?")
    assert url.params["post_logout_redirect_uri"] == f"{service.url}/"
    page = browser.get(url)
    assert page.status_code == 200
    assert "Do you want to sign-out" in page.text, "the provider has accepted the hint and the address"
    assert httpx.get(f"{service.url}/v1/session", cookies=stolen).status_code == 401


def test_a_person_without_a_group_that_has_a_role_is_refused(service: Serving) -> None:
    _, answer = logged_in(service.url, "eve")
    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/login-refused")
    assert "eve is in no group" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("person", "role", "tables"),
    [
        ("sue", "operator", ["tag:team=shop"]),
        ("both", "operator", ["tag:team=shop", "owner:web", "clicks_*"]),
        ("free", "operator", None),
        ("chief", "admin", ["tag:team=shop"]),
    ],
)
def test_the_role_of_a_group_may_hold_on_some_tables(
    service: Serving, person: str, role: str, tables: list[str] | None
) -> None:
    browser, _ = logged_in(service.url, person)
    session = browser.get(f"{service.url}/v1/session").json()
    assert (session["role"], session["tables"]) == (role, tables)


def test_a_person_whose_role_is_limited_changes_the_tables_of_its_group_only(
    service: Serving, provider: OpenIdProvider
) -> None:
    now = utc_now()
    with writing(service.engine) as connection:
        for name in ("shop", "other"):
            tags = {"team": name}
            table_store.register(connection, Registration(f"tbl_{name}", f"/lake/{name}", name, now, now, tags=tags))
    browser, _ = logged_in(service.url, "sue")

    def status_of_pause(table: str) -> int:
        json = {"paused": True}
        return browser.put(f"{service.url}/v1/tables/tbl_{table}/policy", json=json).status_code

    assert (status_of_pause("shop"), status_of_pause("other")) == (200, 403)
    assert browser.put(f"{service.url}/v1/pause", json={}).status_code == 403
    # The groups have changed: the next log-in counts, in older sessions of the person as well.
    provider.stop()
    provider.persons["sue"] = ["web"]
    provider.start(service.url)
    # The keys are new, and the service asks for them a few seconds after it has last asked.
    assert eventually(lambda: logged_in(service.url, "sue")[1].status_code == 303, remembered.PAUSE_SECONDS + 10)
    assert browser.get(f"{service.url}/v1/session").json()["tables"] == ["owner:web", "clicks_*"]
    assert status_of_pause("shop") == 403


def test_an_access_token_of_the_issuer_is_a_bearer_token(service: Serving, provider: OpenIdProvider) -> None:
    def call(token: str) -> httpx.Response:
        return httpx.get(f"{service.url}/v1/session", headers={"Authorization": f"Bearer {token}"})

    answer = call(provider.access_token())
    assert (answer.status_code, answer.json()["role"], answer.json()["way"]) == (200, "reader", "bearer")
    assert answer.json()["expires_at"] is not None
    assert call(provider.access_token("https://another.example")).status_code == 401
    assert call(provider.access_token()[:-4] + "AAAA").status_code == 401


def test_new_keys_are_fetched_when_the_provider_changes_them(service: Serving, provider: OpenIdProvider) -> None:
    old = provider.access_token()
    headers = {"Authorization": f"Bearer {old}"}
    assert httpx.get(f"{service.url}/v1/session", headers=headers).status_code == 200
    provider.stop()
    # The service uses the keys that it knows while the provider is away.
    assert httpx.get(f"{service.url}/v1/session", headers=headers).status_code == 200
    provider.start(service.url)
    headers = {"Authorization": f"Bearer {provider.access_token()}"}

    assert eventually(
        lambda: httpx.get(f"{service.url}/v1/session", headers=headers).status_code == 200,
        remembered.PAUSE_SECONDS + 10,
    )
    _, answer = logged_in(service.url, "ada")
    assert answer.status_code == 303
