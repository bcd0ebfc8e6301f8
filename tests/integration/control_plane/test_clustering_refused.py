"""The service refuses a clustering at its submission if a worker would certainly refuse it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httpx
import pytest

if TYPE_CHECKING:
    from fastapi.testclient import TestClient

Submit = Callable[..., httpx.Response]

pytestmark = pytest.mark.mostly_sqlite


@pytest.fixture
def submit(client: TestClient, table_id: str) -> Submit:
    def post(params: dict[str, Any], key: str | None = None, **more: Any) -> httpx.Response:
        headers = {"Idempotency-Key": key} if key else {}
        body = {"kind": "clustering", "params": params, **more}
        return client.post(f"/v1/tables/{table_id}/jobs", json=body, headers=headers)

    return post


@pytest.mark.parametrize(
    ("has_index", "params", "refused"),
    [
        (True, {}, "bucket-files-not-mergeable"),
        (True, {"partitions": ["region=eu"]}, "bucket-files-not-mergeable"),
        (True, {"plans": ["20260101120000000"]}, "plan-unusable"),
        (True, {"sort_by": ["city"]}, None),
        (True, {"expansion_factor": 2}, None),
        (False, {"expansion_factor": 2}, "expansion-factor-without-buckets"),
        (False, {"expansion_factor": 2, "sort_by": ["city"]}, "expansion-factor-without-buckets"),
        (False, {}, None),
        (False, {"plans": ["20260101120000000"]}, None),
    ],
)
def test_a_clustering_that_the_tables_index_rules_out_is_refused_at_once(
    client: TestClient, table_id: str, submit: Submit, *, has_index: bool, params: dict[str, Any], refused: str | None
) -> None:
    if has_index:
        index = {"num_buckets": 4, "hash_fields": ["id"]}
        assert client.patch(f"/v1/tables/{table_id}", json={"index": index}).status_code == 200
    answer = submit(params)
    if refused is None:
        assert answer.status_code == 202, answer.text
        return
    assert (answer.status_code, answer.json()["type"]) == (409, f"/problems/{refused}")
    assert answer.json()["hint"]
    page = client.get(answer.json()["type"]).json()
    assert (page["status"], page["hint"]) == (409, answer.json()["hint"])
    assert client.get("/v1/jobs").json()["items"] == []
    # A dry run lists this reason and all others.
    assert submit(params, dry_run=True).status_code == 202


def test_an_old_clustering_that_the_tables_index_rules_out_by_now_is_not_submitted_again(
    client: TestClient, table_id: str, submit: Submit
) -> None:
    old = submit({}, key="k").json()["id"]
    assert client.post(f"/v1/jobs/{old}/cancel").status_code == 202
    index = {"num_buckets": 4, "hash_fields": ["id"]}
    assert client.patch(f"/v1/tables/{table_id}", json={"index": index}).status_code == 200
    answer = client.post(f"/v1/jobs/{old}/retry")
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/bucket-files-not-mergeable")
    # The key still names the first job.
    again = submit({}, key="k")
    assert (again.status_code, again.json()["id"]) == (200, old)
