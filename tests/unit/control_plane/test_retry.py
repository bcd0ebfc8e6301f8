"""Tests the decision table of a job's state after the end of an attempt."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from jobs.contract import LOCK_UNAVAILABLE, TABLE_LOCKED, JobKind, Outcome, Problem, Result
from service.model.backoff import BackOff
from service.queue.job import Job, JobState
from service.queue.retry import End, Retry, after_lost_lease, after_result, cancelled_while_queued

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FINAL = Problem("column-unknown", "There is no such column")
PASSING = Problem("lock-timeout", "The lock was taken", retriable=True)


def a_job(**changes: Any) -> Job:
    job = Job(
        id="job_1",
        table_id="tbl_1",
        kind=JobKind.COMPACTION,
        created_at=NOW,
        not_before=NOW,
        state=JobState.RUNNING,
        attempt=1,
        worker_id="w1",
    )
    return job.evolve(**changes)


def state_after(job: Job, outcome: Outcome, error: Problem | None = None) -> End | Retry:
    return after_result(job, Result(outcome, error=error), now=NOW, backoff=BackOff(), rng=Random(1))


def test_success_is_success_even_if_cancel_was_asked_for_too_late() -> None:
    assert state_after(a_job(cancel_requested=True), Outcome.SUCCEEDED) == End(JobState.SUCCEEDED)


def test_a_worker_that_stopped_ends_the_job_as_cancelled() -> None:
    assert state_after(a_job(cancel_requested=True), Outcome.CANCELLED) == End(JobState.CANCELLED)


def test_a_job_with_a_permanent_error_is_not_tried_again() -> None:
    assert state_after(a_job(), Outcome.FAILED, FINAL) == End(JobState.FAILED, FINAL)


def test_an_attempt_that_only_waited_for_a_locks_server_does_not_count_for_two_minutes() -> None:
    away = Problem(LOCK_UNAVAILABLE, "away", retriable=True)
    begun = a_job(attempt=3, started_at=NOW - timedelta(seconds=119))
    found = state_after(begun, Outcome.FAILED, away)
    assert isinstance(found, Retry)
    assert not found.counts
    late = begun.evolve(started_at=NOW - timedelta(seconds=121))
    assert state_after(late, Outcome.FAILED, away) == End(JobState.FAILED, away)


def test_a_failure_without_an_error_is_final_and_has_an_error_that_says_so() -> None:
    result = state_after(a_job(), Outcome.FAILED)
    assert isinstance(result, End)
    assert result.error is not None
    assert result.error.type == "job-failed"


@pytest.mark.parametrize(("outcome", "error"), [(Outcome.FAILED, PASSING), (Outcome.UNKNOWN, FINAL)])
def test_a_passing_error_and_an_unknown_outcome_are_tried_again_later(outcome: Outcome, error: Problem) -> None:
    result = state_after(a_job(), outcome, error)
    assert isinstance(result, Retry)
    assert result.error == error
    assert NOW + timedelta(seconds=1) <= result.not_before <= NOW + timedelta(seconds=2)


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.UNKNOWN])
def test_the_last_attempt_is_the_last(outcome: Outcome) -> None:
    assert state_after(a_job(attempt=3), outcome, PASSING) == End(JobState.FAILED, PASSING)


def test_an_unknown_outcome_of_the_last_attempt_is_left_to_the_timeline() -> None:
    result = state_after(a_job(attempt=3, instants=("001",)), Outcome.UNKNOWN, PASSING)
    assert isinstance(result, End)
    assert result.state is JobState.UNKNOWN
    assert state_after(a_job(attempt=3, instants=("001",)), Outcome.FAILED, PASSING) == End(JobState.FAILED, PASSING)


def test_a_job_that_somebody_wants_cancelled_is_not_tried_again() -> None:
    result = state_after(a_job(cancel_requested=True, instants=("001",)), Outcome.FAILED, PASSING)
    assert isinstance(result, End)
    assert result.state is JobState.CANCELLED
    assert result.error is not None
    assert "001" in result.error.detail


def test_a_lost_lease_is_queued_again_at_once() -> None:
    result = after_lost_lease(a_job(), now=NOW)
    assert isinstance(result, Retry)
    assert result.not_before == NOW
    assert result.error.type == "worker-lost"


def test_the_timeline_decides_the_outcome_if_the_worker_of_the_last_attempt_is_lost() -> None:
    result = after_lost_lease(a_job(attempt=3, instants=("001", "002")), now=NOW)
    assert isinstance(result, End)
    assert result.state is JobState.UNKNOWN
    assert result.error is not None
    assert result.error.type == "worker-lost"
    assert "001, 002" in result.error.detail


def test_a_worker_lost_after_cancel_was_asked_for_leaves_a_cancelled_job() -> None:
    result = after_lost_lease(a_job(cancel_requested=True, instants=("001",)), now=NOW)
    assert isinstance(result, End)
    assert result.state is JobState.CANCELLED
    assert result.error is not None
    assert "pending" in result.error.detail


def test_a_job_cancelled_before_its_first_attempt_has_no_error() -> None:
    assert cancelled_while_queued(a_job(state=JobState.QUEUED, attempt=0)) is None


def test_a_job_cancelled_between_two_attempts_names_what_the_first_left() -> None:
    error = cancelled_while_queued(a_job(state=JobState.QUEUED, error=PASSING, instants=("001",)))
    assert error is not None
    assert "001" in error.detail


@pytest.mark.parametrize("type_", [TABLE_LOCKED, "no-executors"])
def test_attempts_that_waited_for_the_lock_or_for_executors_do_not_count_for_a_day(type_: str) -> None:
    locked = Problem(type_, "held", retriable=True)
    young = a_job(attempt=3, max_attempts=3, created_at=NOW - timedelta(hours=23))
    again = state_after(young, Outcome.FAILED, locked)
    assert isinstance(again, Retry)
    assert not again.counts
    old = young.evolve(created_at=NOW - timedelta(hours=25))
    assert state_after(old, Outcome.FAILED, locked) == End(JobState.FAILED, locked)
