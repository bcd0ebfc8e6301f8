"""Tests the ids of requests in answers, in the JSON log and in the audit trail, and the times of calls in answers."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.support.forked_service import Forked

if TYPE_CHECKING:
    from pathlib import Path

    from fastapi.testclient import TestClient

MADE = re.compile(r"req_[0-9a-f]{16}")


@pytest.mark.parametrize("given", ["a-1", "7f3c:orders/2026=x+y@z._", "x" * 128])
def test_a_well_formed_id_is_taken(client: TestClient, given: str) -> None:
    answer = client.get("/v1/jobs/job_none", headers={"X-Request-Id": given})
    assert answer.headers["x-request-id"] == answer.json()["request_id"] == given
    assert client.get("/healthz", headers={"X-Request-Id": given}).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", "a\tb", '"x"', "\u00e4", "{}"])
def test_a_malformed_request_id_is_replaced(client: TestClient, given: str) -> None:
    answer = client.get("/v1/jobs/job_none", headers={"X-Request-Id": given.encode("latin-1")})
    assert MADE.fullmatch(answer.headers["x-request-id"])
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    assert answer.headers.get_list("x-request-id") == [answer.headers["x-request-id"]]


def test_even_an_unexpected_error_names_its_request(client: TestClient) -> None:
    answer = client.post("/v1/tables", json={"base_path": "/lake/broken"}, headers={"X-Request-Id": "mine"})
    assert (answer.status_code, answer.headers["x-request-id"], answer.json()["request_id"]) == (500, "mine", "mine")


def test_the_answer_to_a_call_that_reads_says_how_long_its_parts_took(client: TestClient) -> None:
    began = time.perf_counter()
    header = client.get("/v1/overview").headers["server-timing"]
    elapsed = 1000 * (time.perf_counter() - began)
    parts = {name: float(took) for name, _, took in (each.partition(";dur=") for each in header.split(", "))}
    assert list(parts) == ["wait", "database", "cpu", "total"]
    assert all(0 < took <= elapsed for took in parts.values())
    assert parts["wait"] + parts["database"] < parts["total"]


def test_the_audit_trail_has_the_id(client: TestClient, table_id: str) -> None:
    client.delete(f"/v1/tables/{table_id}", headers={"X-Request-Id": "mine"})
    assert client.get("/v1/audit").json()["items"][0]["request_id"] == "mine"


def test_every_line_of_a_service_that_logs_json_is_an_object(tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GROUNDSKEEPER_")}
    environment |= {"GROUNDSKEEPER_LOG_FORMAT": "json", "GROUNDSKEEPER_LOG_LEVEL": "DEBUG"}
    with (tmp_path / "log").open("w") as log:
        process = Forked("serve", "--workers", "0", "--port", "0", cwd=tmp_path, env=environment, stderr=log.fileno())
    try:
        url = str(process.stdout.readline().split()[-1])
        own = {"X-Request-Id": "mine"}
        httpx.post(f"{url}/v1/tables", json={"base_path": f"{tmp_path}/password=pl4nted"}, headers=own)
        httpx.post(f"{url}/v1/tables/tbl_0/jobs", json={"kind": "audit"}, headers=own)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    text = (tmp_path / "log").read_text()
    lines: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    calls = [line for line in lines if line["logger"] == "groundskeeper.audit"]
    assert [(line["request_id"], line.get("table_id")) for line in calls] == [("mine", None), ("mine", "tbl_0")]
    assert "pl4nted" not in text
    assert process.returncode == 0
