"""Request models of policies.

A level of a policy has only the members that differ. So requests are typed dictionaries without defaults: a member that
is left out comes from the previous level.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NotRequired
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints
from typing_extensions import TypedDict

from jobs.job_params import (
    CleaningPolicy,
    ClusteringLayout,
    CompactionEngine,
    OnActiveWriters,
    SyncStrategy,
    TtlStrategy,
)
from service.api.patterns import TIME_OF_DAY
from service.api.requests import HiveName, MetastoreUris, Names
from service.api.service_params import ChoiceOfPolicy
from service.policies.policy import GIB, GROUP_PATTERN, MOST_TIMEOUT_SECONDS, Mode, Trigger
from service.scheduling.cron import next_after


def _check_cron(expression: str) -> str:
    # Any moment and zone will do: this checks that the expression parses and matches at least one time.
    if next_after(expression, "UTC", datetime(2026, 1, 1, tzinfo=UTC)) is None:
        raise ValueError("no time ever matches this")
    return expression


def _check_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError("must be a time zone of the IANA database, such as Europe/Berlin") from error
    return name


Cron = Annotated[str, StringConstraints(max_length=200), AfterValidator(_check_cron)]
TimeZone = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(_check_zone)]
TimeOfDay = Annotated[str, StringConstraints(pattern=TIME_OF_DAY)]
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]

_Enabled = Annotated[bool, Field(description="Whether jobs of this kind start automatically")]
_WhichThresholds = Annotated[Trigger, Field(description="Which thresholds apply")]
_Commits = Annotated[int, Field(ge=1, le=1_000_000, description="Since the last run")]
_Seconds = Annotated[int, Field(ge=1, le=31_536_000, description="Since the last run")]
_Interval = Annotated[
    int, Field(ge=0, le=31_536_000, description="Minimum from the end of one job to the start of the next")
]
_Stale = Annotated[
    int,
    Field(
        ge=60,
        le=31_536_000,
        description="Age from which a pending plan causes a warning, and is executed if its runner is proved dead",
    ),
]
_Cron = Annotated[
    Cron | None,
    Field(
        description="Five fields, in the policy's time zone. It runs at these times if there is work, and ignores the "
        "thresholds; null: the thresholds apply"
    ),
]
_OfTheJob = Field(description="Parameter of the job")
_WaitSeconds = Annotated[int, Field(ge=0, le=86_400, description="Parameter of the job")]
_LockSeconds = Annotated[int, Field(ge=0, le=600, description="Parameter of the job")]
_HandOverSeconds = Annotated[int, Field(ge=1, le=7 * 86_400, description="Parameter of the job")]


class _Section(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]  # pydantic's documented way


class WindowIn(TypedDict):
    """A time window. It opens on `days`, or every day if there are none. An `end` that is not after `start` is on the
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
        Field(gt=0, le=1000, description="Ratio of log bytes to base file bytes, in addition to the trigger; or null"),
    ]
    cron: _Cron
    min_interval_seconds: _Interval
    stale_plan_seconds: _Stale
    limit_bytes: Annotated[
        int | None,
        Field(ge=1, lt=2**53, description="Parameter of the job; what it leaves is due at once; null: no limit"),
    ]
    limit_file_groups: Annotated[
        int | None,
        Field(ge=1, le=1_000_000, description="Parameter of the job; what it leaves is due at once; null: no limit"),
    ]
    engine: Annotated[CompactionEngine, _OfTheJob]
    codec: Annotated[Literal["gzip", "snappy", "zstd"] | None, _OfTheJob]


class CleaningPolicyIn(_Section, total=False):
    enabled: _Enabled
    trigger: _WhichThresholds
    commits: _Commits
    seconds: _Seconds
    cron: _Cron
    min_interval_seconds: _Interval
    policy: Annotated[CleaningPolicy, _OfTheJob]
    retain: Annotated[int, Field(ge=1, le=1_000_000, description="Parameter of the job")]
    consumer_hours: Annotated[
        int, Field(ge=1, le=87_600, description="Nothing is kept for a consumer that has been silent for so long")
    ]


class ClusteringPolicyIn(_Section, total=False):
    enabled: _Enabled
    sort_by: Annotated[Names, Field(description="Parameter of the job; without it only small files are merged")]
    layout: Annotated[ClusteringLayout, _OfTheJob]
    expansion_factor: Annotated[int | None, Field(ge=2, le=16, description="Parameter of the job; or null")]
    small_file_share: Annotated[
        float | None,
        Field(gt=0, le=1, description="Share of base files that are small and not alone in their partition; or null"),
    ]
    unsorted_bytes: Annotated[
        int | None, Field(ge=1, lt=2**53, description="Bytes written since the last clustering; or null")
    ]
    cron: _Cron
    min_interval_seconds: _Interval
    stale_plan_seconds: _Stale
    on_active_writers: Annotated[OnActiveWriters, _OfTheJob]
    wait_seconds: _WaitSeconds
    lock_seconds: _LockSeconds
    hand_over_seconds: _HandOverSeconds


class ExpansionPolicyIn(_Section, total=False):
    mode: Annotated[Mode, Field(description="`suggest` only records what it would do")]
    max_bucket_bytes: Annotated[int, Field(ge=1024 * 1024, lt=2**53, description="Size limit of the largest bucket")]
    cron: _Cron
    min_interval_seconds: _Interval
    on_active_writers: Annotated[OnActiveWriters, _OfTheJob]
    wait_seconds: _WaitSeconds
    lock_seconds: _LockSeconds
    hand_over_seconds: _HandOverSeconds
    settle_seconds: Annotated[int, Field(ge=1, le=600, description="Parameter of the job")]
    codec: Annotated[Literal["gzip", "snappy", "zstd"] | None, _OfTheJob]


