"""Tests /v1/webhooks, /v1/deliveries, /v1/event-types, and the published events of tables and jobs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from cloudevents.v1.http import from_json
from fastapi.testclient import TestClient
from jsonschema import Draft202012Validator

from jobs.contract import ExpansionStep, Outcome, Problem, Progress, Result
from service.access.secret_cipher import SecretCipher
from service.access.token import Role
from service.api.app import create_app
from service.api.event_catalogue import CATALOGUE
from service.db import schema
from service.db.engine import reading
from service.delivery import outbox
from service.events.event import EventType
from service.queue import recovery
from tests.support.contexts import changed
from tests.support.pages import members

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import sqlalchemy as sa

    from service.api.dependencies import AppContext
    from service.events.event import Event
    from tests.integration.control_plane.conftest import FakeClock

HOOK = {"url": "https://hooks.example.com/lake"}


def create(client: TestClient, **wanted: Any) -> dict[str, Any]:
    answer = client.post("/v1/webhooks", json={**HOOK, **wanted})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def published(engine: sa.Engine) -> list[Event]:
    with reading(engine) as connection:
        return [each.event for each in outbox.after(connection, 0, 1000)]


def types(engine: sa.Engine) -> list[str]:
    return [event.type for event in published(engine)]


@pytest.fixture(autouse=True)
def every_event_fits_its_schema(sqlite: sa.Engine) -> Iterator[None]:
    """Validates each event that a test publishes against the catalogue."""
    yield
    for event in published(sqlite):
        Draft202012Validator(CATALOGUE[EventType(event.type)].schema).validate(event.data)
        if event.table_id is not None:
            assert event.data["table"]["id"] == event.table_id


def test_a_secret_is_shown_once_and_stored_sealed(client: TestClient, sqlite: sa.Engine) -> None:
    made = create(client, headers={"Authorization": "Bearer mine-alone"}, description="cache")
    secret = made["secret"]
    assert secret.startswith("whsec_")
    assert made["headers"] == {"Authorization": "******"}
    shown = client.get(f"/v1/webhooks/{made['id']}")
    listed = client.get("/v1/webhooks")
    for answer in (shown, listed):
        assert secret not in answer.text
        assert "mine-alone" not in answer.text
    assert "secret" not in shown.json()
    with reading(sqlite) as connection:
        [row] = connection.execute(schema.webhooks.select()).all()
    assert secret not in str(row)
    assert "mine-alone" not in str(row)


def test_a_webhook_without_filters_gets_all_events(client: TestClient) -> None:
    made = create(client)
    assert (made["types"], made["tables"], made["headers"]) == (["*"], [], {})
    assert (made["enabled"], made["pending"], made["dead"]) == (True, 0, 0)


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        ({"url": "http://hooks.example.com/"}, "url-not-allowed"),
        ({"url": "https://127.0.0.1/"}, "url-not-allowed"),
        ({"url": "https://user:pw@example.com/"}, "url-not-allowed"),
        ({"headers": {"Host": "x"}}, "header-not-allowed"),
        ({"headers": {"X-A": "a\r\nX-B: c"}}, "header-not-allowed"),
        ({"types": []}, "params-invalid"),
        ({"types": ["commit.publish"]}, "params-invalid"),
        ({"types": ["jobs.*"]}, "params-invalid"),
        ({"typos": ["*"]}, "params-invalid"),
        ({"tables": [""]}, "params-invalid"),
        ({"description": "a\0b"}, "params-invalid"),
    ],
)
def test_invalid_members_are_refused(client: TestClient, wanted: dict[str, Any], problem: str) -> None:
    answer = client.post("/v1/webhooks", json={**HOOK, **wanted})
    assert (answer.status_code, answer.json()["type"]) == (422, f"/problems/{problem}")
    assert client.get("/v1/webhooks").json()["items"] == []


def test_a_webhook_is_changed_member_by_member(client: TestClient) -> None:
    made = create(client, headers={"X-A": "one", "X-B": "two"})
    path = f"/v1/webhooks/{made['id']}"
    changed = client.patch(path, json={"types": ["job.*"], "headers": {"X-A": "******", "X-C": "three"}}).json()
    assert changed["types"] == ["job.*"]
    assert changed["url"] == HOOK["url"]
    assert set(changed["headers"]) == {"X-A", "X-C"}
    for wrong in ({"url": "http://127.0.0.1/"}, {"url": None}, {"headers": {"Host": "x"}}, {"id": "x"}):
        assert client.patch(path, json=wrong).status_code == 422
    assert client.patch("/v1/webhooks/none", json={}).status_code == 404
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404
    assert client.delete(path).status_code == 404


def test_a_mask_stands_for_the_stored_header(client: TestClient, app_context: AppContext) -> None:
    made = create(client, headers={"X-A": "one"})
    client.patch(f"/v1/webhooks/{made['id']}", json={"headers": {"X-A": "******", "X-B": "two"}})
    with reading(app_context.database.engine) as connection:
        [row] = connection.execute(schema.webhooks.select()).all()
    assert json.loads(app_context.database.cipher.open(row.sealed_headers)) == {"X-A": "one", "X-B": "two"}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://hooks.chat.example/services/T0/B1/x9y8", "https://hooks.chat.example/******"),
        ("https://hooks.example.com:8443?key=x9y8", "https://hooks.example.com:8443/******"),
        ("https://hooks.example.com/", "https://hooks.example.com/"),
    ],
)
def test_only_admins_see_the_secret_urls_of_chats(
    client: TestClient, make_token: Callable[[Role], dict[str, str]], url: str, shown: str
) -> None:
    made = create(client, url=url)
    assert made["url"] == url
    for role, expected in ((Role.READER, shown), (Role.OPERATOR, shown), (Role.ADMIN, url)):
        headers = make_token(role)
        [listed] = client.get("/v1/webhooks", headers=headers).json()["items"]
        one = client.get(f"/v1/webhooks/{made['id']}", headers=headers).json()
        assert (listed["url"], one["url"]) == (expected, expected)


def test_webhooks_are_listed_page_by_page(client: TestClient, clock: FakeClock) -> None:
    made = []
    for _ in range(5):
        clock.advance(1)
        made.append(create(client)["id"])
    assert members(client, "/v1/webhooks", "id", limit=2) == made


def test_a_webhook_is_disabled_and_enabled(client: TestClient, sqlite: sa.Engine) -> None:
    made = create(client)
    other = create(client)
    path = f"/v1/webhooks/{made['id']}"
    disabled = client.post(f"{path}/disable").json()
    assert (disabled["enabled"], disabled["disabled_because"]) == (False, "anybody disabled it.")
    assert client.post(f"{path}/disable").status_code == 200
    assert types(sqlite) == ["webhook.disabled"]
    assert client.get(f"/v1/webhooks/{other['id']}").json()["pending"] == 1
    for call, body in (("test", None), ("replay", {"since": "2026-01-01T00:00:00Z"})):
        answer = client.post(f"{path}/{call}", json=body)
        assert (answer.status_code, answer.json()["type"]) == (409, "/problems/webhook-disabled")
    assert client.post(f"{path}/enable").json()["enabled"] is True


def test_deliveries_are_shown_and_replayed(client: TestClient, table_id: str) -> None:
    made = create(client)
    path = f"/v1/webhooks/{made['id']}"
    tested = client.post(f"{path}/test")
    assert tested.status_code == 202
    client.post(f"/v1/tables/{table_id}/jobs", json={"kind": "audit"})
    page = client.get(f"{path}/deliveries", params={"limit": 1}).json()
    assert [item["event_type"] for item in page["items"]] == ["job.queued"]
    rest = client.get(f"{path}/deliveries", params={"cursor": page["next_cursor"]}).json()
    assert [item["id"] for item in rest["items"]] == [tested.json()["id"]]
    assert client.get(f"{path}/deliveries", params={"state": "dead"}).json()["items"] == []
    assert client.get(f"{path}/deliveries", params={"cursor": "x"}).status_code == 422
    one = f"/v1/deliveries/{page['items'][0]['id']}"
    assert client.get(one).json()["table_id"] == table_id
    assert client.post(f"{one}/replay").json()["state"] == "pending"
    assert client.post("/v1/deliveries/none/replay").status_code == 404
    skipped = client.post(f"{one}/skip")
    assert (skipped.status_code, skipped.json()["state"]) == (202, "dead")
    again = client.post(f"{one}/skip")
    assert (again.status_code, again.json()["type"]) == (409, "/problems/delivery-ended")
    assert client.get(path).json()["blocked"] == []
    assert client.post(f"{one}/replay").json()["state"] == "pending"
    replayed = client.post(f"{path}/replay", json={"since": "2025-01-01T00:00:00Z", "until": "2027-01-01T00:00:00Z"})
    # The registration of the table came before the webhook.
    assert replayed.json() == {"replayed": 1, "is_complete": True}
    assert client.post(f"{path}/replay", json={"since": "2026-01-01T00:00:00"}).status_code == 422


def test_a_rotated_secret_is_new_and_the_old_one_has_an_end(client: TestClient, clock: FakeClock) -> None:
    made = create(client)
    rotated = client.post(f"/v1/webhooks/{made['id']}/rotate-secret").json()
    assert rotated["secret"].startswith("whsec_")
    assert rotated["secret"] != made["secret"]
    assert rotated["old_secret_until"] == "2026-01-02T00:00:00Z"


def test_without_a_key_no_webhook_is_made_and_with_another_one_its_headers_are_lost(app_context: AppContext) -> None:
    def client(cipher: SecretCipher) -> TestClient:
        return TestClient(create_app(changed(app_context, cipher=cipher)), base_url="http://127.0.0.1")

    answer = client(SecretCipher([])).post("/v1/webhooks", json=HOOK)
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/secret-key-missing")
    made = create(client(SecretCipher.fresh()), headers={"X-A": "1"})
    other = client(SecretCipher.fresh())
    assert other.get(f"/v1/webhooks/{made['id']}").json()["headers"] == {}
    masked = other.patch(f"/v1/webhooks/{made['id']}", json={"headers": {"X-A": "******"}})
    assert masked.json()["type"] == "/problems/secret-unreadable"


@pytest.mark.parametrize(
    ("method", "path", "needed"),
    [
        ("POST", "/v1/webhooks", Role.ADMIN),
        ("PATCH", "/v1/webhooks/x", Role.ADMIN),
        ("DELETE", "/v1/webhooks/x", Role.ADMIN),
        ("POST", "/v1/webhooks/x/rotate-secret", Role.ADMIN),
        ("POST", "/v1/webhooks/x/test", Role.OPERATOR),
        ("POST", "/v1/webhooks/x/enable", Role.OPERATOR),
        ("POST", "/v1/webhooks/x/disable", Role.OPERATOR),
        ("POST", "/v1/webhooks/x/replay", Role.OPERATOR),
        ("POST", "/v1/deliveries/x/replay", Role.OPERATOR),
        ("POST", "/v1/deliveries/x/skip", Role.OPERATOR),
        ("GET", "/v1/webhooks", Role.READER),
        ("GET", "/v1/webhooks/x/deliveries", Role.READER),
        ("GET", "/v1/event-types", Role.READER),
        ("GET", "/v1/events", Role.READER),
    ],
)
def test_each_call_needs_its_role(
    client: TestClient, make_token: Callable[[Role], dict[str, str]], method: str, path: str, needed: Role
) -> None:
    ranks = [Role.READER, Role.OPERATOR, Role.ADMIN]
    headers = {"Accept": "application/json"}
    for role in ranks:
        answer = client.request(method, path, json={}, headers={**headers, **make_token(role)})
        assert (answer.status_code == 403) is (ranks.index(role) < ranks.index(needed)), (role, answer.text)
    assert client.request(method, path, json={}, headers=headers).status_code == 401


def test_the_catalogue_tells_of_every_type_with_an_event_that_parses(client: TestClient) -> None:
    items = client.get("/v1/event-types").json()["items"]
    assert {item["type"] for item in items} == {each.value for each in EventType}
    for item in items:
        Draft202012Validator(item["data_schema"]).validate(item["example"]["data"])
        assert from_json(json.dumps(item["example"]))["type"] == item["type"]


def lease(client: TestClient) -> None:
    assert client.post("/v1/worker/leases", json={"worker_id": "w"}).status_code == 200


def beat(
    client: TestClient, job: str, step: str | None = None, instants: tuple[str, ...] = (), attempt: int = 1
) -> None:
    progress = Progress(step).to_json() if step else None
    body = {"attempt": attempt, "progress": progress, "instants": list(instants)}
    assert client.post(f"/v1/worker/leases/{job}/heartbeat", json=body).json()["answer"] != "lost"


def report(client: TestClient, job: str, result: Result, attempt: int = 1) -> str:
    body = {"attempt": attempt, "result": result.to_json()}
    return str(client.post(f"/v1/worker/leases/{job}/result", json=body).json()["state"])


def submit(client: TestClient, table_id: str, **wanted: Any) -> str:
    answer = client.post(f"/v1/tables/{table_id}/jobs", json=wanted)
    assert answer.status_code in (200, 202), answer.text
    return str(answer.json()["id"])


EXPANSION = {"kind": "bucket_expansion", "params": {"num_buckets": 8}}
BROKEN = Problem("x", "It broke", retriable=True)
INSTANT = ("20260101120000000",)


def test_each_state_of_a_job_has_an_event(client: TestClient, table_id: str, sqlite: sa.Engine) -> None:
    job = submit(client, table_id, kind="compaction")
    lease(client)
    for _ in range(3):
        beat(client, job, "planning")
    assert report(client, job, Result(Outcome.SUCCEEDED, INSTANT)) == "succeeded"
    assert types(sqlite) == ["table.registered", "job.queued", "job.started", "job.succeeded"]
    data = published(sqlite)[-1].data
    assert data["job"]["id"] == job
    assert data["job"]["instants"] == list(INSTANT)
    assert data["table"] == {"id": table_id, "name": "orders", "base_path": "/lake/orders"}


def test_a_job_that_is_repeated_by_its_key_is_queued_once(client: TestClient, table_id: str, sqlite: sa.Engine) -> None:
    for _ in range(2):
        client.post(f"/v1/tables/{table_id}/jobs", json={"kind": "audit"}, headers={"Idempotency-Key": "k"})
    assert types(sqlite).count("job.queued") == 1


def test_each_attempt_has_an_event(client: TestClient, table_id: str, sqlite: sa.Engine, clock: FakeClock) -> None:
    job = submit(client, table_id, kind="compaction")
    for attempt in (1, 2, 3):
        lease(client)  # The attempt is too short for a heartbeat.
        report(client, job, Result(Outcome.FAILED, error=BROKEN), attempt)
        clock.advance(1000)
    told = [(event.type, event.data["job"]["attempt"]) for event in published(sqlite)[1:]]
    assert told == [
        ("job.queued", 0),
        ("job.started", 1),
        ("job.queued", 1),
        ("job.started", 2),
        ("job.queued", 2),
        ("job.started", 3),
        ("job.failed", 3),
    ]
    assert published(sqlite)[-1].data["job"]["error"]["title"] == "It broke"


def test_a_lost_worker_has_an_event(
    client: TestClient, table_id: str, sqlite: sa.Engine, clock: FakeClock, app_context: AppContext
) -> None:
    submit(client, table_id, kind="compaction")
    for _ in range(3):
        lease(client)
        clock.advance(31)
        recovery.run_once(app_context.database.engine, app_context.database.notifier, clock)
    assert types(sqlite)[1:] == ["job.queued", "job.queued", "job.queued", "job.failed"]
    assert published(sqlite)[-1].data["job"]["error"]["type"] == "worker-lost"


def test_a_cancelled_job_has_an_event_when_it_has_ended(client: TestClient, table_id: str, sqlite: sa.Engine) -> None:
    queued = submit(client, table_id, kind="compaction")
    for _ in range(2):
        client.post(f"/v1/jobs/{queued}/cancel")
    running = submit(client, table_id, kind="compaction")
    lease(client)
    client.post(f"/v1/jobs/{running}/cancel")
    assert types(sqlite).count("job.cancelled") == 1
    report(client, running, Result(Outcome.CANCELLED, error=BROKEN))
    assert types(sqlite).count("job.cancelled") == 2


def test_each_step_of_an_expansion_has_one_event(client: TestClient, table_id: str, sqlite: sa.Engine) -> None:
    job = submit(client, table_id, **EXPANSION)
    lease(client)
    beat(client, job, "planning")
    for step in ("rewriting", ExpansionStep.DRAINING, "catching up, round 1", ExpansionStep.DRAINING, "committing"):
        beat(client, job, step, INSTANT)
    assert "expansion.committed" not in types(sqlite)
    beat(client, job, ExpansionStep.SETTLING, INSTANT)
    beat(client, job, ExpansionStep.SETTLING, INSTANT)
    report(client, job, Result(Outcome.SUCCEEDED, INSTANT))
    assert types(sqlite)[1:] == [
        "job.queued",
        "job.started",
        "expansion.draining",
        "expansion.committed",
        "job.succeeded",
    ]
    assert published(sqlite)[3].data["expansion"]["instant"] == INSTANT[0]


def test_an_expansion_with_steps_too_short_to_be_seen_still_has_the_event_of_its_commit(
    client: TestClient, table_id: str, sqlite: sa.Engine
) -> None:
    job = submit(client, table_id, **EXPANSION)
    lease(client)
    report(client, job, Result(Outcome.SUCCEEDED, INSTANT))
    assert types(sqlite)[2:] == ["job.started", "expansion.committed", "job.succeeded"]


@pytest.mark.parametrize(
    ("steps", "result", "is_aborted"),
    [
        (["rewriting"], Result(Outcome.CANCELLED, INSTANT, error=BROKEN), True),
        ([ExpansionStep.DRAINING], Result(Outcome.FAILED, INSTANT, error=replace(BROKEN, retriable=False)), True),
        # The job was refused before its begin, and its event says this.
        ([], Result(Outcome.FAILED, error=replace(BROKEN, retriable=False)), False),
        # The expansion is committed, even if a later step failed.
        ([ExpansionStep.SETTLING], Result(Outcome.FAILED, INSTANT, error=replace(BROKEN, retriable=False)), False),
    ],
)
def test_an_expansion_is_aborted_only_when_it_had_begun_and_was_undone(
    client: TestClient, table_id: str, sqlite: sa.Engine, steps: list[str], result: Result, is_aborted: bool
) -> None:
    job = submit(client, table_id, **EXPANSION)
    lease(client)
    for step in steps:
        beat(client, job, step, result.instants)
    report(client, job, result)
    assert ("expansion.aborted" in types(sqlite)) is is_aborted


def test_a_dry_run_of_an_expansion_expands_nothing(client: TestClient, table_id: str, sqlite: sa.Engine) -> None:
    job = submit(client, table_id, **EXPANSION, dry_run=True)
    lease(client)
    report(client, job, Result(Outcome.SUCCEEDED))
    assert types(sqlite)[1:] == ["job.queued", "job.started", "job.succeeded"]
    assert published(sqlite)[-1].data["job"]["dry_run"] is True


def test_a_webhook_for_one_table_gets_the_events_of_that_table(client: TestClient, table_id: str) -> None:
    hook = create(client, tables=["ord*"], types=["job.*"])
    other = create(client, tables=["custo*"])
    submit(client, table_id, kind="audit")
    pending = {item["id"]: item["pending"] for item in client.get("/v1/webhooks").json()["items"]}
    assert pending == {hook["id"]: 1, other["id"]: 0}


def test_events_of_a_table_outlive_it(client: TestClient, table_id: str, sqlite: sa.Engine) -> None:
    hook = create(client)
    job = submit(client, table_id, kind="audit")
    client.post(f"/v1/jobs/{job}/cancel")
    assert client.delete(f"/v1/tables/{table_id}").status_code == 204
    assert types(sqlite) == ["table.registered", "job.queued", "job.cancelled"]
    assert client.get(f"/v1/webhooks/{hook['id']}").json()["pending"] == 2
