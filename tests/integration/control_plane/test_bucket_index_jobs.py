"""Tests that the registration follows a job that adopts or drops a bucket index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.contract import Outcome, Result

if TYPE_CHECKING:
    from tests.integration.control_plane.operated import Operated


def test_the_registration_follows_a_job_that_gives_the_table_a_bucket_index_or_takes_it(operated: Operated) -> None:
    table = operated.table().id
    adopted = {"action": "adopt", "num_buckets": 8, "hash_fields": ["id"], "refusals": []}
    path = f"/v1/tables/{table}/jobs"
    for action, dry_run, outcome, details, index in (
        ("adopt", True, Outcome.SUCCEEDED, adopted, (4, ["id"])),
        ("adopt", False, Outcome.CANCELLED, adopted, (4, ["id"])),
        ("adopt", False, Outcome.SUCCEEDED, adopted, (8, ["id"])),
        ("drop", True, Outcome.SUCCEEDED, {"action": "drop"}, (8, ["id"])),
        ("drop", False, Outcome.SUCCEEDED, {"action": "drop"}, None),
        # The next attempt finds the commit of the first.
        ("adopt", False, Outcome.SUCCEEDED, adopted | {"found_completed": "20260101120000000"}, (8, ["id"])),
    ):
        request: dict[str, Any] = {"kind": "bucket_index", "params": {"action": action}, "dry_run": dry_run}
        operated.call("POST", path, 202, request)
        order = operated.worker.must_lease()
        assert operated.worker.report(order, Result(outcome, details=details)).status_code == 200
        found = operated.call("GET", f"/v1/tables/{table}", 200)["index"]
        assert (found and (found["num_buckets"], found["hash_fields"])) == index


def test_a_request_to_drop_names_no_number_of_buckets(operated: Operated) -> None:
    path = f"/v1/tables/{operated.table().id}/jobs"
    params = {"action": "drop", "num_buckets": 4}
    refused = operated.call("POST", path, 422, {"kind": "bucket_index", "params": params})
    assert "`num_buckets` is only for `adopt`" in str(refused)
