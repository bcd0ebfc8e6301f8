"""ETag and If-Match: of two callers that have seen the same state, only the first updates it."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from service.api.app import create_app
from service.delivery.guard import Guard

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlalchemy as sa

    from service.api.dependencies import AppContext

pytestmark = pytest.mark.mostly_sqlite

CHANGED = (412, "/problems/changed-meanwhile")


@pytest.fixture
def api(app_context: AppContext, engine: sa.Engine) -> Iterator[TestClient]:
    context = dataclasses.replace(app_context, engine=engine, guard=Guard(frozenset({"localhost"})))
    headers = {"Content-Type": "application/json"}
    with TestClient(create_app(context), base_url="http://127.0.0.1", headers=headers) as client:
        yield client


UPDATES: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("PATCH", "/v1/tables/{table}", {"name": "a"}, {"name": "b"}),
    ("PUT", "/v1/tables/{table}/policy", {"cleaning": {"retain": 7}}, {"cleaning": {"retain": 8}}),
    ("PUT", "/v1/policies/o*", {"precedence": 2}, {"precedence": 3}),
    ("PUT", "/v1/tables/{table}/consumers/etl", {"instant": "20260101120000000"}, {"instant": "20260102120000000"}),
    ("PATCH", "/v1/webhooks/{hook}", {"types": ["job.*"]}, {"types": ["table.*"]}),
    ("PUT", "/v1/pause", {"reason": "a move"}, {"reason": "another"}),
]


def created(api: TestClient) -> dict[str, str]:
    table = api.post("/v1/tables", json={"base_path": "/lake/orders"}).json()["id"]
    hook = api.post("/v1/webhooks", json={"url": "http://localhost:9/"}).json()["id"]
    api.put("/v1/policies/o*", json={"precedence": 1})
    api.put(f"/v1/tables/{table}/consumers/etl", json={"instant": "20260101000000000"})
    return {"table": table, "hook": hook}


def test_an_update_of_what_has_changed_meanwhile_is_refused(api: TestClient) -> None:
    ids = created(api)
    for method, template, first, second in UPDATES:
        path = template.format(**ids)
        seen = api.get(path).headers["etag"]
        assert seen == api.get(path).headers["etag"]
        done = api.request(method, path, json=first, headers={"If-Match": seen})
        assert done.status_code == 200, (path, done.text)
        assert done.headers["etag"] == api.get(path).headers["etag"] != seen
        late = api.request(method, path, json=second, headers={"If-Match": seen})
        assert (late.status_code, late.json()["type"]) == CHANGED, path
        assert late.json()["etag"] == done.headers["etag"]
        assert api.get(path).headers["etag"] == done.headers["etag"]
        for accepted in (f'"x", {done.headers["etag"]}', "*"):
            assert api.request(method, path, json=first, headers={"If-Match": accepted}).status_code == 200


def test_a_deletion_asks_too(api: TestClient) -> None:
    ids = created(api)
    for path in ("/v1/tables/{table}/consumers/etl", "/v1/policies/o*", "/v1/webhooks/{hook}", "/v1/tables/{table}"):
        path = path.format(**ids)
        for wrong in ('"0000000000000000"', f"W/{api.get(path).headers['etag']}", "nonsense", ""):
            answer = api.delete(path, headers={"If-Match": wrong})
            assert (answer.status_code, answer.json()["type"]) == CHANGED, (path, wrong)
        assert api.delete(path, headers={"If-Match": api.get(path).headers["etag"]}).status_code == 204
        assert api.delete(path, headers={"If-Match": "*"}).status_code == 404


def test_what_does_not_exist_meets_no_condition(api: TestClient) -> None:
    answer = api.put("/v1/policies/new*", json={"precedence": 1}, headers={"If-Match": "*"})
    assert (answer.status_code, answer.json()["type"]) == CHANGED
    assert api.get("/v1/policies/new*").status_code == 404
    assert api.put("/v1/policies/new*", json={"precedence": 1}).headers["etag"]


def test_a_new_table_and_a_new_webhook_come_with_their_tags(api: TestClient) -> None:
    table = api.post("/v1/tables", json={"base_path": "/lake/orders"})
    assert table.headers["etag"] == api.get(table.headers["location"]).headers["etag"]
    hook = api.post("/v1/webhooks", json={"url": "http://localhost:9/"})
    assert hook.headers["etag"] == api.get(hook.headers["location"]).headers["etag"]
    # The answer shows a job, not the table.
    job = api.post(f"{table.headers['location']}/jobs", json={"kind": "audit"})
    assert (job.status_code, "etag" in job.headers) == (202, False)


def test_of_many_at_once_one_wins(api: TestClient) -> None:
    path = f"/v1/tables/{created(api)['table']}/policy"
    seen = api.get(path).headers["etag"]

    def update(number: int) -> int:
        body = {"cleaning": {"retain": number}}
        return api.put(path, json=body, headers={"If-Match": seen}).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(update, range(2, 10)))
    assert statuses == [200] + [412] * 7
