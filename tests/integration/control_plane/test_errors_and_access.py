"""Tests the common parts of all calls: problem documents, tokens and roles, limits, the audit log, OpenAPI."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from jobs.storage.permissions import Permissions
from service.access import token_store
from service.access.token import Bearer, Role, Token, digest
from service.api.app import create_app
from service.api.health import worker_check
from service.db.engine import open_engine, writing
from tests.integration.control_plane.databases import open_sqlite
from tests.support.contexts import changed

if TYPE_CHECKING:
    from pathlib import Path

    from service.api.dependencies import AppContext

MakeToken = Callable[[Role], dict[str, str]]

SECRET_LOCK = {
    "provider": "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
    "options": {"hoodie.aws.secret.key": "hush"},
}


def test_an_unknown_address_is_a_problem_document(client: TestClient) -> None:
    for path in ("/v1/nothing", "/nothing", "/v1/tables/"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["type"] == "/problems/route-not-found"
        assert answer.json()["instance"] == path


def test_each_answer_says_how_long_the_service_took(client: TestClient) -> None:
    for path in ("/v1/tables", "/v1/nonsense", "/docs"):
        found = re.search(r"total;dur=(\d+\.\d)", client.get(path).headers["server-timing"])
        assert found
        assert 0 < float(found[1]) < 60_000


def test_a_method_that_an_address_does_not_know_is_a_problem_document(client: TestClient) -> None:
    answer = client.put("/v1/tables", json={})
    assert answer.status_code == 405
    assert answer.json()["type"] == "/problems/method-not-allowed"
    assert answer.headers["allow"]


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b'{"base_path": "\xff"}', "is not UTF-8, at byte 16"),
        (b'{"base_path": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "is nested too deeply"),
        (b'{"base_path": ' + b"9" * 5000 + b"}", "has a number with too many digits"),
    ],
    ids=["UTF-8", "nested", "digits"],
)
def test_a_body_that_cannot_be_read_is_refused_with_the_reason(client: TestClient, body: bytes, fault: str) -> None:
    answer = client.post("/v1/tables", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    told = answer.json()
    assert told["type"] == "/problems/body-not-json"
    assert told["detail"] == f"the body of the request {fault}"
    assert told["errors"] == [{"field": "", "message": fault}]
    assert "UTF-8" in told["hint"]


def test_messages_about_values_say_what_the_value_must_be(client: TestClient) -> None:
    commits = client.put("/v1/policies/x", json={"compaction": {"commits": 0}}).json()
    assert commits["detail"] == "compaction.commits: must be greater than or equal to 1"
    index = {"type": "bucket", "num_buckets": 4, "hash_fields": []}
    fields = client.post("/v1/tables", json={"base_path": "/x", "index": index}).json()
    assert fields["detail"] == "index.hash_fields: must have at least 1 item, not 0"
    since = client.get("/v1/jobs?since=yesterday").json()
    assert since["detail"] == "since: must be a time, such as 2026-01-31T08:00:00Z"
    times = {"starts_at": "2026-01-02T00:00:00Z", "ends_at": "2026-01-01T00:00:00Z"}
    freeze = client.put("/v1/freezes/f", json=times).json()
    assert freeze["detail"] == "the body of the request: ends_at must be later than starts_at"


def test_an_unexpected_error_reveals_no_details(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    answer = client.post("/v1/tables", json={"base_path": "/lake/broken"})
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "/problems/internal-error"
    assert "secret" not in answer.text
    assert "ZeroDivisionError" in caplog.text


def test_applications_of_one_process_share_their_routes_and_nothing_else(
    client: TestClient, app_context: AppContext, table_id: str, tmp_path: Path
) -> None:
    other = create_app(changed(app_context, engine=open_sqlite(tmp_path / "other.db")))
    shared = [route for route in other.router.routes if any(route is each for each in client.app.router.routes)]  # type: ignore[attr-defined]
    assert len(shared) > 20
    with TestClient(other, base_url="http://127.0.0.1") as elsewhere:
        assert elsewhere.get("/v1/tables").json()["items"] == []
    assert [each["id"] for each in client.get("/v1/tables").json()["items"]] == [table_id]


def test_an_unreachable_database_is_reported(app_context: AppContext) -> None:
    away = changed(app_context, engine=open_engine("sqlite:////no/such/folder/x.db"))
    with TestClient(create_app(away), base_url="http://127.0.0.1") as client:
        for path in ("/v1/tables", "/readyz"):
            answer = client.get(path)
            assert (answer.status_code, answer.json()["type"]) == (503, "/problems/database-unavailable")
        assert client.get("/healthz").json() == {"status": "ok"}


def test_an_old_database_is_not_ready(app_context: AppContext, tmp_path: Any) -> None:
    empty = changed(app_context, engine=open_engine(f"sqlite:///{tmp_path}/empty.db"))
    with TestClient(create_app(empty), base_url="http://127.0.0.1") as client:
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()["type"]) == (503, "/problems/not-ready")
        assert {name: check["status"] for name, check in answer.json()["checks"].items()} == {
            "database": "failing",
            "scheduler": "ok",
            "workers": "warning",
        }


def test_readiness_tells_of_tasks_and_of_the_workers_of_each_group(
    client: TestClient, app_context: AppContext, table_id: str
) -> None:
    def checks(status: int = 200) -> Any:
        client.app.state.worker_check = worker_check(app_context.database.engine, app_context.database.clock)  # type: ignore[attr-defined]
        answer = client.get("/readyz")
        assert answer.status_code == status
        return answer.json()["checks"]

    none = checks()
    assert (none["database"]["status"], none["scheduler"]["status"]) == ("ok", "ok")
    assert none["workers"] == {
        "status": "warning",
        "detail": "No worker is ready: jobs stay queued.",
        "groups": {"default": {"ready": 0, "waiting": 0, "queued": 0}},
    }
    client.post("/v1/worker/announcements", json={"worker_id": "w1", "worker": {"group": "default", "state": "ready"}})
    client.post("/v1/worker/announcements", json={"worker_id": "w2", "worker": {"group": "big", "state": "starting"}})
    groups = {"big": {"ready": 0, "waiting": 1, "queued": 0}, "default": {"ready": 1, "waiting": 0, "queued": 0}}
    assert checks()["workers"] == {"status": "ok", "detail": "", "groups": groups}
    client.put(f"/v1/tables/{table_id}/policy", json={"worker_group": "big"})
    client.post(f"/v1/tables/{table_id}/jobs", json={"kind": "audit"})
    lacking = checks()["workers"]
    assert (lacking["status"], lacking["groups"]["big"]["queued"]) == ("warning", 1)
    assert lacking["detail"] == "Jobs are queued for groups without a ready worker: big."
    app_context.monitoring.tasks.expect("observe", 1)
    app_context.monitoring.tasks.ended("observe", fails=True)
    failing = checks(503)
    assert failing["scheduler"] == {"status": "failing", "detail": "These background tasks fail: observe."}
    assert failing["database"]["status"] == "ok"


def test_a_type_of_problem_leads_to_its_explanation(client: TestClient) -> None:
    problem = client.get("/v1/jobs/none").json()
    explained = client.get(problem["type"]).json()
    assert (explained["type"], explained["title"], explained["status"]) == ("job-not-found", problem["title"], 404)
    assert client.get("/problems/none").status_code == 404


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_that_is_too_large_is_refused(app_context: AppContext, announced: bool) -> None:
    small = changed(app_context, max_request_bytes=1024)
    body = json.dumps({"base_path": "/" + "x" * 2000}).encode()
    content = body if announced else iter([body[:1000], body[1000:]])
    with TestClient(create_app(small), base_url="http://127.0.0.1") as client:
        answer = client.post("/v1/tables", content=content, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["type"]) == (413, "/problems/request-too-large")
        assert client.post("/v1/tables", json={"base_path": "/lake/a"}).status_code == 201


def test_from_the_first_token_on_every_call_needs_one(client: TestClient, make_token: MakeToken) -> None:
    assert client.get("/v1/tables").status_code == 200
    headers = make_token(Role.READER)
    answer = client.get("/v1/tables")
    assert (answer.status_code, answer.json()["type"]) == (401, "/problems/unauthenticated")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert client.get("/v1/tables", headers=headers).status_code == 200
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("value", ["Bearer x", "Bearer gk_a_b", "Basic YTpi", "Bearer", "Bearer gk_\u00fc_x"])
def test_a_wrong_token_is_refused(client: TestClient, make_token: MakeToken, value: str) -> None:
    make_token(Role.ADMIN)
    assert client.get("/v1/tables", headers={"Authorization": value.encode()}).status_code == 401


def test_a_token_with_another_secret_or_that_was_revoked_is_refused(
    client: TestClient, make_token: MakeToken, app_context: AppContext, clock: Any
) -> None:
    headers = make_token(Role.ADMIN)
    assert client.get("/v1/tables", headers={"Authorization": headers["Authorization"] + "0"}).status_code == 401
    bearer = Bearer.parse(headers["Authorization"].removeprefix("Bearer "))
    assert bearer is not None
    with writing(app_context.database.engine) as connection:
        token_store.revoke(connection, bearer.id, clock())
    assert client.get("/v1/tables", headers=headers).status_code == 401
    # A service that has had a token still requires one after the last one was revoked.
    assert client.get("/v1/tables").status_code == 401


ALLOWED: list[tuple[str, str, dict[str, Any] | None, set[Role]]] = [
    ("GET", "/v1/tables", None, {Role.READER, Role.OPERATOR, Role.ADMIN}),
    ("GET", "/v1/jobs", None, {Role.READER, Role.OPERATOR, Role.ADMIN}),
    ("POST", "/v1/tables/none/jobs", {"kind": "audit"}, {Role.OPERATOR, Role.ADMIN}),
    ("POST", "/v1/tables/none/poll", None, {Role.OPERATOR, Role.ADMIN}),
    ("POST", "/v1/jobs/none/cancel", None, {Role.OPERATOR, Role.ADMIN}),
    ("GET", "/v1/tables/none/lock", None, {Role.READER, Role.OPERATOR, Role.ADMIN}),
    ("DELETE", "/v1/tables/none/lock?reason=x", None, {Role.OPERATOR, Role.ADMIN}),
    ("POST", "/v1/tables", {"base_path": "/lake/broken"}, {Role.ADMIN}),
    ("PATCH", "/v1/tables/none", {}, {Role.ADMIN}),
    ("DELETE", "/v1/tables/none", None, {Role.ADMIN}),
    ("POST", "/v1/worker/leases", {"worker_id": "w"}, {Role.WORKER}),
    ("POST", "/v1/worker/leases/none/heartbeat", {"attempt": 1}, {Role.WORKER}),
    ("POST", "/v1/worker/leases/none/result", {"attempt": 1, "result": {"outcome": "unknown"}}, {Role.WORKER}),
]


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize(("method", "path", "body", "roles"), ALLOWED)
def test_each_role_may_make_its_own_calls_only(
    client: TestClient,
    make_token: MakeToken,
    role: Role,
    method: str,
    path: str,
    body: dict[str, Any] | None,
    roles: set[Role],
) -> None:
    answer = client.request(method, path, json=body, headers=make_token(role))
    if role in roles:
        # The call may fail for another reason, but its role was accepted.
        kind = answer.json().get("type") if answer.content else None
        assert kind not in ("/problems/forbidden", "/problems/unauthenticated")
    else:
        assert (answer.status_code, answer.json()["type"]) == (403, "/problems/forbidden")


def test_every_call_below_v1_is_guarded(client: TestClient, make_token: MakeToken) -> None:
    make_token(Role.ADMIN)
    calls = [
        (method.upper(), path)
        for path, operations in client.get("/openapi.json").json()["paths"].items()
        for method in operations
        if path.startswith("/v1/")
    ]
    assert len(calls) >= 12
    for method, path in calls:
        assert client.request(method, path, json={"kind": "audit"}).status_code == 401, (method, path)


def test_the_local_worker_has_a_token_that_is_in_no_database(
    app_context: AppContext, make_token: MakeToken, clock: Any
) -> None:
    bearer = Bearer.new()
    local = Token(bearer.id, "local worker", Role.WORKER, digest(bearer.secret), clock())
    with TestClient(create_app(changed(app_context, local_worker=local)), base_url="http://127.0.0.1") as client:
        headers = {"Authorization": f"Bearer {bearer}"}
        for _ in range(2):  # The token works before and after another token exists.
            assert client.post("/v1/worker/leases", json={"worker_id": "w"}, headers=headers).status_code == 204
            assert client.get("/v1/tables", headers=headers).status_code == 403
            make_token(Role.READER)
        wrong = {"Authorization": f"Bearer {bearer}0"}
        assert client.post("/v1/worker/leases", json={"worker_id": "w"}, headers=wrong).status_code == 401


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}])
def test_a_service_without_tokens_refuses_calls_of_foreign_web_pages(
    client: TestClient, headers: dict[str, str]
) -> None:
    answer = client.post("/v1/jobs/none/cancel", headers=headers)
    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/forbidden")


def test_a_service_without_tokens_accepts_calls_of_its_own_page(client: TestClient) -> None:
    assert client.get("/v1/tables", headers={"Origin": "http://localhost:8080"}).status_code == 200


def test_with_tokens_no_root_is_allowed_until_one_is_set(app_context: AppContext, make_token: MakeToken) -> None:
    admin = make_token(Role.ADMIN)
    with TestClient(create_app(app_context), base_url="http://127.0.0.1") as client:
        answer = client.post("/v1/tables", json={"base_path": "/lake/a"}, headers=admin)
        assert (answer.status_code, answer.json()["type"]) == (403, "/problems/path-not-allowed")
    set_up = changed(app_context, permissions=Permissions(("/lake",)))
    with TestClient(create_app(set_up), base_url="http://127.0.0.1") as client:
        assert client.post("/v1/tables", json={"base_path": "/lake/a"}, headers=admin).status_code == 201
        assert client.post("/v1/tables", json={"base_path": "/etc/a"}, headers=admin).status_code == 403


def test_each_changing_call_leaves_one_line_in_the_audit_log(
    app_context: AppContext, make_token: MakeToken, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "groundskeeper.audit")
    admin = make_token(Role.ADMIN)
    app = create_app(changed(app_context, permissions=Permissions(("/lake",))))
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        client.get("/v1/tables", headers=admin)
        client.post("/v1/tables", json={"base_path": "/lake/a", "lock": SECRET_LOCK}, headers=admin)
        client.post("/v1/tables", json={"base_path": "/lake/b"})
        client.post("/v1/tables", json={"base_path": "/lake/broken"}, headers=admin)
    lines = [json.loads(record.message) for record in caplog.records if record.name == "groundskeeper.audit"]
    assert [(line["method"], line["path"], line["status"]) for line in lines] == [
        ("POST", "/v1/tables", 201),
        ("POST", "/v1/tables", 401),
        ("POST", "/v1/tables", 500),
    ]
    assert lines[0]["who"].startswith("a admin (")
    assert lines[1]["who"] is None
    assert "hush" not in caplog.text
    assert admin["Authorization"] not in caplog.text


def test_the_api_describes_itself(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    ids = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(ids) == len(set(ids))
    for path in document["paths"].values():
        for operation in path.values():
            assert operation["tags"]
            assert operation["summary"]
    assert "HTTPValidationError" not in json.dumps(document)
    submit = document["paths"]["/v1/tables/{table_id}/jobs"]["post"]
    assert set(submit["responses"]) >= {"200", "202", "401", "403", "404", "409", "422"}
    assert "bucket_expansion" in submit["requestBody"]["content"]["application/json"]["examples"]
    assert client.get("/docs").status_code == 200
