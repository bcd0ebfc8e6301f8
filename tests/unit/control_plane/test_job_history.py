"""Tests the effect of earlier jobs on the next one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.contract import JobKind, Problem
from service.queue.job import Job, JobState
from service.queue.unstarted_jobs import WITHDRAWN_BY_PAUSE
from service.scheduling.job_history import JobHistory, history_of, withheld_plans

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REFUSAL = Problem("column-unknown", "There is no such column")


def at_minute(number: int) -> datetime:
    return NOW + timedelta(minutes=number)


def ended(at: int, state: JobState = JobState.SUCCEEDED, **changes: Any) -> Job:
    """Returns a job that was submitted at minute `at`, leased a minute later, and ended after another minute."""
    job = Job(f"job_{at}", "tbl_1", JobKind.COMPACTION, created_at=at_minute(at), not_before=at_minute(at), state=state)
    return job.evolve(**{"leased_at": at_minute(at + 1), "finished_at": at_minute(at + 2), **changes})


def failed(at: int) -> Job:
    return ended(at, JobState.FAILED, error=REFUSAL)


def history(*jobs: Job, **more: Any) -> JobHistory:
    return history_of(jobs, JobKind.COMPACTION, **more)


def test_a_table_without_jobs_has_no_past() -> None:
    assert history() == JobHistory()
    assert history(ended(1).evolve(kind=JobKind.CLEANING)) == JobHistory()


def test_failures_count_since_the_last_success() -> None:
    found = history(failed(30), failed(20), ended(10), failed(5))
    assert found == JobHistory(at_minute(30), at_minute(11), at_minute(12), 2, at_minute(32), "column-unknown")


def test_a_success_ends_a_row_of_failures() -> None:
    found = history(ended(10), failed(5))
    assert (found.failures, found.next_try_at) == (0, None)


def test_an_active_job_is_no_failure() -> None:
    found = history(ended(20, JobState.RUNNING, finished_at=None), failed(5))
    assert (found.failures, found.asked_at) == (1, at_minute(20))


def test_a_cancelled_job_is_not_started_again_at_once() -> None:
    found = history(ended(5, JobState.CANCELLED))
    assert found.next_try_at == at_minute(17)
    assert found.description(at_minute(8)) == "was cancelled 1 min ago"


def test_a_withdrawn_job_does_not_count() -> None:
    withdrawn = ended(9, JobState.CANCELLED, leased_at=None, error=WITHDRAWN_BY_PAUSE)
    assert history(withdrawn, ended(1)) == history(ended(1))


def test_failures_before_the_policy_was_changed_are_forgiven() -> None:
    assert history(failed(30), failed(20), forgive_before=at_minute(25)).failures == 1
    assert history(failed(20), forgive_before=at_minute(25)).next_try_at is None


@pytest.mark.parametrize(
    ("failures", "minutes"), [(1, 10), (2, 20), (3, 40), (7, 640), (8, 1280), (9, 1440), (5000, 1440)]
)
def test_the_wait_doubles_with_each_failure_up_to_a_day(failures: int, minutes: int) -> None:
    found = JobHistory(failures=failures, failed_at=NOW)
    assert found.next_try_at == NOW + timedelta(minutes=minutes)


def test_a_decision_counts_failures_in_a_row() -> None:
    found = history(*(failed(at) for at in range(50, 0, -10)))
    assert found.description(at_minute(55)) == "failed 3 min ago, the 5th time in a row: column-unknown"


def test_plans_that_a_job_of_the_last_day_left_out_are_remembered() -> None:
    named = {"withheld_plans": [{"instant": "001", "type": "plan-files-gone"}, "?", {}]}
    withheld = ended(0, result=named)
    for job in (withheld, withheld.evolve(result=None), withheld.evolve(result={"withheld_plans": "?"})):
        expected = {"001"} if job is withheld else set()
        assert withheld_plans([job], NOW) == expected
    assert withheld_plans([withheld.evolve(state=JobState.FAILED)], NOW) == set()
    assert withheld_plans([withheld], NOW + timedelta(days=2)) == set()


LEFT = {"file_groups": 2, "left": {"file_groups": 3, "bytes": 9, "plans": []}}
NOTHING_LEFT = {"file_groups": 2, "left": {"file_groups": 0, "bytes": 0, "plans": []}}


@pytest.mark.parametrize(
    ("changes", "is_unfinished"),
    [
        ({"result": LEFT}, True),
        ({"result": {"found_completed": "001"}}, True),
        ({"result": NOTHING_LEFT}, False),
        ({"result": {**LEFT, "file_groups": 0}}, False),
        ({"result": LEFT, "reason": None}, False),
        ({"result": LEFT, "params": {}}, False),
    ],
)
def test_only_a_bounded_job_of_a_policy_leaves_something_to_the_next(
    changes: dict[str, Any], is_unfinished: bool
) -> None:
    job = ended(10, **{"params": {"limit_bytes": 5}, "reason": "5 commits", **changes})
    assert history(failed(20), job).is_unfinished is is_unfinished
