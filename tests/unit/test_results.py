"""Tests the results of jobs as jobs build them, and as the service reads them from workers of any version."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.contract import JobKind, Outcome, Problem, Result
from jobs.kinds.audit import AuditResult
from jobs.kinds.bucket_expansion import BucketRulesChange, RescaleResult
from jobs.kinds.cleaning import CleaningResult
from jobs.kinds.compaction import CompactionResult, WithheldPlan
from jobs.kinds.registry import KINDS
from jobs.kinds.results import Cure, DamageFound, Examination, KindResult, WorkLeft
from jobs.kinds.savepoint import SavepointResult


def test_a_result_says_what_it_has_and_leaves_out_the_rest() -> None:
    refused = SavepointResult(savepoints=(), refusals=(Problem("no-such-commit", "There is none"),))

    assert refused.to_json() == {
        "savepoints": [],
        "refusals": [Problem("no-such-commit", "There is none").to_json()],
    }
    assert Result(Outcome.SUCCEEDED, details=refused).to_json()["details"] == refused.to_json()


def test_a_name_that_is_no_text_does_not_lose_a_result() -> None:
    cleaned = CleaningResult(paths=("dt=\ud800/a.parquet", "dt=ü/b.parquet"), files=2)

    sent = Result(Outcome.SUCCEEDED, details=cleaned.to_json()).to_json()

    assert sent["details"] == {"paths": ["dt=?/a.parquet", "dt=ü/b.parquet"], "files": 2}
    assert Result(Outcome.FAILED, details={"path": "\udfff"}).to_json()["details"] == {"path": "?"}


@pytest.mark.parametrize("kind", JobKind)
@pytest.mark.parametrize("given", [None, {}, [], "all is well", {"newer": 1}])
def test_results_of_unknown_form_are_read_as_empty_results(kind: JobKind, given: Any) -> None:
    assert KINDS[kind].result.parse(given) == KINDS[kind].result()


def test_a_sent_result_is_read_as_it_was_built() -> None:
    sent = RescaleResult(
        buckets=(4, 8),
        rules=BucketRulesChange(before=".*,4", after=".*,8"),
        audit=Examination(findings=(DamageFound(type="dead-write", cure=Cure(kind="cleaning")),)),
        not_writable=None,
    )

    assert RescaleResult.parse(sent.to_json()) == sent


def test_a_member_of_another_type_is_left_out_and_the_others_are_read() -> None:
    told = CompactionResult.parse(
        {
            "file_groups": "3",
            "log_files": 5,
            "left": {"file_groups": 2, "bytes": None},
            "withheld_plans": [{"instant": "001"}, {"title": "of no plan"}, 7, {"instant": "002", "hint": 4}],
            "refusals": [{"type": "table-locked", "title": "It is", "of_a_newer_worker": True}, {"type": 1}],
            "nothing_to_do": "no",
        }
    )

    assert told == CompactionResult(
        log_files=5,
        left=WorkLeft(file_groups=2),
        withheld_plans=(WithheldPlan(instant="001"), WithheldPlan(instant="002")),
        refusals=(Problem("table-locked", "It is"),),
    )


def test_a_finding_with_an_unknown_cure_is_kept_without_the_cure() -> None:
    told = AuditResult.parse({"findings": [{"type": "dead-write", "cure": "pray"}, "markers"], "checked": ["rows"]})

    assert told.findings == (DamageFound(type="dead-write"),)
    assert told.checked == ("rows",)


@pytest.mark.parametrize(
    ("kind", "result", "leaves"),
    [
        (JobKind.COMPACTION, {"left": {"file_groups": 1}, "file_groups": 2}, True),
        (JobKind.COMPACTION, {"left": {"file_groups": 1}, "file_groups": 0}, False),
        (JobKind.COMPACTION, {"left": {"file_groups": 0}, "file_groups": 2}, False),
        (JobKind.PARTITION_TTL, {"left": {"partitions": 1}, "partitions": [{}]}, False),
        (JobKind.COMPACTION, {"found_completed": "001"}, None),
        (JobKind.AUDIT, {"file_groups": 2}, None),
    ],
)
def test_a_job_that_did_something_and_left_more_is_followed_by_another(
    kind: JobKind, result: dict[str, Any], leaves: bool | None
) -> None:
    assert KINDS[kind].result.parse(result).leaves_work is leaves


def test_the_service_reads_members_of_every_kind() -> None:
    assert KindResult.parse({"lock_wait_seconds": 2, "seconds": "3"}) == KindResult(lock_wait_seconds=2)
