"""Messages of workers, and the answers to them."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, Field, StringConstraints, model_validator

from jobs.contract import (
    DEFAULT_GROUP,
    MOST_LINE_CHARACTERS,
    MOST_LOG_CHARACTERS,
    MOST_LOG_LINES,
    LogLevel,
    WorkerState,
)
from jobs.kinds.words import NO_NUL
from jobs.redaction import redacted
from jobs.web_url import APPLICATION_ID, WEB_URL
from service.api.requests import Options, Word
from service.policies.policy import GROUP_PATTERN
from service.queue.job import JobState

_LONGEST_LOGGER = 128


def _shortened(logger: str) -> str:
    return logger[-_LONGEST_LOGGER:]


def _bounded(lines: list[LogLineIn]) -> list[LogLineIn]:
    if sum(len(line.message) for line in lines) > MOST_LOG_CHARACTERS:
        raise ValueError(f"has more than {MOST_LOG_CHARACTERS} characters of messages")
    return lines


class LogLineIn(BaseModel):
    number: int = Field(
        ge=0, lt=10**9, description="Number of the line within the attempt, so that a repeated line is stored once"
    )
    at: AwareDatetime = Field(ge="1970-01-01T00:00:00Z", lt="3000-01-01T00:00:00Z")
    level: LogLevel = Field(description="How serious the line is")
    logger: Annotated[str, StringConstraints(max_length=1024), AfterValidator(_shortened)] = Field(
        description="The module of the worker, or the Java class; only the end of a long name is stored"
    )
    message: Annotated[str, StringConstraints(max_length=MOST_LINE_CHARACTERS), AfterValidator(redacted)] = Field(
        description="The text, which may have line breaks; secrets are masked"
    )


LogLines = Annotated[list[LogLineIn], Field(max_length=MOST_LOG_LINES), AfterValidator(_bounded)]
_Count = Annotated[int, Field(ge=0, lt=2**53)]
_Attempt = Annotated[int, Field(ge=0, lt=2**31)]
_MOST_NESTED = 32


def storable(value: Any, nested: int = 0) -> Any:
    """Returns `value` without anything that JSON or the databases refuse: NUL, lone surrogates, and numbers that are
    not finite or have more than 64 bits.

    A worker must be able to report its result, whatever text an error of the JVM has. Raises ValueError for objects and
    arrays that are nested more deeply than those of any result.
    """
    if nested > _MOST_NESTED:
        raise ValueError(f"is nested deeper than {_MOST_NESTED} levels")
    match value:
        case str():
            return value.replace("\0", "").encode(errors="replace").decode()
        case float() if not math.isfinite(value):
            return None
        case int() if not -(2**63) <= value < 2**63:
            return None
        case dict():
            return {storable(key): storable(each, nested + 1) for key, each in value.items()}
        case list():
            return [storable(each, nested + 1) for each in value]
        case _:
            return value


class _FromWorker(BaseModel):
    @model_validator(mode="before")
    @classmethod
    def _make_storable(cls, data: Any) -> Any:
        return storable(data)


class ProblemIn(BaseModel):
    type: str = Field(description="The type of the problem", examples=["/problems/table-locked"])
    title: str
    detail: Annotated[str, AfterValidator(redacted)] = ""
    hint: str = ""
    retriable: bool = False


class ReadRatesIn(_FromWorker):
    """Processor seconds that a read takes on the worker's machine, which the worker has measured"""

    scan_seconds_per_gib: float = Field(
        gt=0, le=1e6, allow_inf_nan=False, description="To scan a GiB of base files", examples=[4.0]
    )
    merge_seconds_per_gib: float = Field(
        gt=0, le=1e6, allow_inf_nan=False, description="To merge a GiB of log files", examples=[40.0]
    )


