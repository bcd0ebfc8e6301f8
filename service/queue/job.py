"""The job model: one table service requested for one table, with all its attempts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from jobs.contract import DEFAULT_GROUP, JobKind, Problem, Progress, WorkOrder
from jobs.kinds.registry import KINDS
from jobs.kinds.results import KindResult
from jobs.trace_context import of_job
from service.model.hand_over import HandOver, HandOverState
from service.model.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jobs.contract import Table


class JobState(StrEnum):
    """States: queued -> leased (a worker took it) -> running (it has confirmed) -> succeeded | failed | cancelled.

    After the last attempt a job may be `unknown` instead: its worker disappeared, or could not find out whether it
    committed. The next poll of the table's timeline settles it (`service.queue.unknown_outcomes`).
    """

    QUEUED = "queued"
    LEASED = "leased"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    @property
    def is_active(self) -> bool:
        return self in ACTIVE

    @property
    def is_held(self) -> bool:
        return self in HELD


HELD = (JobState.LEASED, JobState.RUNNING)
ACTIVE = (JobState.QUEUED, *HELD)
ENDED = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


class AttemptOutcome(StrEnum):
    """Outcomes of an attempt: those of `jobs.contract.Outcome`, and `LOST` for a worker that disappeared."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    LOST = "lost"


class JobVerdict(StrEnum):
    """What a job that has ended says of its work: a plan that can be executed, one that would be or was refused, or
    that there was nothing to do."""

    READY = "ready"
    REFUSED = "refused"
    NOTHING_TO_DO = "nothing_to_do"


def verdict_of(state: JobState, *, dry_run: bool, refused: bool, nothing_to_do: bool) -> JobVerdict | None:
    """Returns the verdict of a dry run that has ended, and of another job if it was refused or had nothing to do.

    The job's result says whether it was refused, and whether it had nothing to do.
    """
    if state not in (JobState.SUCCEEDED, JobState.FAILED):
        return None
    if refused:
        return JobVerdict.REFUSED
    if state is JobState.FAILED:
        return None
    if nothing_to_do:
        return JobVerdict.NOTHING_TO_DO
    return JobVerdict.READY if dry_run else None


def mutates(kind: JobKind, *, dry_run: bool) -> bool:
    """Returns whether such a job writes to the table. Two such jobs are never leased at the same time on one table."""
    return not dry_run and KINDS[kind].writes


@dataclass(frozen=True)
class Attempt(Record):
    """One lease of a job, from the moment a worker took it. `ended_at` is None until it ends."""

    attempt: int
    worker_id: str
    started_at: datetime
    ended_at: datetime | None = None
    outcome: AttemptOutcome | None = None
    error: Problem | None = None


@dataclass(frozen=True)
class Spent:
    """The seconds from the submission of a job to its end, or until now."""

    waited: float  # Before and between its attempts.
    worked: float  # In its attempts.

    @property
    def took(self) -> float:
        return self.waited + self.worked


@dataclass(frozen=True)
class Holder:
    """The worker that takes or holds a lease."""

    worker_id: str | None = None  # None if an earlier version does not say.
    token_id: str | None = None  # None without a token.


NOBODY = Holder()


@dataclass(frozen=True)
class Job(Record):
    """A job."""

    id: str
    table_id: str
    kind: JobKind
    created_at: datetime
    not_before: datetime
    params: Mapping[str, Any] = field(default_factory=dict)
    dry_run: bool = False
    state: JobState = JobState.QUEUED
    attempt: int = 0  # Number of leases; 0 before the first.
    max_attempts: int = 3
    lease_deadline: datetime | None = None
    worker_id: str | None = None
    lease_token: str | None = None
    progress: Progress | None = None
    instants: tuple[str, ...] = ()  # Instants of all attempts, in order of arrival.
    result: Mapping[str, Any] | None = None
    error: Problem | None = None  # Error of the last attempt: stays until the job succeeds.
    cancel_requested: bool = False
    idempotency_key: str | None = None
    priority: int = 0  # Jobs with a higher one are leased first.
    worker_group: str = DEFAULT_GROUP  # Only its workers get the job.
    timeout_seconds: int | None = None  # Limit of each attempt; None leaves that to the setting of the service.
    requested_by: str | None = None
    retry_of: str | None = None  # Id of the job that it repeats, which may have been deleted.
    traceparent: str | None = None  # The trace that it belongs to (W3C Trace Context).
    reason: str | None = None  # Why the service submitted the job; None if a person did.
    leased_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    waits_for_writers: bool = False  # Queued, but no worker gets it until its `hand_over` says that they have stopped.
    hand_over: HandOver | None = None
    held_back: str | None = None  # The pause or window for which a further attempt waits although it is due.

    def evolve(self, **changes: Any) -> Job:
        return dataclasses.replace(self, **changes)

    @property
    def is_last_attempt(self) -> bool:
        return self.attempt >= self.max_attempts

    @property
    def parsed_result(self) -> KindResult:
        """The result as far as this version knows it; no member is set without a result."""
        return KINDS[self.kind].result.parse(self.result)

    @property
    def verdict(self) -> JobVerdict | None:
        """The verdict of the job; None without a result."""
        if self.result is None:
            return None
        parsed = KindResult.parse(self.result)
        is_idle = bool(parsed.nothing_to_do)
        return verdict_of(self.state, dry_run=self.dry_run, refused=bool(parsed.refusals), nothing_to_do=is_idle)

    def spent(self, attempts: Iterable[Attempt], now: datetime) -> Spent:
        """Returns how long the job waited and worked until now, by all of its `attempts`."""
        end = self.finished_at or now
        worked = sum(max(0.0, ((each.ended_at or end) - each.started_at).total_seconds()) for each in attempts)
        # An attempt that was lost is ended a little later than the worker stopped, and never after the job.
        took = max(worked, (end - self.created_at).total_seconds())
        return Spent(waited=took - worked, worked=worked)

    def is_leased_to(self, holder: Holder) -> bool:
        """Returns whether the lease belongs to this token and worker."""
        is_worker = holder.worker_id is None or holder.worker_id == self.worker_id
        return is_worker and (self.lease_token is None or holder.token_id == self.lease_token)

    def with_instants(self, more: Iterable[str]) -> tuple[str, ...]:
        """Returns the recorded instants and `more`, each once: a worker repeats them in every heartbeat."""
        return tuple(dict.fromkeys((*self.instants, *more)))

    def work_order(self, table: Table, timeout_seconds: float) -> WorkOrder:
        """Returns the work order for the worker that leased this attempt. `timeout_seconds` counts if the job has no
        limit of its own."""
        return WorkOrder(
            job_id=self.id,
            attempt=self.attempt,
            kind=self.kind,
            table_id=self.table_id,
            traceparent=of_job(self.traceparent, self.id),
            table=table,
            params=self.params,
            dry_run=self.dry_run,
            earlier_instants=self.instants,
            writers_stopped=self.hand_over is not None and self.hand_over.state is HandOverState.STOPPED,
            timeout_seconds=timeout_seconds if self.timeout_seconds is None else self.timeout_seconds,
        )
