"""Response models of the attempts at a job: their problems, the time they took, and the breaker that they keep."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from jobs.contract import Problem
from service.api.problems import document
from service.api.shown import made
from service.queue.breaker import Breaker, BreakerState
from service.queue.job import Attempt, AttemptOutcome, Spent


class JobProblem(BaseModel):
    type: str = Field(description="The type of the problem", examples=["/problems/table-locked"])
    title: str
    detail: str
    hint: str
    retriable: bool

    @classmethod
    def of(cls, problem: Problem | None) -> JobProblem | None:
        return cls.model_validate(document(problem)) if problem else None


class BreakerOut(BaseModel):
    """Attempts of this kind of job fail on this table, so that further ones wait: failing work gets at most a tenth of
    the slots while others wait."""

    state: BreakerState = Field(description="`open`: the next attempt waits; `half_open`: it may start")
    failures: int = Field(description="Failed attempts in a row", examples=[2])
    slot_seconds: float = Field(description="Seconds for which they had a slot", examples=[12.5])
    since: datetime = Field(description="End of the first of them")
    next_try_at: datetime = Field(description="From then on an attempt may start")
    error: JobProblem | None = Field(description="Error of the last of them")

    @classmethod
    def of(cls, breaker: Breaker | None, now: datetime) -> BreakerOut | None:
        if breaker is None:
            return None
        error = JobProblem.of(breaker.error)
        return made(cls, breaker, state=breaker.state(now), slot_seconds=breaker.seconds, error=error)


class AttemptOut(BaseModel):
    attempt: int
    worker_id: str
    started_at: datetime
    ended_at: datetime | None
    outcome: AttemptOutcome | None = Field(description="How it ended; null until then", examples=["succeeded"])
    error: JobProblem | None

    @classmethod
    def of(cls, attempt: Attempt) -> AttemptOut:
        return made(cls, attempt, error=JobProblem.of(attempt.error))


class SpentOut(BaseModel):
    """Seconds from the submission of the job to its end, or until now."""

    waited_seconds: float = Field(description="Before its first attempt and between attempts", examples=[41.0])
    worked_seconds: float = Field(description="In all of its attempts together", examples=[19.5])
    took_seconds: float = Field(description="Both together", examples=[60.5])

    @classmethod
    def of(cls, spent: Spent) -> SpentOut:
        waited, worked = round(spent.waited, 3), round(spent.worked, 3)
        return cls(waited_seconds=waited, worked_seconds=worked, took_seconds=round(waited + worked, 3))