class WorkerInfoIn(_FromWorker):
    """What GET /v1/workers shows about the worker. `group` also selects the jobs that the worker gets."""

    version: Word | None = None
    master: Word | None = None
    slots: int | None = Field(None, ge=1, le=1_000_000, description="Jobs that the worker runs at once", examples=[1])
    spare_slots: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="Submitted jobs that the worker may run in addition when all its slots are taken",
        examples=[1],
    )
    driver_memory: Word | None = None
    group: Annotated[str, StringConstraints(pattern=GROUP_PATTERN)] = Field(
        DEFAULT_GROUP, description="Its worker group", examples=["default"]
    )
    state: WorkerState | None = Field(None, description="Only a worker that is `ready` gets jobs", examples=["ready"])
    executors: int | None = Field(None, ge=0, le=1_000_000, description="Executors of its Spark application")
    spark_conf: Options = Field(
        default_factory=dict,
        description="Options of Spark that the worker was given",
        examples=[{"spark.executor.memory": "4g"}],
    )
    error: ProblemIn | None = None
    application_id: Annotated[str, StringConstraints(pattern=APPLICATION_ID)] | None = Field(
        None, description="Id of its Spark application", examples=["app-20260101120000-0001"]
    )
    ui_url: Annotated[str, StringConstraints(pattern=WEB_URL)] | None = Field(
        None, description="Address of Spark's UI, if it has one", examples=["http://10.0.0.7:4040"]
    )
    read_rates: ReadRatesIn | None = Field(None, description="What reads cost on the worker's machine")


_WorkerId = Annotated[
    str, StringConstraints(min_length=1, max_length=255, pattern=NO_NUL), Field(examples=["host-4711-1"])
]


_RequestId = Annotated[
    str | None,
    StringConstraints(min_length=1, max_length=64, pattern=NO_NUL),
    Field(description="Chosen by the worker, a new one for each job. A repeated request gets the same job"),
]


class AnnounceRequest(BaseModel):
    worker_id: _WorkerId
    worker: WorkerInfoIn = Field(description="The worker's description of itself")


class LeaseRequest(BaseModel):
    """A request for a job. A worker may be newer than the service, so this model and those below ignore unknown
    members."""

    worker_id: _WorkerId
    wait_seconds: float = Field(0, ge=0, le=20, description="How long the call may wait for a job")
    only_submitted: bool = Field(
        False, description="Whether the request is for a spare slot, which gets submitted jobs but no automatic ones"
    )
    worker: WorkerInfoIn | None = Field(None, description="The worker's description of itself")
    request_id: _RequestId = None


class ProgressIn(BaseModel):
    step: str
    tasks_done: _Count = 0
    tasks_total: _Count = 0
    bytes_done: _Count = 0
    bytes_total: _Count = 0


class _FromHolder(_FromWorker):
    attempt: _Attempt
    worker_id: Annotated[str, StringConstraints(max_length=255, pattern=NO_NUL)] | None = Field(
        None, description="A lease belongs to one worker; earlier versions do not send this"
    )


class HeartbeatIn(_FromHolder):
    progress: ProgressIn | None = Field(None, description="What the job does now")
    instants: list[Word] = Field(
        default_factory=list, description="Instants that the attempt has created so far", examples=[[]]
    )
    log: LogLines = Field(default_factory=list, description="Lines of the attempt's log since the last heartbeat")


class ResultIn(BaseModel):
    outcome: Literal["succeeded", "failed", "cancelled", "unknown"] = Field(
        description="How the attempt ended", examples=["succeeded"]
    )
    instants: list[Word] = Field(
        default_factory=list, description="Instants that the attempt created", examples=[["20260101120000000"]]
    )
    details: dict[str, Any] = Field(
        default_factory=dict, description="Measured values of the kind; for a dry run, the plan", examples=[{}]
    )
    error: ProblemIn | None = None


class NextIn(BaseModel):
    worker: WorkerInfoIn | None = Field(None, description="The worker's description of itself")
    request_id: _RequestId = None


class ReportIn(_FromHolder):
    result: ResultIn = Field(description="How the attempt ended")
    log: LogLines = Field(default_factory=list, description="The last lines of the attempt's log")
    next: NextIn | None = Field(
        None, description="Requests the next job with the answer; earlier versions use a separate call"
    )


class LeaseOut(BaseModel):
    """A leased job. `plan` is `jobs.contract.WorkOrder` as JSON."""

    plan: dict[str, Any] = Field(description="The work order: job, table, parameters, limits")
    lease_seconds: float = Field(description="After this time without a heartbeat the job goes to another worker")


class HeartbeatOut(BaseModel):
    answer: Literal["continue", "cancel", "lost"] = Field(
        description="What the worker has to do", examples=["continue"]
    )


class ReportOut(BaseModel):
    state: JobState = Field(description="New state of the job; `queued` if it will be retried")
    next: LeaseOut | None = Field(None, description="The next job, if the report asks for one and a job is due")
