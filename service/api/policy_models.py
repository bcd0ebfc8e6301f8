"""Response models of policies, decisions and pauses."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field, StringConstraints

from jobs.contract import JobKind
from jobs.kinds.words import NO_NUL
from service.api.requests import Request, Word
from service.api.shown import Shown, made
from service.policies.policy import Pause
from service.policies.precedence import Effective
from service.scheduling.decision import Verdict


class PatternPolicyOut(Shown):
    pattern: str = Field(examples=["orders_*"])
    precedence: int = Field(description="Of two patterns that match, the higher one wins", examples=[0])
    settings: dict[str, Any] = Field(description="As they were sent", examples=[{"compaction": {"commits": 10}}])
    created_at: datetime
    updated_at: datetime


class PatternPolicyList(BaseModel):
    items: list[PatternPolicyOut]


class EffectivePolicyOut(BaseModel):
    policy: dict[str, Any] = Field(description="The effective policy of the table, with every member")
    sources: dict[str, str] = Field(
        description="The source of each member: `default`, `pattern <glob>` or `table`",
        examples=[{"compaction.commits": "pattern orders_*"}],
    )

    @classmethod
    def of(cls, effective: Effective) -> EffectivePolicyOut:
        return cls(policy=effective.policy.to_json(), sources=dict(effective.sources))


class DecisionOut(Shown):
    kind: JobKind
    verdict: Verdict = Field(description="`wait`: the job is due, but something blocks it")
    code: str = Field(description="The reason as a code", examples=["not-yet"])
    because: str = Field(
        description="The reason as a sentence", examples=["3 commits since the last compaction, threshold 5"]
    )
    warning: str | None
    params: dict[str, Any] = Field(description="Parameters of the job that was started or suggested", examples=[{}])
    job_id: str | None
    first_at: datetime = Field(description="When it was first made", examples=["2026-01-01T12:00:00Z"])
    last_at: datetime = Field(description="Time of the latest such decision, and of the figures")
    count: int = Field(description="Number of such decisions in a row")
    wanted_since: datetime | None = Field(description="Time since which a waiting job has been due")


class DecisionPage(Shown):
    items: list[DecisionOut]
    next_cursor: str | None


class EvaluationOut(BaseModel):
    looked_at: datetime | None = Field(description="Time of the last poll; null: never polled, so there is no decision")
    decisions: list[DecisionOut] = Field(description="What would be decided now, one for each kind")


class PauseIn(Request):
    reason: Annotated[str, StringConstraints(max_length=1000, pattern=NO_NUL)] = Field(
        "", description="Shown to other users", examples=["the storage is being moved"]
    )


class PauseOut(BaseModel):
    paused: bool = Field(description="Whether automatic jobs are paused on all tables", examples=[True])
    since: datetime | None = None
    by: Word | None = Field(default=None, description="Who paused them", examples=["ada (4f0c9d2b71aa)"])
    reason: str = Field(default="", description="Why; empty if nobody said", examples=["the storage is being moved"])

    @classmethod
    def of(cls, pause: Pause | None) -> PauseOut:
        return cls(paused=False) if pause is None else made(cls, pause, paused=True)
