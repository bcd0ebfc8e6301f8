"""Response models."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from jobs.contract import JobKind, WriterEngine
from service.api.attempt_models import AttemptOut, BreakerOut, JobProblem, SpentOut
from service.api.clock_models import ClockOut
from service.api.forecasts import ForecastOut, Prospects
from service.api.readiness import Checks
from service.api.shown import Shown, made
from service.catalog.registration import Registration, Writers
from service.catalog.table_secrets import masked
from service.incidents.incident import IncidentState
from service.lake.engine_sighting import Sightings
from service.model.flink_restart import FlinkRestart
from service.model.hand_over import HandOverState
from service.queue.job import Attempt, Job, JobState, JobVerdict


class FieldError(BaseModel):
    field: str
    message: str


class ProblemDocument(BaseModel):
    """RFC 9457. Some types have further members, such as `errors`, `job_id` or `table_id`."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(examples=["/problems/job-conflict"])
    title: str
    status: int
    detail: str
    hint: str | None = None
    instance: str | None = None
    request_id: str | None = Field(
        None, description="As in the header `X-Request-Id`; the service's log has it", examples=["req_5f0c6be1d2a84397"]
    )
    errors: list[FieldError] | None = None
    checks: Checks | None = Field(None, description="Of `/readyz`")


class IndexOut(BaseModel):
    type: Literal["bucket"] = "bucket"
    num_buckets: int
    hash_fields: list[str]


class LockOut(BaseModel):
    provider: str
    options: dict[str, str]
    wait_seconds: float | None


class FlinkOut(Shown):
    rest_url: str
    job: str
    savepoint_folder: str | None
    restart: FlinkRestart


class SightingOut(Shown):
    """The detection of an engine."""

    first_seen: datetime
    last_seen: datetime
    instant: str | None = Field(
        description="The latest instant with evidence; null if the evidence is in the table itself"
    )
    evidence: str


class WritersOut(BaseModel):
    hudi_version: str | None
    stopped: bool
    retry_conflicts: bool
    query_pruning_off: bool
    engines: list[WriterEngine] | None = Field(description="As declared; null if not declared")
    flink: FlinkOut | None
    detected: dict[WriterEngine, SightingOut] = Field(
        description="Detected on the table since `engines` was last declared"
    )

    @classmethod
    def of(cls, writers: Writers, sightings: Sightings) -> WritersOut:
        return made(cls, writers, detected=writers.detected(sightings))


class ReadersOut(BaseModel):
    hudi_version: str | None


class IncidentCounts(BaseModel):
    """Counts of unresolved incidents; `GET /v1/tables/{id}/incidents` lists them."""

    open: int = 0
    suspected: int = 0

    @classmethod
    def of(cls, counts: Mapping[IncidentState, int]) -> IncidentCounts:
        return cls(open=counts.get(IncidentState.OPEN, 0), suspected=counts.get(IncidentState.SUSPECTED, 0))


class TableOut(BaseModel):
    """A registered table. Values of options that look like secrets, by their names or by themselves, are masked."""

    id: str = Field(examples=["tbl_0f3c2a9d5e7b1c44"])
    name: str
    base_path: str = Field(description="Canonical: absolute, links and `..` resolved")
    index: IndexOut | None
    lock: LockOut
    writers: WritersOut
    readers: ReadersOut
    hudi_options: dict[str, str]
    profile: dict[str, Any] = Field(description="Detected when the table was last examined")
    incidents: IncidentCounts = Field(description="Unresolved incidents")
    clock: ClockOut | None = Field(description="The writers' clock; null before the first poll")
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(
        cls,
        table: Registration,
        sightings: Sightings,
        counts: Mapping[IncidentState, int] | None = None,
        clock: Mapping[str, Any] | None = None,
    ) -> TableOut:
        """`sightings` are those of the table's engines, `counts` those of its unresolved incidents; `clock` is that of
        its snapshot."""
        lock = table.lock
        return made(
            cls,
            table,
            lock=LockOut(provider=lock.provider, options=masked(lock.options), wait_seconds=lock.wait_seconds),
            writers=WritersOut.of(table.writers, sightings),
            hudi_options=masked(table.hudi_options),
            incidents=IncidentCounts.of(counts or {}),
            clock=clock or None,
        )


class TableDetected(BaseModel):
    """The findings of a registration with the same body."""

    name: str = Field(examples=["orders"])
    base_path: str = Field(description="Canonical: absolute, links and `..` resolved", examples=["s3a://lake/orders"])
    index: IndexOut | None = Field(description="The bucket index that sampled record keys prove, or the one given")
    profile: dict[str, Any] = Field(
        description="Type, version, partitioning, keys and columns, as in GET /v1/tables/{id}",
        examples=[{"table_type": "MERGE_ON_READ", "table_version": 9, "warnings": []}],
    )
    registered_as: str | None = Field(description="The table that is registered at this path already", examples=[None])


