"""Tests calls that exceed the permissions of their tokens."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient

from service.access import token_store
from service.access.token import Role, issued
from service.api.app import create_app
from service.api.authentication import Failures
from service.db.engine import writing

if TYPE_CHECKING:
    from collections.abc import Callable

    import sqlalchemy as sa

    from service.api.dependencies import AppContext
    from tests.integration.control_plane.conftest import FakeClock


@pytest.fixture
def token(sqlite: sa.Engine, clock: FakeClock) -> Callable[..., tuple[str, dict[str, str]]]:
    """Returns the id of a new token, and the headers of a call with it."""

    def make(role: Role, *groups: str, **more: Any) -> tuple[str, dict[str, str]]:
        bearer, made = issued("t", role, clock(), groups=groups or None, **more)
        with writing(sqlite) as connection:
            token_store.add(connection, made)
        return made.id, {"Authorization": f"Bearer {bearer}"}

    return make


@pytest.fixture
def table(client: TestClient) -> str:
    """A table that was registered before any token existed."""
    answer = client.post("/v1/tables", json={"base_path": "/lake/orders"})
    assert client.post(f"/v1/tables/{answer.json()['id']}/jobs", json={"kind": "audit"}).status_code == 202
    return str(answer.json()["id"])


def _leased(client: TestClient, worker: dict[str, str]) -> str:
    leased = client.post("/v1/worker/leases", json={"worker_id": "w1"}, headers=worker)
    assert leased.status_code == 200, leased.text
    return str(leased.json()["plan"]["job_id"])


def _beat(client: TestClient, job: str, headers: dict[str, str], **more: str) -> str:
    answer = client.post(f"/v1/worker/leases/{job}/heartbeat", json={"attempt": 1, **more}, headers=headers)
    return str(answer.json().get("answer", answer.status_code))


def test_a_lease_belongs_to_the_token_and_the_worker_that_took_it(
    client: TestClient, table: str, token: Callable[..., tuple[str, dict[str, str]]]
) -> None:
    _, owner = token(Role.WORKER, "default")
    _, other = token(Role.WORKER, "default")
    job = _leased(client, owner)

    assert _beat(client, job, owner, worker_id="w1") == "continue"
    assert _beat(client, job, owner) == "continue"  # A worker of an earlier version sends no id.
    assert _beat(client, job, owner, worker_id="w2") == "lost"
    assert _beat(client, job, other, worker_id="w1") == "lost"
    result = {"attempt": 1, "worker_id": "w1", "result": {"outcome": "failed"}}
    assert client.post(f"/v1/worker/leases/{job}/result", json=result, headers=other).status_code == 409
    assert client.post(f"/v1/worker/leases/{job}/result", json=result, headers=owner).status_code == 200


def test_a_worker_joins_only_the_groups_of_its_token(
    client: TestClient, token: Callable[..., tuple[str, dict[str, str]]]
) -> None:
    _, large = token(Role.WORKER, "large", "huge")
    _, early = token(Role.WORKER)  # A token of an earlier version names no group.

    def ask(group: str, headers: dict[str, str]) -> int:
        body = {"worker_id": "w", "worker": {"group": group}}
        return client.post("/v1/worker/leases", json=body, headers=headers).status_code

    assert [ask(group, large) for group in ("large", "huge", "default", "other")] == [204, 204, 403, 403]
    assert client.post("/v1/worker/leases", json={"worker_id": "w"}, headers=large).status_code == 403
    assert ask("default", early) == ask("large", early) == 204
    assert [each["id"] for each in client.get("/v1/workers", headers=token(Role.READER)[1]).json()["items"]] == ["w"]


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_a_token_that_has_ended_ends_its_leases_and_streams(
    app_context: AppContext,
    client: TestClient,
    table: str,
    clock: FakeClock,
    token: Callable[..., tuple[str, dict[str, str]]],
    how: str,
) -> None:
    soon = {"expires_at": clock() + timedelta(seconds=10)}
    worker_id, worker = token(Role.WORKER, "default", **soon)
    reader_id, reader = token(Role.READER, **soon)
    job = _leased(client, worker)
    stream_has_ended = threading.Event()

    def listen() -> None:
        client.get("/v1/events", headers=reader)
        stream_has_ended.set()

    threading.Thread(target=listen, daemon=True).start()
    assert not stream_has_ended.wait(1.5)

    if how == "expired":
        clock.advance(11)
    else:
        with writing(app_context.database.engine) as connection:
            for each in (worker_id, reader_id):
                token_store.revoke(connection, each, clock())

    assert stream_has_ended.wait(60)
    assert (
        _beat(client, job, worker) == "401"
    )  # The lease therefore expires, and the worker stops by itself before that.
    assert client.get("/v1/tables", headers=reader).status_code == 401


def test_a_token_has_a_limited_share_of_the_event_streams(
    app_context: AppContext, token: Callable[..., tuple[str, dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.api.events.Streams.most_of_token", 1)
    _, greedy = token(Role.READER)
    _, modest = token(Role.READER)
    app = create_app(app_context)
    with TestClient(app) as client:

        def open_stream(headers: dict[str, str]) -> bool:
            return client.get("/v1/events", headers=headers).status_code == 200

        first = threading.Thread(target=open_stream, args=(greedy,), daemon=True)
        first.start()
        deadline = threading.Event()
        assert not deadline.wait(1)
        refused = client.get("/v1/events", headers=greedy)
        assert (refused.status_code, refused.json()["type"]) == (429, "/problems/too-many-streams")
        page = client.get("/v1/events", headers={**modest, "Accept": "application/json"})
        assert page.status_code == 200
        app_context.database.notifier.close()
        first.join(5)


def test_failed_authentications_take_longer_and_longer() -> None:
    failures = Failures()
    pauses = [failures.pause_after("a", now) for now in range(15)]
    assert pauses[: Failures.FREE] == [0.0] * Failures.FREE
    assert pauses[Failures.FREE :] == sorted(pauses[Failures.FREE :])
    assert pauses[-1] == Failures.MOST_SECONDS
    assert failures.pause_after("b", 15) == 0.0
    assert failures.pause_after("a", 15 + Failures.FORGOTTEN_AFTER_SECONDS) == 0.0


def test_the_failures_of_a_million_addresses_are_not_all_remembered() -> None:
    failures = Failures()
    for number in range(Failures.MOST_ADDRESSES + 1):
        for _ in range(Failures.FREE if number == 0 else 1):
            failures.pause_after(str(number), 0.0)
    assert failures.pause_after("0", 1.0) == 0.0
