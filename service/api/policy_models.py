"""Policies as callers send them, and what they are told of policies, decisions and pauses.

A level of a policy has only the members that differ, so what is sent are typed dictionaries: nothing has a default, and
what is left out comes from the level before.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NotRequired
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from typing_extensions import TypedDict

from jobs.contract import CleaningPolicy, ClusteringLayout, JobKind, OnActiveWriters
from service.api.requests import Names, Request, Word
from service.policies.policy import GIB, GROUP_PATTERN, Mode, PatternPolicy, Pause, Trigger
from service.policies.precedence import Effective
from service.scheduling.cron import next_after
from service.scheduling.decision import Decision, Verdict


def _check_cron(expression: str) -> str:
    # Any moment and zone will do: what is asked is whether it can be read, and ever comes.
    if next_after(expression, "UTC", datetime(2026, 1, 1, tzinfo=UTC)) is None:
        raise ValueError("this time never comes")
    return expression


def _check_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError("is not a time zone of the IANA database, such as Europe/Berlin") from error
    return name


Cron = Annotated[str, StringConstraints(max_length=200), AfterValidator(_check_cron)]
TimeZone = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(_check_zone)]
TimeOfDay = Annotated[str, StringConstraints(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")]
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]

_Enabled = Annotated[bool, Field(description="Whether it is started by itself at all")]
_WhichThresholds = Annotated[Trigger, Field(description="Which thresholds count")]
_Commits = Annotated[int, Field(ge=1, le=1_000_000, description="Since the last run")]
_Seconds = Annotated[int, Field(ge=1, le=31_536_000, description="Since the last run")]
_Interval = Annotated[
    int, Field(ge=0, le=31_536_000, description="From the end of one job to the start of the next, at least")
]
_Stale = Annotated[
    int,
    Field(ge=60, le=31_536_000, description="From then on a pending plan is warned of, and taken over if it has begun"),
]
_Cron = Annotated[
    Cron | None,
    Field(
        description="Five fields, by the policy's time zone. It runs at these times if there is anything to do, and "
        "thresholds do not count; null: they do"
    ),
]
_OfTheJob = Field(description="Parameter of the job")
_WaitSeconds = Annotated[int, Field(ge=0, le=86_400, description="Parameter of the job")]
_LockSeconds = Annotated[int, Field(ge=0, le=600, description="Parameter of the job")]
_HandOverSeconds = Annotated[int, Field(ge=1, le=7 * 86_400, description="Parameter of the job")]


class _Section(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]  # pydantic's documented way


class WindowIn(TypedDict):
    """`days` are those on which it opens, every day if there are none. An `end` that is not after `start` is on the
    next day."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]  # pydantic's documented way

    start: Annotated[TimeOfDay, Field(examples=["22:00"])]
    end: Annotated[TimeOfDay, Field(examples=["04:30"])]
    days: NotRequired[Annotated[list[Day], Field(max_length=7)]]


class CompactionPolicyIn(_Section, total=False):
    enabled: _Enabled
    trigger: _WhichThresholds
    commits: _Commits
    seconds: _Seconds
    log_ratio: Annotated[
        float | None,
        Field(gt=0, le=1000, description="Bytes of logs to bytes of base files, beside the trigger; or null"),
    ]
    cron: _Cron
    min_interval_seconds: _Interval
    stale_plan_seconds: _Stale


class CleaningPolicyIn(_Section, total=False):
    enabled: _Enabled
    trigger: _WhichThresholds
    commits: _Commits
    seconds: _Seconds
    cron: _Cron
    min_interval_seconds: _Interval
    policy: Annotated[CleaningPolicy, _OfTheJob]
    retain: Annotated[int, Field(ge=1, le=1_000_000, description="Parameter of the job")]


class ClusteringPolicyIn(_Section, total=False):
    enabled: _Enabled
    sort_by: Annotated[Names, Field(description="Parameter of the job; without it nothing is clustered")]
    layout: Annotated[ClusteringLayout, _OfTheJob]
    small_file_share: Annotated[
        float | None,
        Field(
            gt=0, le=1, description="Of all base files those that are small and not alone in their partition; or null"
        ),
    ]
    unsorted_bytes: Annotated[int | None, Field(ge=1, description="Written since the last clustering; or null")]
    cron: _Cron
    min_interval_seconds: _Interval
    stale_plan_seconds: _Stale
    on_active_writers: Annotated[OnActiveWriters, _OfTheJob]
    wait_seconds: _WaitSeconds
    lock_seconds: _LockSeconds
    hand_over_seconds: _HandOverSeconds


class ExpansionPolicyIn(_Section, total=False):
    mode: Annotated[Mode, Field(description="`suggest` only says what it would do")]
    max_bucket_bytes: Annotated[int, Field(ge=1024 * 1024, description="What the largest bucket should have at most")]
    cron: _Cron
    min_interval_seconds: _Interval
    on_active_writers: Annotated[OnActiveWriters, _OfTheJob]
    wait_seconds: _WaitSeconds
    lock_seconds: _LockSeconds
    hand_over_seconds: _HandOverSeconds
    settle_seconds: Annotated[int, Field(ge=1, le=600, description="Parameter of the job")]
    codec: Annotated[Literal["gzip", "snappy", "zstd"] | None, _OfTheJob]