class TablePage(BaseModel):
    items: list[TableOut]
    next_cursor: str | None


class ProgressOut(BaseModel):
    step: str
    tasks_done: int
    tasks_total: int
    bytes_done: int
    bytes_total: int


class HandOverOut(BaseModel):
    state: HandOverState = Field(
        description="`draining`: a user has to stop the writers; `stopping`: the service is stopping them"
    )
    since: datetime
    deadline: datetime = Field(description="If the writers are not stopped by then, the job fails without any change")
    by: str | None = Field(description="The caller that stopped them, or `groundskeeper`")
    savepoint: str | None
    restart: FlinkRestart
    detail: str


class JobOut(BaseModel):
    id: str = Field(examples=["job_4be1c0d2f6a89b37"])
    table_id: str
    kind: JobKind
    params: dict[str, Any]
    dry_run: bool
    state: JobState
    attempt: int = Field(description="Number of leases so far")
    max_attempts: int
    cancel_requested: bool
    priority: int
    worker_group: str = Field(description="Only workers of this group get the job")
    timeout_seconds: int | None = Field(description="Time limit of one attempt; null: the service's setting")
    requested_by: str | None = Field(description="The caller that submitted it, or `policy`")
    reason: str | None = Field(description="The reason, if a policy submitted it")
    retry_of: str | None = Field(description="The job that it repeats; that may have been deleted")
    worker_id: str | None
    progress: ProgressOut | None
    instants: list[str] = Field(description="Instants that its attempts created on the table's timeline")
    result: dict[str, Any] | None = Field(description="Measured values; for a dry run, the plan")
    verdict: JobVerdict | None = Field(
        description="Of a dry run that has ended: whether its plan is `ready`, would be `refused`, or has"
        " `nothing_to_do`. Of another job only that it was refused, or had nothing to do",
        examples=["refused"],
    )
    error: JobProblem | None = Field(description="Error of the last attempt")
    created_at: datetime
    not_before: datetime
    leased_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    lease_deadline: datetime | None
    hand_over: HandOverOut | None = Field(
        description="Set if the job waits, or has waited, until the writers are stopped"
    )
    waits_for: str | None = Field(
        None,
        description="What keeps a queued job from a worker, or the step of a running one from going on. It reads after"
        " the words `waits for`. Null if the job waits for nothing",
        examples=["a free slot: 1 worker of the group default, all busy"],
    )
    forecast: ForecastOut | None = Field(None, description="Null for one that has ended, or changed a moment ago")

    breaker: BreakerOut | None = Field(
        None, description="Of a queued job: set while the attempts of jobs of this kind fail on the table"
    )

    @classmethod
    def of(cls, job: Job, prospects: Prospects) -> JobOut:
        return made(cls, job, **expected(job, prospects))


class JobDetail(JobOut):
    attempts: list[AttemptOut]
    spent: SpentOut = Field(description="How long it waited and worked; the two add up to what it took")

    @classmethod
    def with_attempts(cls, job: Job, attempts: list[Attempt], prospects: Prospects, now: datetime) -> JobDetail:
        shown = [AttemptOut.of(attempt) for attempt in attempts]
        spent = SpentOut.of(job.spent(attempts, now))
        return made(cls, job, **expected(job, prospects), attempts=shown, spent=spent)


class PollOut(BaseModel):
    table_id: str = Field(examples=["tbl_0f3c2a9d5e7b1c44"])
    is_new: bool = Field(description="False if a poll was already about to begin")


class JobPage(BaseModel):
    items: list[JobOut]
    next_cursor: str | None


class LeaseOut(BaseModel):
    """`plan` is `jobs.contract.WorkOrder` as JSON."""

    plan: dict[str, Any]
    lease_seconds: float = Field(description="After this time without a heartbeat the job goes to another worker")


class HeartbeatOut(BaseModel):
    answer: Literal["continue", "cancel", "lost"]


class ReportOut(BaseModel):
    state: JobState = Field(description="New state of the job; `queued` if it will be retried")


class HealthOut(BaseModel):
    status: Literal["ok"] = "ok"


def expected(job: Job, prospects: Prospects) -> dict[str, Any]:
    """Returns the members of a job that do not stand in its row."""
    wait = prospects.waits.get(job.id)
    return {
        "waits_for": wait.what if wait else None,
        "breaker": BreakerOut.of(wait.breaker, wait.at) if wait else None,
        "forecast": ForecastOut.of(job, prospects.outlook),
        "error": JobProblem.of(job.error),
    }
