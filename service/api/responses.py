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
    field: str = Field(description="Name of the member or parameter, as a path", examples=["params.num_buckets"])
    message: str = Field(description="What is wrong with it", examples=["must be greater than 0"])


class ProblemDocument(BaseModel):
    """RFC 9457. Some types have further members, such as `errors`, `job_id` or `table_id`."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="The type of the problem", examples=["/problems/job-conflict"])
    title: str
    status: int = Field(description="HTTP status", examples=[409])
    detail: str
    hint: str | None = None
    instance: str | None = Field(
        None, description="Address of the call", examples=["/v1/tables/tbl_0f3c2a9d5e7b1c44/jobs"]
    )
    request_id: str | None = Field(
        None, description="As in the header `X-Request-Id`; the service's log has it", examples=["req_5f0c6be1d2a84397"]
    )
    errors: list[FieldError] | None = Field(None, description="Each value that is wrong")
    checks: Checks | None = Field(None, description="Of `/readyz`")


class IndexOut(BaseModel):
    type: Literal["bucket"] = "bucket"
    num_buckets: int
    hash_fields: list[str]


class LockOut(BaseModel):
    provider: str = Field(description="`filesystem`, `zookeeper`, or a LockProvider class", examples=["filesystem"])
    options: dict[str, str] = Field(description="The provider's options, secrets masked", examples=[{}])
    wait_seconds: float | None = Field(description="How long a job waits for it; null for the service's setting")


class FlinkOut(Shown):
    rest_url: str
    job: str = Field(description="Name or id of the job", examples=["orders-ingest"])
    savepoint_folder: str | None = Field(description="Folder of its savepoints; null for the cluster's own")
    restart: FlinkRestart = Field(description="How it is started again after each stop", examples=["from-savepoint"])


class SightingOut(Shown):
    """The detection of an engine."""

    first_seen: datetime
    last_seen: datetime
    instant: str | None = Field(
        description="The latest instant with evidence; null if the evidence is in the table itself"
    )
    evidence: str = Field(
        description="What shows that the engine writes the table", examples=["flink checkpoint in the commit"]
    )


class WritersOut(BaseModel):
    hudi_version: str | None
    stopped: bool = Field(description="Declared: no writer is running", examples=[False])
    retry_conflicts: bool = Field(
        description="Declared: all writers write a batch again when it conflicts", examples=[False]
    )
    query_pruning_off: bool = Field(
        description="Declared: Hudi's pruning by buckets is off wherever SQL reads the table", examples=[False]
    )
    engines: list[WriterEngine] | None = Field(description="As declared; null if not declared")
    flink: FlinkOut | None = Field(description="The Flink job that writes the table; null if not declared")
    detected: dict[WriterEngine, SightingOut] = Field(
        description="Detected on the table since `engines` was last declared", examples=[{}]
    )

    @classmethod
    def of(cls, writers: Writers, sightings: Sightings) -> WritersOut:
        return made(cls, writers, detected=writers.detected(sightings))


class ReadersOut(BaseModel):
    hudi_version: str | None


class IncidentCounts(BaseModel):
    """Counts of unresolved incidents; `GET /v1/tables/{id}/incidents` lists them."""

    open: int = Field(0, description="Open incidents", examples=[0])
    suspected: int = Field(0, description="Suspected incidents", examples=[0])

    @classmethod
    def of(cls, counts: Mapping[IncidentState, int]) -> IncidentCounts:
        return cls(open=counts.get(IncidentState.OPEN, 0), suspected=counts.get(IncidentState.SUSPECTED, 0))


class TableOut(BaseModel):
    """A registered table. Values of options that look like secrets, by their names or by themselves, are masked."""

    id: str = Field(description="Id of the table", examples=["tbl_0f3c2a9d5e7b1c44"])
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
        description="`draining`: a user has to stop the writers; `stopping`: the service is stopping them",
        examples=["draining"],
    )
    since: datetime
    deadline: datetime = Field(description="If the writers are not stopped by then, the job fails without any change")
    by: str | None = Field(description="The caller that stopped them, or `groundskeeper`", examples=["groundskeeper"])
    savepoint: str | None = Field(
        description="The savepoint with which the Flink job was stopped",
        examples=["s3://lake/savepoints/savepoint-1f2e3d"],
    )
    restart: FlinkRestart = Field(description="How Flink has to be started afterwards", examples=["from-savepoint"])
    detail: str = Field(description="What is waited for, or what came of it", examples=["Waits for orders-ingest."])


class JobOut(BaseModel):
    id: str = Field(description="Id of the job", examples=["job_4be1c0d2f6a89b37"])
    table_id: str
    kind: JobKind
    params: dict[str, Any] = Field(
        description="Parameters of the kind, with all defaults", examples=[{"limit_bytes": 10_737_418_240}]
    )
    dry_run: bool
    state: JobState = Field(
        description="`queued`, `leased` by a worker, `running`, or ended. `unknown`: the table's timeline will tell",
        examples=["succeeded"],
    )
    attempt: int = Field(description="Number of leases so far")
    max_attempts: int = Field(description="Attempts after which the job fails", examples=[3])
    cancel_requested: bool = Field(description="Whether somebody has asked to cancel it", examples=[False])
    priority: int = Field(description="Jobs with a higher one start first", examples=[0])
    worker_group: str = Field(description="Only workers of this group get the job")
    timeout_seconds: int | None = Field(description="Time limit of one attempt; null: the service's setting")
    requested_by: str | None = Field(
        description="The caller that submitted it, or `policy`", examples=["ada (4f0c9d2b71aa)"]
    )
    reason: str | None = Field(
        description="The reason, if a policy submitted it",
        examples=["6 commits since the last compaction, threshold 5"],
    )
    retry_of: str | None = Field(description="The job that it repeats; that may have been deleted")
    worker_id: str | None
    progress: ProgressOut | None = Field(description="What it does now; null before it runs")
    instants: list[str] = Field(description="Instants that its attempts created on the table's timeline")
    result: dict[str, Any] | None = Field(description="Measured values; for a dry run, the plan", examples=[{}])
    verdict: JobVerdict | None = Field(
        description="Of a dry run that has ended: whether its plan is `ready`, would be `refused`, or has"
        " `nothing_to_do`. Of another job only that it was refused, or had nothing to do",
        examples=["refused"],
    )
    error: JobProblem | None = Field(description="Error of the last attempt")
    created_at: datetime
    not_before: datetime = Field(description="No worker gets it earlier", examples=["2026-01-01T12:00:00Z"])
    leased_at: datetime | None = Field(
        description="When a worker last took it; null before", examples=["2026-01-01T12:00:00Z"]
    )
    started_at: datetime | None
    finished_at: datetime | None
    lease_deadline: datetime | None = Field(description="When the lease expires without a heartbeat")
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

    plan: dict[str, Any] = Field(description="The work order: job, table, parameters, limits")
    lease_seconds: float = Field(description="After this time without a heartbeat the job goes to another worker")


class HeartbeatOut(BaseModel):
    answer: Literal["continue", "cancel", "lost"] = Field(
        description="What the worker has to do", examples=["continue"]
    )


class ReportOut(BaseModel):
    state: JobState = Field(description="New state of the job; `queued` if it will be retried")


class HealthOut(BaseModel):
    status: Literal["ok"] = Field(default="ok", description="Always `ok`", examples=["ok"])


def expected(job: Job, prospects: Prospects) -> dict[str, Any]:
    """Returns the members of a job that do not stand in its row."""
    wait = prospects.waits.get(job.id)
    return {
        "waits_for": wait.what if wait else None,
        "breaker": BreakerOut.of(wait.breaker, wait.at) if wait else None,
        "forecast": ForecastOut.of(job, prospects.outlook),
        "error": JobProblem.of(job.error),
    }
