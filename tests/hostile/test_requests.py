"""Tests requests with extreme values of their types, or in forms that our clients never send."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from service.api.app import create_app
from service.model.table_errors import FlinkError, FlinkHostNotAllowedError
from service.queue.hand_over.flink_hosts import check_allowed
from service.queue.hand_over.flink_rest import FlinkRest

if TYPE_CHECKING:
    import httpx
    from starlette.testclient import TestClient

    from service.api.dependencies import AppContext

PAGES = [
    "/v1/tables",
    "/v1/commits",
    "/v1/jobs",
    "/v1/incidents",
    "/v1/webhooks",
    "/v1/tables/{table_id}/decisions",
]
ENDS_OF_THE_CALENDAR = [
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-14:00",
]


def cursor(content: Any) -> str:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


NOW = "2026-01-01T00:00:00+00:00"
CURSORS = [
    cursor(b"[" * 20_000),
    cursor(b'[["' * 150),
    *(cursor([moment, "a"]) for moment in ENDS_OF_THE_CALENDAR),
    cursor([NOW, "\ud800"]),
    cursor([NOW, "a\0"]),
    cursor([NOW, "\u0663"]),
    cursor([NOW, "9" * 18]),
    cursor([NOW, 2**70]),
    cursor(["2026-01-01", "a"]),
    cursor({"a": 1, "b": 2}),
    cursor(b"[1e999,1]"),
    cursor(b"\xff\xfe"),
    "9" * 400,
    "\u00e9",
    "=",
]


JSON = {"Content-Type": "application/json"}


def is_refused(answer: httpx.Response) -> bool:
    types = {"/problems/params-invalid", "/problems/body-not-json"}
    return answer.status_code == 422 and answer.json()["type"] in types


@pytest.mark.parametrize("moment", ENDS_OF_THE_CALENDAR)
def test_a_moment_at_the_ends_of_the_calendar_is_refused(client: TestClient, moment: str) -> None:
    assert is_refused(client.get("/v1/commits", params={"since": moment}))
    for body in ({"since": moment}, {"since": NOW, "until": moment}):
        assert is_refused(client.post("/v1/webhooks/wh_1/replay", json=body))


@pytest.mark.parametrize("page", PAGES)
def test_a_cursor_of_any_content_is_a_page_or_is_refused(client: TestClient, table_id: str, page: str) -> None:
    for text in CURSORS:
        answer = client.get(page.format(table_id=table_id), params={"cursor": text})
        assert answer.status_code == 200 or is_refused(answer), (text, answer.text)


@pytest.mark.parametrize(
    "beat",
    [
        f'{{"attempt": {2**63}}}',
        f'{{"attempt": {"9" * 5000}}}',
        '{"attempt": -1}',
        '{"attempt": 1e400}',
        f'{{"attempt": 1, "progress": {{"step": "x", "tasks_done": {10**30}}}}}',
        '{"attempt": 1, "progress": {"step": "x", "bytes_total": -1}}',
        f'{{"attempt": 1, "instants": {"[" * 500 + "]" * 500}}}',
    ],
)
def test_a_heartbeat_with_impossible_numbers_is_refused(client: TestClient, beat: str) -> None:
    assert is_refused(client.post("/v1/worker/leases/job_1/heartbeat", content=beat, headers=JSON))


def test_details_that_are_nested_too_deep_are_refused(client: TestClient) -> None:
    nested = [("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth) for depth in (40, 500, 990, 100_000)]
    for inner in (each for both in nested for each in both):
        report = f'{{"attempt": 1, "result": {{"outcome": "succeeded", "details": {{"a": {inner}}}}}}}'
        assert is_refused(client.post("/v1/worker/leases/job_1/result", content=report, headers=JSON))


def test_a_result_is_stored_whatever_its_details_contain(client: TestClient, table_id: str) -> None:
    job = client.post(f"/v1/tables/{table_id}/jobs", json={"kind": "audit"}).json()["id"]
    client.post("/v1/worker/leases", json={"worker_id": "w"})
    rest = '"infinite": 1e400, "text": "a\\u0000b\\ud800", "nested": [[[7]]], "negative": -5'
    report = f'{{"attempt": 1, "result": {{"outcome": "succeeded", "details": {{"much": {10**30}, {rest}}}}}}}'
    answer = client.post(f"/v1/worker/leases/{job}/result", content=report, headers=JSON)
    assert answer.json() == {"state": "succeeded", "next": None}
    kept = {"much": None, "infinite": None, "text": "ab?", "nested": [[[7]]], "negative": -5}
    assert client.get(f"/v1/jobs/{job}").json()["result"] == kept


@pytest.mark.parametrize("member", ["base_path", "\ud800", "a" * 100_000])
def test_a_body_that_is_not_text_is_refused(client: TestClient, member: str) -> None:
    for body in (json.dumps({member: "/x\ud800"}), b'{"base_path": "\xff\xfe"}'):
        assert is_refused(client.post("/v1/tables", content=body, headers=JSON))


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", "jobs", {"kind": "bucket_expansion", "params": {"factor": True}}, "params.factor"),
        ("POST", "jobs", {"kind": "audit", "priority": False}, "priority"),
        ("POST", "jobs", {"kind": "audit", "timeout_seconds": True}, "timeout_seconds"),
        ("PUT", "policy", {"priority": True}, "priority"),
        ("PUT", "policy", {"cleaning": {"commits": True}}, "cleaning.commits"),
        ("PUT", "policy", {"objective": {"read_overhead": True}}, "objective.read_overhead"),
        ("PATCH", "", {"lock": {"wait_seconds": True}}, "lock.wait_seconds"),
    ],
)
def test_true_is_no_number(
    client: TestClient, table_id: str, method: str, path: str, body: dict[str, Any], field: str
) -> None:
    answer = client.request(method, f"/v1/tables/{table_id}/{path}".rstrip("/"), json=body)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["field"] == field
    assert error["message"] in ("must be a whole number", "must be a number")


POLICIES: list[dict[str, Any]] = [
    {"clustering": {"unsorted_bytes": 10**30}},
    {"bucket_expansion": {"max_bucket_bytes": 10**30}},
    {"windows": [{"start": "0\u0663:00", "end": "04:00"}]},
    {"time_zone": "../../etc/passwd"},
    {"time_zone": "\u0130stanbul"},
    {"compaction": {"cron": "0 0 31 2 *"}},
    {"compaction": {"cron": "* * * * \u0663"}},
    {"compaction": {"cron": "0-99999999999999999999 * * * *"}},
]


def test_a_policy_with_impossible_values_is_refused(client: TestClient, table_id: str) -> None:
    for policy in POLICIES:
        assert is_refused(client.put(f"/v1/tables/{table_id}/policy", json=policy)), policy
    assert client.post(f"/v1/tables/{table_id}/evaluate").status_code == 200


def test_an_answer_about_a_wrong_method_names_all_valid_ones(client: TestClient, table_id: str) -> None:
    allowed = {
        "/v1/tables": "GET, POST",
        f"/v1/tables/{table_id}": "DELETE, GET, PATCH",
        "/v1/policies/a/b": "DELETE, GET, PUT",
        "/v1/jobs": "GET",
        "/": "GET, HEAD",
    }
    for address, methods in allowed.items():
        answer = client.request("OPTIONS", address)
        assert (answer.status_code, answer.headers["allow"]) == (405, methods), address
    assert client.put("/dashboard/main.js").status_code == 405


NOTHING_MISSING = (
    "/v1/problems/{problem_id}/acknowledgement",
    "/v1/policies/{pattern}",
    "/v1/worker/leases/{job_id}/heartbeat",
    "/v1/hoodie/service/{service}",
)


def test_the_documentation_names_the_problems_that_every_call_may_have(app_context: AppContext) -> None:
    for path, operations in create_app(app_context).openapi()["paths"].items():
        for method, operation in operations.items():
            found = set(operation["responses"])
            if path.startswith("/v1/"):
                assert {"401", "403", "503"} <= found, (method, path)
            if "{" in path and path not in NOTHING_MISSING:
                assert found & {"404", "409"}, (method, path)
            assert ("413" in found) == (method != "get"), (method, path)


ADDRESSES = ["http://xn--a.com/", "http://a..b/", f"http://{'a' * 64}.example/", "http://flink/\x01", "http://flink:0/"]


@pytest.mark.parametrize("url", [*ADDRESSES, "http://flink:99999/", "http://[::1/", "http://flink\\@evil/"])
def test_an_address_of_flink_that_no_request_can_be_sent_to_is_refused(url: str) -> None:
    with pytest.raises(FlinkHostNotAllowedError):
        check_allowed(url, ["flink", "xn--a.com", "a..b", f"{'a' * 64}.example"])


@pytest.mark.parametrize("url", ADDRESSES)
def test_a_stored_address_to_which_no_request_can_be_sent_is_an_error_of_flink(url: str) -> None:
    with FlinkRest(url, connect_seconds=0.2) as flink, pytest.raises(FlinkError):
        flink.jobs()
