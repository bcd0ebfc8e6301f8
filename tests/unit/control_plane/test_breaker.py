"""Tests the waiting time of failing work, and the order of tables by slot-seconds."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.contract import JobKind, Problem
from service.queue.breaker import (
    IDLE,
    MOST,
    REMEMBERED,
    Breaker,
    BreakerState,
    Pressure,
    after_failure,
    counts_as_failure,
)
from service.queue.job import AttemptOutcome, Job, JobState
from service.queue.slot_use import HALF_LIFE, since, used_after

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AT = NOW.timestamp()
ERROR = Problem("hudi-error", "It failed", retriable=True)


def failed(
    seconds: float,
    before: Breaker | None = None,
    *,
    outcome: AttemptOutcome = AttemptOutcome.FAILED,
    at: datetime = NOW,
    **pressure: Any,
) -> Breaker:
    job = Job("job_1", "tbl_1", JobKind.COMPACTION, NOW, NOW, state=JobState.RUNNING, attempt=1)
    leased = job.evolve(leased_at=at - timedelta(seconds=seconds))
    return after_failure(before, leased, outcome=outcome, error=ERROR, pressure=Pressure(**pressure), now=at)


def pause_seconds(breaker: Breaker) -> float:
    return (breaker.next_try_at - breaker.failed_at).total_seconds()


def test_a_failing_table_gets_a_tenth_of_the_slots() -> None:
    breaker = failed(5)
    assert pause_seconds(breaker) == 45
    assert breaker.state(NOW + timedelta(seconds=44)) is BreakerState.OPEN
    assert breaker.state(NOW + timedelta(seconds=45)) is BreakerState.HALF_OPEN


def test_all_failing_tables_together_get_a_tenth_of_all_slots() -> None:
    for failing in (0, 1, 7, 39):
        for slots in (1, 2, 8):
            breaker = failed(4, failing=failing, slots=slots)
            share = 4 / (4 + pause_seconds(breaker)) * (failing + 1) / slots
            assert share == pytest.approx(min(0.1, (failing + 1) / slots)), (failing, slots)


def test_the_breaker_waits_an_hour_at_most_and_a_minute_while_no_other_job_waits() -> None:
    assert pause_seconds(failed(3600)) == MOST.total_seconds()
    assert pause_seconds(failed(3600, others_wait=False)) == IDLE.total_seconds()
    assert pause_seconds(failed(0.5, others_wait=False)) == 4.5


def test_failures_in_a_row_are_added_up_with_their_seconds() -> None:
    first = failed(5)
    second = failed(7, first, at=NOW + timedelta(minutes=1))
    assert (second.failures, second.seconds, second.since) == (2, 12, NOW)
    assert "2 attempts of compaction failed in a row and took 12 s of a slot, next try in 2 min" in second.sentence(
        second.failed_at
    )
    late = failed(1, second, at=second.failed_at + REMEMBERED + timedelta(seconds=1))
    assert late.failures == 1


def test_after_the_first_lost_worker_a_table_waits_only_a_minute() -> None:
    lost = failed(30, outcome=AttemptOutcome.LOST)
    assert pause_seconds(lost) == IDLE.total_seconds()
    assert pause_seconds(failed(30, outcome=AttemptOutcome.LOST, others_wait=False)) == 0
    assert pause_seconds(failed(30, lost, outcome=AttemptOutcome.LOST)) == 540


@pytest.mark.parametrize("others_wait", [True, False])
def test_the_pause_doubles_with_each_failure_in_a_row_up_to_an_hour(others_wait: bool) -> None:
    breaker, pauses = None, []
    for _ in range(9):
        breaker = failed(20, breaker, others_wait=others_wait)
        pauses.append(pause_seconds(breaker))
    busy, idle = [180, 360, 720, 1440, 2880, *4 * [3600]], [60, 120, 240, 480, 960, *4 * [1920]]
    assert pauses == (busy if others_wait else idle)


@pytest.mark.parametrize(
    ("outcome", "error", "refused", "counts"),
    [
        (AttemptOutcome.FAILED, ERROR, False, True),
        (AttemptOutcome.UNKNOWN, ERROR, False, True),
        (AttemptOutcome.LOST, ERROR, False, True),
        (AttemptOutcome.CANCELLED, ERROR, False, False),
        (AttemptOutcome.FAILED, ERROR, True, False),
        (AttemptOutcome.FAILED, Problem("no-executors", ""), False, False),
        (AttemptOutcome.SUCCEEDED, None, False, False),
    ],
)
def test_which_outcomes_count_as_failures_of_a_table(
    outcome: AttemptOutcome, error: Problem | None, refused: bool, counts: bool
) -> None:
    assert counts_as_failure(outcome, error, refused=refused) is counts


def test_slot_seconds_count_half_after_the_half_life() -> None:
    """60 s ten minutes ago count as much as 30 s now."""
    long_ago, lately = used_after(None, 60, AT - HALF_LIFE.total_seconds()), used_after(None, 30, AT)
    assert long_ago == pytest.approx(lately)
    assert used_after(long_ago, 30, AT) == pytest.approx(used_after(None, 60, AT))
    assert lately is not None
    assert since(lately, NOW) == pytest.approx(used_after(None, 30, 0.0))


def test_many_short_jobs_count_like_one_long_one() -> None:
    used: float | None = None
    for _ in range(100):
        used = used_after(used, 0.5, AT)
    assert used == pytest.approx(used_after(None, 50, AT))
    assert used_after(used, 0, AT + 86_400) == used
