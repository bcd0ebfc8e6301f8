"""Rules that decide whether a job ends or is retried after an attempt has ended or its lease has expired."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import assert_never

from jobs.contract import LOCK_UNAVAILABLE, TABLE_LOCKED, Outcome, Problem, Result
from jobs.errors import JobError, NoExecutorsError
from service.model.backoff import BackOff
from service.queue.job import Job, JobState
from service.queue.problem_types import OUTCOME_UNKNOWN, WORKER_LOST

# Waiting for a table's lock or for executors does no harm. People may find out only the next day who holds them.
_LONGEST_WAIT = timedelta(hours=24)
_WAIT_ERRORS = {TABLE_LOCKED, NoExecutorsError.type}
# One attempt waits only seconds for the lock's server, but a restart of the server may take longer.
_LONGEST_OUTAGE = timedelta(minutes=2)


@dataclass(frozen=True)
class End:
    state: JobState
    error: Problem | None = None


@dataclass(frozen=True)
class Retry:
    """The job is queued again and may be leased from `not_before` on. `error` is the reason why the last attempt ended.
    `counts` says whether that attempt counts towards the limit of attempts."""

    not_before: datetime
    error: Problem
    counts: bool = True


def after_result(
    job: Job, result: Result, *, now: datetime, backoff: BackOff, rng: Random, contradiction: Problem | None = None
) -> End | Retry:
    """Decides after a reported result. `job` is the job as it was leased, so its `attempt` is the one that has ended.
    `contradiction` says why the timeline does not agree with a reported success. A job of unknown outcome is retried,
    because the next attempt reads the timeline and so finds out the outcome."""
    match result.outcome:
        case Outcome.SUCCEEDED:
            if contradiction:
                # The next poll can settle the job only if an instant was reported.
                return End(JobState.UNKNOWN if job.instants else JobState.FAILED, contradiction)
            return End(JobState.SUCCEEDED)
        case Outcome.CANCELLED:
            return End(JobState.CANCELLED, result.error)
        case Outcome.FAILED:
            error = result.error or JobError.because(title="The attempt failed, and the worker gave no reason")
            again = error.retriable
        case Outcome.UNKNOWN:
            error = result.error or OUTCOME_UNKNOWN.because()
            again = True
        case _:
            assert_never(result.outcome)
    if again and job.cancel_requested:
        return End(JobState.CANCELLED, with_leftovers(error, result.instants or job.instants))
    counts = _counts(job, error, now)
    if again and not (counts and job.is_last_attempt):
        return Retry(now + backoff.delay(job.attempt, rng), error, counts)
    if result.outcome is Outcome.UNKNOWN:
        return _undecided(job, error)
    return End(JobState.FAILED, error)


def _counts(job: Job, error: Problem, now: datetime) -> bool:
    """Returns whether the attempt counts towards the job's limit. An attempt that waited for a lock, for its server, or
    for executors that others have, counts only after a longer time (`_LONGEST_WAIT`, `_LONGEST_OUTAGE`)."""
    if error.type in _WAIT_ERRORS:
        return now - job.created_at > _LONGEST_WAIT
    if error.type == LOCK_UNAVAILABLE:
        return now - (job.started_at or now) > _LONGEST_OUTAGE
    return True


def after_lost_lease(job: Job, *, now: datetime) -> End | Retry:
    """Decides after the lease has expired. The retry needs no back-off, because it settles what this attempt left
    behind."""
    lost = WORKER_LOST.because(f"Worker {job.worker_id} held attempt {job.attempt} of {job.max_attempts}.")
    if job.cancel_requested:
        return End(JobState.CANCELLED, with_leftovers(lost, job.instants))
    if job.is_last_attempt:
        return _undecided(job, lost)
    return Retry(now, lost)


def _undecided(job: Job, error: Problem) -> End:
    """Ends a job after its last attempt. Only a reported instant can be looked up on the timeline."""
    state = JobState.UNKNOWN if job.instants and not job.dry_run else JobState.FAILED
    return End(state, with_leftovers(error, job.instants))


def cancelled_while_queued(job: Job) -> Problem | None:
    """Returns the error of a job that is cancelled while it is queued. It names instants that earlier attempts may have
    left behind."""
    return with_leftovers(job.error, job.instants) if job.error else None


def with_leftovers(error: Problem, instants: tuple[str, ...]) -> Problem:
    """Returns `error` with a note about instants that no later attempt will complete or roll back."""
    if not instants:
        return error
    note = (
        f"These instants may be pending on the timeline: {', '.join(instants)}; the next job of this kind finds them."
    )
    return replace(error, detail=f"{error.detail} {note}".strip())
