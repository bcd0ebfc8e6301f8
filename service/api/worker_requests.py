"""Messages of workers."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, StringConstraints, model_validator

from jobs.contract import DEFAULT_GROUP, WorkerState
from jobs.kinds.words import NO_NUL
from jobs.redaction import redacted
from service.api.log_lines import LogLines
from service.api.requests import Options, Word
from service.policies.policy import GROUP_PATTERN

_Count = Annotated[int, Field(ge=0, lt=2**53)]
_Attempt = Annotated[int, Field(ge=0, lt=2**31)]
_MOST_NESTED = 32


def storable(value: Any, nested: int = 0) -> Any:
    """Removes from `value` what JSON or the databases refuse: NUL, lone surrogates, numbers that are not finite or have
    more than 64 bits.

    A worker does not control the text of a JVM's errors, and must be able to report its result. Raises ValueError for
    objects and arrays that are nested deeper than any result.
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
    type: str
    title: str
    detail: Annotated[str, AfterValidator(redacted)] = ""
    hint: str = ""
    retriable: bool = False


class WorkerInfoIn(_FromWorker):
    """Shown in GET /v1/workers; `group` also selects the jobs that the worker gets."""

    version: Word | None = None
    master: Word | None = None
    slots: int | None = Field(None, ge=1, le=1_000_000)
    spare_slots: int = Field(0, ge=0, le=1_000_000)
    driver_memory: Word | None = None
    group: Annotated[str, StringConstraints(pattern=GROUP_PATTERN)] = DEFAULT_GROUP
    state: WorkerState | None = None
    executors: int | None = Field(None, ge=0, le=1_000_000)
    spark_conf: Options = Field(default_factory=dict)
    error: ProblemIn | None = None


_WorkerId = Annotated[
    str, StringConstraints(min_length=1, max_length=255, pattern=NO_NUL), Field(examples=["host-4711-1"])
]


class AnnounceRequest(BaseModel):
    worker_id: _WorkerId
    worker: WorkerInfoIn


class LeaseRequest(BaseModel):
    """A worker may be newer than the service, so unknown members are ignored, here and below."""

    worker_id: _WorkerId
    wait_seconds: float = Field(0, ge=0, le=20, description="How long the call may wait for a job")
    only_submitted: bool = Field(
        False, description="Whether a spare slot asks: it gets no job that the service has started by itself"
    )
    worker: WorkerInfoIn | None = Field(None, description="The worker's description of itself")


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
    progress: ProgressIn | None = None
    instants: list[Word] = Field(default_factory=list)
    log: LogLines = Field(default_factory=list, description="Lines of the attempt's log since the last heartbeat")


class ResultIn(BaseModel):
    outcome: Literal["succeeded", "failed", "cancelled", "unknown"]
    instants: list[Word] = Field(default_factory=list)
    details: dict[str, Any] = Field(default_factory=dict)
    error: ProblemIn | None = None


class ReportIn(_FromHolder):
    result: ResultIn
    log: LogLines = Field(default_factory=list, description="The last lines of the attempt's log")
