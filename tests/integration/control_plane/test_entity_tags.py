"""ETag and If-Match allow only the first of two callers that have read the same state to update it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fastapi.testclient import TestClient


pytestmark = pytest.mark.mostly_sqlite

CHANGED = (412, "/problems/changed-meanwhile")


_FREEZE = {"starts_at": "2026-01-01T00:00:00Z", "ends_at": "2026-01-02T00:00:00Z"}
TARGET = {"type": "webhook", "url": "http://localhost:9/"}
UPDATES: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("PATCH", "/v1/tables/{table_id}", {"name": "a"}, {"name": "b"}),
    ("PUT", "/v1/tables/{table_id}/policy", {"cleaning": {"retain": 7}}, {"cleaning": {"retain": 8}}),
    ("PUT", "/v1/policies/{pattern}", {"precedence": 2}, {"precedence": 3}),
    ("PUT", "/v1/policy-shadows/{pattern}", {"precedence": 2}, {"precedence": 3}),
    (
        "PUT",
        "/v1/tables/{table_id}/consumers/{name}",
        {"instant": "20260101120000000"},
        {"instant": "20260102120000000"},
    ),
    ("PATCH", "/v1/webhooks/{webhook_id}", {"types": ["job.*"]}, {"types": ["table.*"]}),
    ("PUT", "/v1/notifications/{name}", {"target": TARGET}, {"target": TARGET, "tables": ["a*"]}),
    ("PUT", "/v1/pause", {"reason": "a move"}, {"reason": "another"}),
    ("PUT", "/v1/freezes/{name}", {**_FREEZE, "reason": "a move"}, {**_FREEZE, "reason": "another"}),
]
DELETIONS = (
    "/v1/tables/{table_id}/consumers/{name}",
    "/v1/policies/{pattern}",
    "/v1/policy-shadows/{pattern}",
    "/v1/webhooks/{webhook_id}",
    "/v1/freezes/{name}",
    "/v1/notifications/{name}",
    "/v1/tables/{table_id}",
)
RESETS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/pause", {"reason": "a move"}),
    ("/v1/tables/{table_id}/policy", {"priority": 7}),
]


def created(api: TestClient) -> dict[str, str]:
    table = api.post("/v1/tables", json={"base_path": "/lake/orders"}).json()["id"]
    hook = api.post("/v1/webhooks", json={"url": "http://localhost:9/"}).json()["id"]
    api.put("/v1/notifications/etl", json={"target": TARGET, "most_per_hour": 7})
    api.put("/v1/policies/o*", json={"precedence": 1})
    api.put("/v1/policy-shadows/o*", json={"precedence": 1})
    api.put("/v1/freezes/etl", json=_FREEZE)
    api.put(f"/v1/tables/{table}/consumers/etl", json={"instant": "20260101000000000"})
    return {"table_id": table, "webhook_id": hook, "pattern": "o*", "name": "etl"}


def test_an_update_of_an_object_that_has_changed_meanwhile_is_refused(api: TestClient) -> None:
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


def test_a_deletion_with_an_old_tag_is_refused(api: TestClient) -> None:
    ids = created(api)
    for template in DELETIONS:
        path = template.format(**ids)
        for wrong in ('"0000000000000000"', f"W/{api.get(path).headers['etag']}", "nonsense", ""):
            answer = api.delete(path, headers={"If-Match": wrong})
            assert (answer.status_code, answer.json()["type"]) == CHANGED, (path, wrong)
        assert api.delete(path, headers={"If-Match": api.get(path).headers["etag"]}).status_code == 204
        assert api.delete(path, headers={"If-Match": "*"}).status_code == 404


def test_ending_a_pause_or_the_settings_of_a_table_with_an_old_tag_is_refused(api: TestClient) -> None:
    """A DELETE resets a pause and the settings of a table to their default values."""
    ids = created(api)
    for template, body in RESETS:
        path = template.format(**ids)
        default = api.get(path)
        seen = api.put(path, json=body).headers["etag"]
        for wrong in (default.headers["etag"], f"W/{seen}", "nonsense", ""):
            answer = api.delete(path, headers={"If-Match": wrong})
            assert (answer.status_code, answer.json()["type"]) == CHANGED, (path, wrong)
            assert api.get(path).headers["etag"] == seen, (path, wrong)
        assert api.delete(path, headers={"If-Match": seen}).is_success, path
        assert api.get(path).json() == default.json(), path
        late = api.delete(path, headers={"If-Match": seen})
        assert (late.status_code, late.json()["etag"]) == (412, default.headers["etag"]), path


def test_every_precondition_that_is_documented_is_tested_here(api: TestClient) -> None:
    tested = {(method, path) for method, path, *_ in UPDATES}
    tested |= {("DELETE", path) for path in (*DELETIONS, *(path for path, _ in RESETS))}
    documented = {
        (method.upper(), path)
        for path, item in api.get("/openapi.json").json()["paths"].items()
        for method, operation in item.items()
        if any(each["name"] == "If-Match" for each in operation.get("parameters", ()))
    }
    # test_table_by_path.py and test_advice.py test these calls with conditions.
    elsewhere = {("PUT", "/v1/tables/by-path"), ("PUT", "/v1/tables/{table_id}/advice")}
    assert documented - elsewhere == tested


def test_a_condition_on_a_missing_object_is_never_met(api: TestClient) -> None:
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


def test_only_one_of_many_concurrent_updates_succeeds(api: TestClient) -> None:
    path = f"/v1/tables/{created(api)['table_id']}/policy"
    seen = api.get(path).headers["etag"]

    def update(number: int) -> int:
        body = {"cleaning": {"retain": number}}
        return api.put(path, json=body, headers={"If-Match": seen}).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(update, range(2, 10)))
    assert statuses == [200] + [412] * 7


NEW = {"If-None-Match": "*"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/policies/orders_*", {"precedence": 2}),
        ("/v1/freezes/night", _FREEZE),
        ("/v1/notifications/on-call", {"target": TARGET}),
        ("/v1/tables/by-path", {"base_path": "/lake/new"}),
    ],
)
def test_creating_an_object_does_not_overwrite_one_that_was_created_meanwhile(
    api: TestClient, path: str, body: dict[str, Any]
) -> None:
    first = api.put(path, json=body, headers=NEW)
    assert first.status_code == 201, first.text
    second = api.put(path, json=body, headers=NEW)
    assert (second.status_code, second.json()["type"]) == CHANGED
    assert second.json()["etag"] == first.headers["ETag"]
    assert api.put(path, json=body, headers={"If-None-Match": '"0000000000000000"'}).status_code == 200
    assert api.put(path, json=body).status_code == 200


def test_only_one_of_two_calls_that_create_the_same_object_succeeds(api: TestClient) -> None:
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(api.put, "/v1/policies/a*", json={"precedence": n}, headers=NEW) for n in (1, 2)]
        answers = sorted(each.result().status_code for each in calls)
    assert answers == [201, 412]
