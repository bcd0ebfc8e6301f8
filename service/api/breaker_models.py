"""Response models of what goes wrong with jobs: the problem of an attempt, and the breaker of a table and a kind."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from jobs.contract import Problem
from service.api.problems import document
from service.queue.breaker import Breaker, BreakerState


class JobProblem(BaseModel):
    type: str
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
        return cls(
            state=breaker.state(now),
            failures=breaker.failures,
            slot_seconds=breaker.seconds,
            since=breaker.since,
            next_try_at=breaker.next_try_at,
            error=JobProblem.of(breaker.error),
        )
