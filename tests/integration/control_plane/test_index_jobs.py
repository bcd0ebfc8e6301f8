"""Tests jobs that build and drop indexes, as the API takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import JobKind, Outcome, Result

if TYPE_CHECKING:
    from tests.integration.control_plane.operated import Operated

WRONG: list[dict[str, Any]] = [
    {"action": "build"},
    {"action": "drop"},
    {"action": "build", "index": "btree"},
    {"action": "drop", "index": "secondary"},
    {"action": "build", "index": "record", "name": "city"},
    {"action": "build", "index": "record", "columns": ["city"]},
    {"action": "build", "index": "column_stats", "columns": []},
    {"action": "build", "index": "column_stats", "columns": ["city", "city"]},
    {"action": "build", "index": "column_stats", "file_groups": 4},
    {"action": "drop", "index": "record", "file_groups": 4},
    {"action": "build", "index": "record", "file_groups": 0},
    {"action": "build", "index": "record", "file_groups": 10_001},
    {"action": "build", "index": "record", "lock_seconds": 0},
    {"action": "build", "index": "record", "lock_seconds": 3601},
    {"action": "build", "index": "record", "wait_seconds": -1},
    {"action": "build", "index": "record", "force": True},
]


@pytest.mark.parametrize("params", WRONG, ids=str)
def test_wrong_parameters_are_refused_with_their_reason(operated: Operated, params: dict[str, Any]) -> None:
    path = f"/v1/tables/{operated.table().id}/jobs"
    refused = operated.call("POST", path, 422, {"kind": "index", "params": params})
    assert refused["type"].startswith("/problems/"), refused


def test_an_index_is_planned_and_built_by_the_api(operated: Operated) -> None:
    path = f"/v1/tables/{operated.table().id}/jobs"
    built: dict[str, Any] = {"action": "build", "index": "record", "file_groups": 4}
    option = {"name": "hoodie.metadata.record.index.enable", "value": "true"}
    details = {"partitions": ["record_index"], "writer_options": [option], "refusals": []}
    for params, dry_run in (({}, False), (built, True), (built, False)):
        job = operated.call("POST", path, 202, {"kind": "index", "params": params, "dry_run": dry_run})
        order = operated.worker.must_lease()
        assert (order.job_id, order.kind, order.dry_run) == (job["id"], JobKind.INDEX, dry_run)
        assert order.params["action"] == params.get("action", "verify")
        assert operated.worker.report(order, Result(Outcome.SUCCEEDED, details=details)).status_code == 200
        done = operated.call("GET", f"/v1/jobs/{job['id']}", 200)
        assert (done["state"], done["result"]["writer_options"]) == ("succeeded", [option])
