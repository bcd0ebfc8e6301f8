"""Response models of jobs: their state, attempts and forecast, and the lines of their log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

from pydantic import BaseModel, Field

from jobs.contract import JobKind, LogLevel, Problem
from service.api.answers import Declared, Shown
from service.api.problems import problem_uri
from service.api.structs import made, struct_of
from service.model.hand_over import HandOver
from service.queue.breaker import Breaker, BreakerState
from service.queue.cost import Basis, Cost, CostPart
from service.queue.job import Attempt, Job, JobVerdict, Spent
from service.queue.job_log import LogPage
from service.queue.outlook import HeldBack, Outlook
from service.queue.waiting import Wait


class JobProblem(BaseModel):
    type: str = Field(description="The type of the problem", examples=["/problems/table-locked"])
    title: str
    detail: str
    hint: str
    retriable: bool

    @classmethod
    def of(cls, problem: Problem | None) -> JobProblem | None:
        return made(cls, problem, type=problem_uri(problem.type)) if problem else None


class BreakerOut(Declared, declared=Breaker):
    """Attempts of this kind of job fail on this table, so the next one is delayed: failing work gets at most a tenth of
    the slots while other jobs wait."""

    state: BreakerState = Field(description="`open`: the next attempt waits; `half_open`: the next attempt may start")
    slot_seconds: float = Field(description="Seconds for which the failed attempts had a slot", examples=[12.5])
    error: JobProblem | None = Field(description="Error of the last failed attempt")

    @classmethod
    def of(cls, breaker: Breaker | None, now: datetime) -> BreakerOut | None:
        if breaker is None:
            return None
        error = JobProblem.of(breaker.error)
        return made(cls, breaker, state=breaker.state(now), slot_seconds=breaker.seconds, error=error)


class AttemptOut(Declared, declared=Attempt):
    attempt: int
    worker_id: str
    started_at: datetime
    ended_at: datetime | None
    error: JobProblem | None
    spark_url: str | None = Field(
        description="Address of its Spark application: the UI of the worker, or a history server by "
        "GROUNDSKEEPER_SPARK_UI_URL",
        examples=["https://history.example.com/history/app-20260101120000-0001/jobs/"],
    )

    @classmethod
    def of(cls, attempt: Attempt, spark_ui_url: str | None = None) -> AttemptOut:
        error, url = JobProblem.of(attempt.error), attempt.spark_url(spark_ui_url)
        return made(cls, attempt, error=error, spark_url=url)


class SpentOut(BaseModel):
    """Seconds from the submission of the job to its end, or until now."""

    waited_seconds: float = Field(description="Time before the first attempt and between attempts", examples=[41.0])
    worked_seconds: float = Field(description="Time in all attempts together", examples=[19.5])
    took_seconds: float = Field(description="Sum of both times", examples=[60.5])

    @classmethod
    def of(cls, spent: Spent) -> SpentOut:
        waited, worked = round(spent.waited, 3), round(spent.worked, 3)
        return made(cls, None, waited_seconds=waited, worked_seconds=worked, took_seconds=round(waited + worked, 3))


@dataclass(frozen=True)
class Prospects:
    """What answers about jobs need besides the jobs: the names of tables, by table id; what jobs wait for, by job id;
    the forecast; and the expected cost of the jobs that dry runs have planned, by id of the dry run."""

    names: Mapping[str, str]
    waits: Mapping[str, Wait] = field(default_factory=dict)
    outlook: Outlook | None = None
    costs: Mapping[str, Cost] = field(default_factory=dict)


class AmountOut(BaseModel):
    """An amount that a job is expected to take, besides its seconds."""

    of: CostPart = Field(description="What is counted. CPU seconds include those of the worker's processes")
    expected: float = Field(description="How much an attempt takes", examples=[8.4])
    low: float = Field(description="Nine of ten attempts take more than this", examples=[7.1])
    high: float = Field(description="Nine of ten attempts take less than this", examples=[9.9])


class CostOut(BaseModel):
    """Expected cost of an attempt, learned from attempts that have ended."""

    seconds: float = Field(description="How long an attempt takes", examples=[12.5])
    low_seconds: float = Field(description="Nine of ten attempts take longer than this", examples=[10.9])
    high_seconds: float = Field(description="Nine of ten attempts take less than this", examples=[15.0])
    gb_hours: float = Field(
        description="GiB of memory of a slot, times hours; 0 if the workers do not report their memory",
        examples=[0.0139],
    )
    low_gb_hours: float = Field(description="Nine of ten attempts take more than this", examples=[0.0121])
    high_gb_hours: float = Field(description="Nine of ten attempts take less than this", examples=[0.0167])
    learned_from: Basis = Field(
        description="The jobs from which this is learned: earlier jobs of this kind on the same `table`, on tables of "
        "the same `shape`, or all of this `kind`; `default` if there are none",
        examples=["table"],
    )
    is_guess: bool = Field(description="Whether no job of this kind has ended on this table")
    amounts: list[AmountOut] = Field(
        description="CPU seconds, and bytes of files that are read and written, if jobs of this kind and their workers "
        "report them"
    )
    text: str = Field(
        description="The same in words",
        examples=["about 13 s (11 s to 15 s), 8.4 s of CPU, reads 1.2 GiB, writes 1.0 GiB, 0.014 GB-hours"],
    )

    @classmethod
    def of(cls, cost: Cost | None) -> CostOut | None:
        return struct_of(cls)(text=cost.text, **_members(cost)) if cost else None


def _members(cost: Cost) -> dict[str, Any]:
    gb_hours, low_gb_hours, high_gb_hours = (float(f"{each:.3g}") for each in cost.gb_hours)
    return {
        "seconds": round(cost.seconds, 3),
        "low_seconds": round(cost.low, 3),
        "high_seconds": round(cost.high, 3),
        "gb_hours": gb_hours,
        "low_gb_hours": low_gb_hours,
        "high_gb_hours": high_gb_hours,
        "learned_from": cost.basis,
        "is_guess": cost.is_guess,
        "amounts": [
            struct_of(AmountOut)(of=part, **{name: round(each, 3) for name, each in found._asdict().items()})
            for part, found in cost.further.items()
        ],
    }


class ForecastOut(CostOut):
    """Expected start, end and cost of an active job, from the order of the queue and the durations of ended jobs."""

    starts_at: datetime | None = Field(
        description="Expected start of a queued job; null while its group has no ready worker, or the table's writers"
        " must stop"
    )
    ends_at: datetime | None = Field(description="Expected end of its attempt; null if the start is not known")
    held_back_by: HeldBack | None = Field(description="Why a queued job is not due; null if the job is due")
    text: str = Field(description="The same in words", examples=["starts in about 8 min"])

    @classmethod
    def of_job(cls, job: Job, outlook: Outlook | None) -> ForecastOut | None:
        found = outlook.jobs.get(job.id) if outlook is not None and job.state.is_active else None
        # Since the outlook was computed, the job may have been leased, or put back into the queue.
        if outlook is None or found is None or found.has_worker != job.state.has_worker:
            return None
        return struct_of(cls)(
            starts_at=_after(outlook.as_of, found.start),
            ends_at=_after(outlook.as_of, found.end),
            held_back_by=found.held_back,
            text=found.text,
            **_members(found.cost),
        )


def _after(moment: datetime, seconds: float | None) -> datetime | None:
    return None if seconds is None else moment + timedelta(seconds=round(seconds, 3))


class ProgressOut(BaseModel):
    step: str
    tasks_done: int
    tasks_total: int
    bytes_done: int
    bytes_total: int


class HandOverOut(Declared, declared=HandOver):
    since: datetime


class JobOut(Declared, declared=Job):
    table_id: str
    table_name: str = Field(description="The name of the table", examples=["orders"])
    kind: JobKind
    dry_run: bool
    worker_id: str | None
    progress: ProgressOut | None = Field(description="What the job does now; null before it runs")
    verdict: JobVerdict | None = Field(
        description="The result of a dry run: its plan is `ready`, the job would be `refused`, or there is "
        "`nothing_to_do`. Another job has a verdict only if it was refused or had nothing to do",
        examples=["refused"],
    )
    error: JobProblem | None = Field(description="Error of the last attempt")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    hand_over: HandOverOut | None = Field(
        description="The hand-over of a job that waits, or has waited, until the writers are stopped"
    )
    waits_for: str | None = Field(
        None,
        description="What a queued job, or the present step of a running one, waits for; to be read after the words "
        "`waits for`. Null if it does not wait",
        examples=["a free slot: 1 worker of the group default, all busy"],
    )
    forecast: ForecastOut | None = Field(
        None, description="Null for a job that has ended, or whose state changed a moment ago"
    )

    cost: CostOut | None = Field(
        None, description="Expected cost of the job that this dry run has planned; null unless the plan is ready"
    )
    breaker: BreakerOut | None = Field(
        None, description="Set for a queued job while attempts of its kind fail on the table"
    )

    @classmethod
    def of(cls, job: Job, prospects: Prospects, **more: Any) -> Self:
        """`more` are the members that only a subclass has."""
        wait = prospects.waits.get(job.id)
        return made(
            cls,
            job,
            # The table may have been unregistered a moment ago, together with its jobs.
            table_name=prospects.names.get(job.table_id, job.table_id),
            waits_for=wait.what if wait else None,
            breaker=BreakerOut.of(wait.breaker, wait.at) if wait else None,
            forecast=ForecastOut.of_job(job, prospects.outlook),
            cost=CostOut.of(prospects.costs.get(job.id)),
            error=JobProblem.of(job.error),
            **more,
        )


class JobDetail(JobOut):
    attempts: list[AttemptOut]
    spent: SpentOut = Field(description="How long the job waited and worked, and the sum of both")


class LogLineOut(Shown):
    at: datetime = Field(
        description="When the line was written, by the clock of the worker", examples=["2026-11-23T23:57:04.120Z"]
    )
    level: LogLevel = Field(description="How serious the line is", examples=[LogLevel.WARNING])
    logger: str = Field(description="The module of the worker, or the Java class", examples=["jobs.hudi.lock"])
    message: str = Field(
        description="The text, with the stack trace if there is one; without secrets",
        examples=["job_4be1c0d2f6a89b37/1: planning"],
    )
    attempt: int = Field(description="The attempt that wrote the line", examples=[1])


class JobLog(Shown):
    """Lines of the log of a job, the oldest first."""

    items: list[LogLineOut]
    next_cursor: str | None = Field(
        description="Cursor of the next page; null if these are the last lines so far", examples=["1.499"]
    )
    position: str = Field(
        description="Cursor after the last of these lines. Pass it later to get only the lines that came since then",
        examples=["1.499"],
    )


def as_text(page: LogPage) -> str:
    """Returns the lines in the form of a log file."""
    return "".join(
        f"{line.at:%Y-%m-%dT%H:%M:%S}.{line.at.microsecond // 1000:03}Z {line.level:<8} [{line.attempt}]"
        f" {line.logger}: {line.message}\n"
        for line in page.items
    )