class ContractionPolicyIn(_Section, total=False):
    mode: Annotated[Mode, Field(description="`suggest` only records what it would do")]
    min_bucket_bytes: Annotated[
        int, Field(ge=1024, lt=2**53, description="Size below which the average bucket of a partition is too small")
    ]
    cron: _Cron
    min_interval_seconds: _Interval
    on_active_writers: Annotated[OnActiveWriters, _OfTheJob]
    wait_seconds: _WaitSeconds
    lock_seconds: _LockSeconds
    hand_over_seconds: _HandOverSeconds
    settle_seconds: Annotated[int, Field(ge=1, le=600, description="Parameter of the job")]
    codec: Annotated[Literal["gzip", "snappy", "zstd"] | None, _OfTheJob]


class RepairPolicyIn(_Section, total=False):
    mode: Annotated[Mode, Field(description="`suggest` only records what it would do")]
    min_interval_seconds: _Interval


class RollbackPolicyIn(_Section, total=False):
    enabled: _Enabled
    after_seconds: Annotated[
        int, Field(ge=180, le=31_536_000, description="Time without a heartbeat after which a writer is taken for dead")
    ]
    min_interval_seconds: _Interval


class ArchivalPolicyIn(_Section, total=False):
    enabled: _Enabled
    commits: Annotated[
        int, Field(ge=2, le=1_000_000, description="More completed commits on the active timeline are archived")
    ]
    cron: _Cron
    min_interval_seconds: _Interval
    retain: Annotated[int, Field(ge=2, le=1_000_000, description="Parameter of the job")]


class SyncPolicyIn(_Section, total=False):
    enabled: _Enabled
    metastore_uris: Annotated[MetastoreUris | None, Field(description="Parameter of the job; null: no sync")]
    database: Annotated[HiveName, _OfTheJob]
    table: Annotated[HiveName | None, _OfTheJob]
    strategy: Annotated[SyncStrategy, _OfTheJob]
    cron: _Cron
    min_interval_seconds: _Interval


class PartitionTtlPolicyIn(_Section, total=False):
    enabled: _Enabled
    days_retain: Annotated[
        int | None, Field(ge=1, le=36_500, description="Parameter of the job; without it nothing is ever dropped")
    ]
    strategy: Annotated[TtlStrategy, _OfTheJob]
    partitions: Annotated[list[ChoiceOfPolicy], Field(max_length=1000, description="Parameter of the job; empty: all")]
    limit_partitions: Annotated[
        int, Field(ge=1, le=1000, description="Parameter of the job; what it leaves is due at once")
    ]
    seconds: _Seconds
    cron: _Cron
    min_interval_seconds: _Interval


class DiagnosisPolicyIn(_Section, total=False):
    enabled: _Enabled
    seconds: _Seconds
    cron: _Cron
    min_interval_seconds: _Interval
    rows: Annotated[bool, _OfTheJob, Field(examples=[True])]


class AuditPolicyIn(_Section, total=False):
    enabled: _Enabled
    seconds: _Seconds
    cron: _Cron
    min_interval_seconds: _Interval
    rows: Annotated[bool, _OfTheJob, Field(examples=[True])]


class PolicyIn(_Section, total=False):
    """Members that differ from the previous level: the defaults, then patterns of names, then the table."""

    paused: Annotated[bool, Field(description="No job starts automatically; running jobs go on")]
    priority: Annotated[int, Field(ge=-100, le=100, description="Jobs with a higher value are handed out first")]
    worker_group: Annotated[
        str,
        StringConstraints(pattern=GROUP_PATTERN),
        Field(description="Only workers of this group get the table's jobs, including submitted ones"),
    ]
    timeout_seconds: Annotated[
        int | None,
        Field(
            ge=1,
            le=MOST_TIMEOUT_SECONDS,
            description="Time limit of one attempt of a job, unless the job sets its own; null: that of the service",
        ),
    ]
    time_zone: Annotated[TimeZone, Field(description="Time zone of the windows and of the cron expressions")]
    windows: Annotated[list[WindowIn], Field(max_length=50, description="When jobs may start; empty: at any time")]
    compaction: CompactionPolicyIn
    cleaning: CleaningPolicyIn
    clustering: ClusteringPolicyIn
    bucket_expansion: ExpansionPolicyIn
    bucket_contraction: ContractionPolicyIn
    repair: RepairPolicyIn
    rollback: RollbackPolicyIn
    archival: ArchivalPolicyIn
    partition_ttl: PartitionTtlPolicyIn
    audit: AuditPolicyIn
    diagnosis: DiagnosisPolicyIn
    sync: SyncPolicyIn


class PatternPolicyIn(PolicyIn, total=False):
    """A policy as for one table, with a precedence."""

    precedence: Annotated[
        int,
        Field(
            ge=-1000,
            le=1000,
            description="If several patterns match, the higher value wins (default 0), then the more exact pattern",
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
    "sort on Saturdays, expand automatically": {
        "value": {
            "clustering": {"enabled": True, "sort_by": ["city"], "cron": "0 3 * * 6"},
            "bucket_expansion": {"mode": "auto", "max_bucket_bytes": 2 * GIB},
        }
    },
    "start nothing": {"value": {"paused": True}},
}
