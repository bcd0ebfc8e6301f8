"""Calls find their operations without FastAPI's router, and get the same answers as with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from service.api.app import create_app
from service.api.operations import Operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.api.dependencies import AppContext

JSON = {"Content-Type": "application/json", "X-Request-Id": "r"}
BODY = b'{"kind": "compaction", "dry_run": true}'
CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/v1/tables?limit=5", {}),
    ("GET", "/v1/tables?limit=0&since=x&tag=%00", {}),
    ("GET", "/v1/tables?limit=1&limit=2", {}),
    ("GET", "/v1/tables?no=1", {}),
    ("GET", "/v1/tables/", {}),
    ("GET", "/v1/tables/tbl_away", {}),
    ("GET", f"/v1/tables/{'x' * 70}", {}),
    ("GET", "/v1/tables/a%2Fb", {}),
    ("GET", "/v1/jobs?kind=cleaning&kind=no&state=queued", {}),
    ("GET", "/v1/jobs?cursor=x", {}),
    ("GET", "/v1/policies/a/b/c", {}),
    ("GET", "/v1/policies/", {}),
    ("GET", "/problems/job-conflict", {}),
    ("GET", "/healthz", {}),
    ("GET", "/v1/nothing", {}),
    ("GET", "/v1/jobs/job_1/log?level=WARNING&format=text", {}),
    ("HEAD", "/v1/tables", {}),
    ("PUT", "/v1/jobs", {"content": b"{}"}),
    ("DELETE", "/v1/tables/tbl_away", {}),
    ("POST", "/v1/tables/tbl_away/jobs", {"content": BODY}),
    ("POST", "/v1/tables/tbl_away/jobs", {"content": b""}),
    ("POST", "/v1/tables/tbl_away/jobs", {"content": b'{"kind": '}),
    ("POST", "/v1/tables/tbl_away/jobs", {"content": b'{"kind": "x", "y": 1}'}),
    ("POST", "/v1/tables/tbl_away/jobs", {"content": b"[" * 100_000}),
    ("POST", "/v1/tables/tbl_away/jobs", {"content": b'"\xff"'}),
    ("POST", "/v1/tables/tbl_away/jobs", {"content": b"[]"}),
    ("POST", "/v1/tables/tbl_away/jobs", {"content": BODY, "headers": {"Content-Type": "application/x+JSON; a=b"}}),
    ("POST", "/v1/tables/tbl_away/jobs", {"content": BODY, "headers": {"Content-Type": "application/jsons"}}),
    ("POST", "/v1/tables/tbl_away/jobs", {"content": BODY, "headers": {"Idempotency-Key": ""}}),
    ("PUT", "/v1/pause", {"content": b'{"x": 1}'}),
]


@pytest.fixture
def as_before(app_context: AppContext) -> Iterator[TestClient]:
    """A client of the same service, in which FastAPI finds and calls the operations."""
    app = create_app(app_context)
    app.router.routes[:] = [each for each in app.router.routes if not isinstance(each, Operations)]
    with TestClient(app, base_url="http://127.0.0.1", headers=JSON, raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize(("method", "path", "more"), CALLS, ids=lambda value: str(value)[:60])
def test_a_call_is_answered_as_by_fastapi(
    client: TestClient, as_before: TestClient, method: str, path: str, more: dict[str, Any]
) -> None:
    more = {**more, "headers": {**JSON, **more.get("headers", {})}}
    one, other = client.request(method, path, **more), as_before.request(method, path, **more)
    assert (one.status_code, one.content) == (other.status_code, other.content)
    del one.headers["server-timing"], other.headers["server-timing"]
    assert sorted(one.headers.multi_items()) == sorted(other.headers.multi_items())


def test_every_operation_is_found_at_its_address(client: TestClient) -> None:
    routes: list[Any] = client.app.router.routes  # type: ignore[attr-defined]
    (operations,) = (each for each in routes if isinstance(each, Operations))
    declared = [each for each in routes if isinstance(each, APIRoute) and each.operation_id]
    assert len(declared) > 100
    for route in declared:
        path = route.path.replace(":path}", "}").replace("{", "x").replace("}", "")
        _, found = operations.matches({"type": "http", "method": next(iter(route.methods)), "path": path})
        # An address without parameters goes before one with parameters that matches it.
        assert found["route"] is route


def test_an_application_answers_again_after_it_was_stopped(app_context: AppContext) -> None:
    app = create_app(app_context)
    for _ in range(2):
        with TestClient(app, base_url="http://127.0.0.1") as client:
            assert client.get("/v1/tables").json()["items"] == []