class RepairPolicyIn(_Section, total=False):
    mode: Annotated[Mode, Field(description="`suggest` only says what it would do")]
    min_interval_seconds: _Interval


class PolicyIn(_Section, total=False):
    """Only what should differ from the level before: the defaults, then patterns of names, then the table."""

    paused: Annotated[bool, Field(description="Nothing is started by itself; what has begun goes on")]
    priority: Annotated[int, Field(ge=-100, le=100, description="Jobs of a higher one are handed out first")]
    worker_group: Annotated[
        str,
        StringConstraints(pattern=GROUP_PATTERN),
        Field(description="Only workers of this group get the table's jobs, those that are asked for as well"),
    ]
    time_zone: Annotated[TimeZone, Field(description="Of the windows and of the cron expressions")]
    windows: Annotated[list[WindowIn], Field(max_length=50, description="When jobs may start; empty: at any time")]
    compaction: CompactionPolicyIn
    cleaning: CleaningPolicyIn
    clustering: ClusteringPolicyIn
    bucket_expansion: ExpansionPolicyIn
    repair: RepairPolicyIn


class PatternPolicyIn(PolicyIn, total=False):
    """As for one table, and how strong it is."""

    precedence: Annotated[
        int,
        Field(
            ge=-1000,
            le=1000,
            description="Where several match, the higher one wins (default 0), then the more exact one",
        ),
    ]


EXAMPLES: dict[str, Any] = {
    "compact by time or number, at night": {
        "value": {
            "time_zone": "Europe/Berlin",
            "windows": [{"start": "22:00", "end": "04:30"}],
            "compaction": {"trigger": "either", "commits": 10, "seconds": 7200},
        }
    },
    "sort on Saturdays, grow by itself": {
        "value": {
            "clustering": {"enabled": True, "sort_by": ["city"], "cron": "0 3 * * 6"},
            "bucket_expansion": {"mode": "auto", "max_bucket_bytes": 2 * GIB},
        }
    },
    "leave it alone": {"value": {"paused": True}},
}


class PatternPolicyOut(BaseModel):
    pattern: str = Field(examples=["orders_*"])
    precedence: int
    settings: dict[str, Any] = Field(description="As they were given")
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, policy: PatternPolicy) -> PatternPolicyOut:
        return cls(
            pattern=policy.pattern,
            precedence=policy.precedence,
            settings=dict(policy.settings),
            created_at=policy.created_at,
            updated_at=policy.updated_at,
        )


class PatternPolicyList(BaseModel):
    items: list[PatternPolicyOut]


class EffectivePolicyOut(BaseModel):
    policy: dict[str, Any] = Field(description="As it counts for the table, every member")
    sources: dict[str, str] = Field(
        description="Where each comes from: `default`, `pattern <glob>` or `table`",
        examples=[{"compaction.commits": "pattern orders_*"}],
    )

    @classmethod
    def of(cls, effective: Effective) -> EffectivePolicyOut:
        return cls(policy=effective.policy.to_json(), sources=dict(effective.sources))


class DecisionOut(BaseModel):
    kind: JobKind
    verdict: Verdict = Field(description="`wait`: it is due, but something stands in the way")
    code: str = Field(description="The reason in short", examples=["not-yet"])
    because: str = Field(examples=["3 commits since the last compaction, threshold 5"])
    warning: str | None
    params: dict[str, Any] = Field(description="Of the job that was started, or that is suggested")
    job_id: str | None
    first_at: datetime
    last_at: datetime = Field(description="When it was last decided so; the figures are of then")
    count: int = Field(description="How often it was decided so in a row")
    wanted_since: datetime | None = Field(description="Since when a job that waits has been due")

    @classmethod
    def of(cls, decision: Decision) -> DecisionOut:
        return cls(
            kind=decision.kind,
            verdict=decision.verdict,
            code=decision.code,
            because=decision.because,
            warning=decision.warning,
            params=dict(decision.params),
            job_id=decision.job_id,
            first_at=decision.first_at,
            last_at=decision.last_at,
            count=decision.count,
            wanted_since=decision.wanted_since,
        )


class DecisionPage(BaseModel):
    items: list[DecisionOut]
    next_cursor: str | None


class EvaluationOut(BaseModel):
    looked_at: datetime | None = Field(
        description="When the table was last looked at; null: never, so nothing is decided"
    )
    decisions: list[DecisionOut]


class PauseIn(Request):
    reason: Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00]*$")] = Field(
        "", description="For those who wonder", examples=["the storage is being moved"]
    )


class PauseOut(BaseModel):
    paused: bool
    since: datetime | None = None
    by: Word | None = None
    reason: str = ""

    @classmethod
    def of(cls, pause: Pause | None) -> PauseOut:
        if pause is None:
            return cls(paused=False)
        return cls(paused=True, since=pause.since, by=pause.by, reason=pause.reason)
