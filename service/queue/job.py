"""The job model: one table service requested for one table, with all its attempts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from jobs.contract import DEFAULT_GROUP, JobKind, Problem, Progress, Table, WorkOrder
from jobs.kinds.registry import KINDS
from jobs.kinds.results import KindResult
from jobs.spec import Spec
from jobs.trace_context import of_job
from jobs.web_url import filled
from service.model.hand_over import HandOver, HandOverState
from service.model.record import Record


class JobState(StrEnum):
    """States: queued -> leased (a worker took the job) -> running (the worker sent a heartbeat) -> succeeded | failed |
    cancelled.

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
    def has_worker(self) -> bool:
        return self in WITH_WORKER


WITH_WORKER = (JobState.LEASED, JobState.RUNNING)
ACTIVE = (JobState.QUEUED, *WITH_WORKER)
ENDED = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


class AttemptOutcome(StrEnum):
    """Outcomes of an attempt: those of `jobs.contract.Outcome`, and `LOST` for a worker that disappeared."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    LOST = "lost"


class JobVerdict(StrEnum):
    """The finding of an ended job. `ready`: a dry run has made a plan that can be executed. `refused`: the job was
    refused, or a dry run found that it would be. `nothing_to_do`: there was no work."""

    READY = "ready"
    REFUSED = "refused"
    NOTHING_TO_DO = "nothing_to_do"


def verdict_of(state: JobState, *, dry_run: bool, refused: bool, nothing_to_do: bool) -> JobVerdict | None:
    """Returns the verdict of an ended job. A job that is no dry run has a verdict only if it was refused or had nothing
    to do; otherwise the result is None. `refused` and `nothing_to_do` come from the job's result."""
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
    """Returns whether such a job writes to the table. On one table, only one job that writes is leased at a time."""
    return not dry_run and KINDS[kind].writes


@dataclass(frozen=True)
class Attempt(Record):
    """One lease of a job, from the moment a worker took it. `ended_at` is None until it ends."""

    attempt: int
    worker_id: str
    started_at: datetime
    ended_at: datetime | None = None
    outcome: Annotated[
        AttemptOutcome | None, Spec("How the attempt ended; null until its end", examples=("succeeded",))
    ] = None
    error: Problem | None = None
    application_id: Annotated[
        str | None, Spec("Id of the Spark application that ran the attempt", examples=("app-20260101120000-0001",))
    ] = None
    ui_url: str | None = None  # The UI of that application, while it runs.

    def spark_url(self, template: str | None) -> str | None:
        """Returns the address of the Spark application. A template takes precedence, because its server also shows
        ended applications. Without a template, the result is the address that the worker has reported."""
        return filled(template, self.application_id) if template and self.application_id else self.ui_url


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

    worker_id: str | None = None  # None if an earlier version did not store it.
    token_id: str | None = None  # None without a token.


NOBODY = Holder()


@dataclass(frozen=True)
class Job(Record):
    id: Annotated[str, Spec("Id of the job", examples=("job_4be1c0d2f6a89b37",))]
    table_id: str
    kind: JobKind
    created_at: datetime
    not_before: Annotated[datetime, Spec("No worker gets the job earlier", examples=("2026-01-01T12:00:00Z",))]
    params: Annotated[
        Mapping[str, Any],
        Spec("Parameters of the kind, with all defaults", examples=({"limit_bytes": 10_737_418_240},)),
    ] = field(default_factory=dict)
    dry_run: bool = False
    state: Annotated[
        JobState,
        Spec(
            "`queued`, `leased` by a worker, `running`, or ended. `unknown`: the table's timeline will tell",
            examples=("succeeded",),
        ),
    ] = JobState.QUEUED
    attempt: Annotated[int, Spec("Number of leases so far")] = 0
    max_attempts: Annotated[int, Spec("Attempts after which the job fails", examples=(3,))] = 3
    lease_deadline: Annotated[datetime | None, Spec("When the lease expires without a heartbeat")] = None
    worker_id: str | None = None
    lease_token: str | None = None
    progress: Progress | None = None
    instants: Annotated[tuple[str, ...], Spec("Instants that the job's attempts created on the table's timeline")] = ()
    result: Annotated[Mapping[str, Any] | None, Spec("Measured values; for a dry run, the plan", examples=({},))] = None
    error: Problem | None = None  # Error of the last attempt: stays until the job succeeds.
    cancel_requested: Annotated[bool, Spec("Whether somebody has asked to cancel the job", examples=(False,))] = False
    idempotency_key: str | None = None
    priority: Annotated[int, Spec("Jobs with a higher priority start first", examples=(0,))] = 0
    worker_group: Annotated[str, Spec("Only workers of this group get the job")] = DEFAULT_GROUP
    timeout_seconds: Annotated[int | None, Spec("Time limit of one attempt; null: the service's setting")] = None
    requested_by: Annotated[
        str | None, Spec("The caller that submitted the job, or `policy`", examples=("ada (4f0c9d2b71aa)",))
    ] = None
    retry_of: Annotated[str | None, Spec("The job that this one repeats, which may have been deleted")] = None
    traceparent: str | None = None  # The trace to which the job belongs (W3C Trace Context).
    reason: Annotated[
        str | None,
        Spec(
            "The reason, if a policy submitted the job", examples=("6 commits since the last compaction, threshold 5",)
        ),
    ] = None
    leased_at: Annotated[
        datetime | None, Spec("When a worker last took the job; null before", examples=("2026-01-01T12:00:00Z",))
    ] = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    # True while a queued job must not be leased, because the table's writers have not been stopped yet (`hand_over`).
    waits_for_writers: bool = False
    hand_over: HandOver | None = None
    worth: Annotated[
        float | None,
        Spec("Processor seconds that readers have paid for the job's delay, per second of its work; null if unknown"),
    ] = None
    starts_by: Annotated[
        datetime | None, Spec("When the job begins to go before other jobs, even if these save more")
    ] = None
    held_back: str | None = None  # The pause or window because of which a due further attempt waits.

    @property
    def is_last_attempt(self) -> bool:
        return self.attempt >= self.max_attempts

    @property
    def parsed_result(self) -> KindResult:
        """The result, with the members that this version knows. Without a result no member is set."""
        return KINDS[self.kind].result.parse(self.result)

    @property
    def verdict(self) -> JobVerdict | None:
        """The verdict of the job; None without a result."""
        if self.result is None:
            return None
        parsed = self.parsed_result
        is_idle = bool(parsed.nothing_to_do)
        return verdict_of(self.state, dry_run=self.dry_run, refused=bool(parsed.refusals), nothing_to_do=is_idle)

    def spent(self, attempts: Iterable[Attempt], now: datetime) -> Spent:
        """Returns how long the job waited and worked until now. `attempts` are all of its attempts."""
        end = self.finished_at or now
        worked = sum(max(0.0, ((each.ended_at or end) - each.started_at).total_seconds()) for each in attempts)
        # The maximum keeps `waited` from becoming negative.
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
        """Returns the work order for the worker that leased this attempt. `timeout_seconds` is used if the job has no
        time limit of its own."""
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
