"""The settings of a policy, one class for each kind of job that it decides about. The values here are the defaults;
patterns and single tables override them. If a parameter of the job has the same name as a setting, the setting becomes
this parameter, and has the bounds of its declaration in `jobs.kinds`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, ClassVar

import msgspec

from jobs.job_params import (
    CleaningPolicy,
    ClusteringLayout,
    CompactionEngine,
    OnActiveWriters,
    SyncStrategy,
    TtlStrategy,
)
from jobs.kinds.archival import ArchivalParams
from jobs.kinds.audit import AuditParams
from jobs.kinds.cleaning import CleaningParams
from jobs.kinds.clustering import ClusteringParams
from jobs.kinds.compaction import CompactionParams
from jobs.kinds.diagnosis import DiagnosisParams
from jobs.kinds.metadata_table import MetadataTableParams
from jobs.kinds.parameters import Parameters, Spec
from jobs.kinds.partition_ttl import PartitionTtlParams
from jobs.kinds.repair import RepairParams
from jobs.kinds.rollback import RollbackParams
from jobs.kinds.sync import SyncParams
from jobs.kinds.words import PartitionChoice

MIB = 1024**2
GIB = 1024**3


# Instances with the defaults of the jobs' parameters. The values of required parameters are not used.
_ARCHIVAL, _CLEANING, _CLUSTERING = ArchivalParams(), CleaningParams(), ClusteringParams()
_TTL = PartitionTtlParams(days_retain=1)
_SYNC = SyncParams(metastore_uris="")


class Trigger(StrEnum):
    """Selects the thresholds that must be reached: commits since the last run, seconds since the last run, both, or one
    of them."""

    COMMITS = "commits"
    SECONDS = "seconds"
    BOTH = "both"
    EITHER = "either"


class Mode(StrEnum):
    """Mode of a table service. `SUGGEST` only shows the proposal."""

    AUTO = "auto"
    SUGGEST = "suggest"
    OFF = "off"


class CronExpression:
    """Marks a text as a cron expression: five fields that match at least one time."""


Enabled = Annotated[bool, Spec("Whether jobs of this kind start automatically")]
SuggestOr = Annotated[Mode, Spec("`suggest` only records what `auto` would do")]
WhichThresholds = Annotated[Trigger, Spec("Which thresholds apply")]
Commits = Annotated[int, Spec("Since the last run", ge=1, le=1_000_000)]
Seconds = Annotated[int, Spec("Since the last run", ge=1, le=31_536_000)]
Interval = Annotated[int, Spec("Minimum time from the end of one job to the start of the next", ge=0, le=31_536_000)]
StalePlan = Annotated[
    int,
    Spec(
        "Age at which a pending plan causes a warning. A job executes the plan if the process that began the plan is"
        " proved dead",
        ge=60,
        le=31_536_000,
    ),
]
Cron = Annotated[
    Annotated[str, Spec(max_length=200), CronExpression] | None,
    Spec(
        "Five fields, in the policy's time zone. The job runs at these times if there is work, and ignores the "
        "thresholds; null: the thresholds apply"
    ),
]
Limit = Annotated[int | None, Spec("Parameter of the job; work beyond the limit is due at once; null: no limit")]


class Section:
    """Settings that belong together, such as those of one kind of job. `params` is the type of the job's parameters; a
    section that is not about a kind of job has none."""

    params: ClassVar[type[Parameters]] = Parameters

    def job_params(self, **more: Any) -> dict[str, Any]:
        """Returns the parameters of a job as JSON, made of these settings, `more` and the defaults of the job. None and
        empty values are left out."""
        return self._made(more) if more else {**self._own_params}

    @cached_property
    def _own_params(self) -> dict[str, Any]:
        return self._made({})

    def _made(self, more: Mapping[str, Any]) -> dict[str, Any]:
        shared = {name: getattr(self, name) for name in self.params.__struct_fields__ if hasattr(self, name)}
        given = {name: value for name, value in {**shared, **more}.items() if value not in (None, ())}
        params: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self.params(**given)))
        return {name: value for name, value in params.items() if value not in (None, [])}


@dataclass(frozen=True)
class CompactionSettings(Section):
    """Settings of compaction. A job executes a plan that has been pending for `stale_plan_seconds` if the process that
    began it is proved dead. Work that a job left because of its limits is due at once."""

    params = CompactionParams

    enabled: Enabled = True
    trigger: WhichThresholds = Trigger.COMMITS
    commits: Commits = 5
    seconds: Seconds = 3600
    log_ratio: Annotated[
        float | None,
        Spec("Ratio of log bytes to base file bytes, in addition to the trigger; or null", gt=0, le=1000),
    ] = None
    cron: Cron = None
    min_interval_seconds: Interval = 60
    stale_plan_seconds: StalePlan = 6 * 3600
    limit_bytes: Limit = None
    limit_file_groups: Limit = None
    engine: CompactionEngine = CompactionEngine.AUTO
    codec: str | None = None


@dataclass(frozen=True)
class CleaningSettings(Section):
    """Settings of cleaning. Cleaning and archival ignore a consumer that has not reported for `consumer_hours`."""

    params = CleaningParams

    enabled: Enabled = True
    trigger: WhichThresholds = Trigger.COMMITS
    commits: Commits = 10
    seconds: Seconds = 86_400
    cron: Cron = None
    min_interval_seconds: Interval = 600
    policy: CleaningPolicy = CleaningPolicy.KEEP_LATEST_COMMITS
    retain: int = _CLEANING.retain
    consumer_hours: Annotated[int, Spec("Time after which nothing is kept for a silent consumer", ge=1, le=87_600)] = (
        168
    )


@dataclass(frozen=True)
class ClusteringSettings(Section):
    """Settings of clustering. `small_file_share` and `unsorted_bytes` are separate triggers. A trigger that is None is
    off; if `cron` is set, both are off."""

    params = ClusteringParams

    enabled: Enabled = False
    sort_by: Annotated[tuple[str, ...], Spec("Parameter of the job; without it only small files are merged")] = ()
    layout: ClusteringLayout = ClusteringLayout.LINEAR
    expansion_factor: Annotated[int | None, Spec("Parameter of the job; or null")] = None
    small_file_share: Annotated[
        float | None,
        Spec("Share of base files that are small and not alone in their partition; or null", gt=0, le=1),
    ] = 0.5
    unsorted_bytes: Annotated[int | None, Spec("Bytes written since the last clustering; or null", ge=1, lt=2**53)] = (
        4 * GIB
    )
    cron: Cron = None
    min_interval_seconds: Interval = 86_400
    stale_plan_seconds: StalePlan = 6 * 3600
    on_active_writers: OnActiveWriters = _CLUSTERING.on_active_writers
    wait_seconds: int = _CLUSTERING.wait_seconds
    lock_seconds: int = _CLUSTERING.lock_seconds
    hand_over_seconds: int = _CLUSTERING.hand_over_seconds


@dataclass(frozen=True)
class RepairSettings(Section):
    """Settings of the repair of stale writes (`service.incidents.incident`)."""

    params = RepairParams

    mode: SuggestOr = Mode.AUTO
    min_interval_seconds: Interval = 30


@dataclass(frozen=True)
class RollbackSettings(Section):
    """Rolls back a pending write whose writer sent heartbeats, but has sent none for `after_seconds`."""

    params = RollbackParams

    enabled: Enabled = True
    after_seconds: Annotated[
        int, Spec("Time without a heartbeat after which a writer counts as dead", ge=180, le=31_536_000)
    ] = 600
    min_interval_seconds: Interval = 30


@dataclass(frozen=True)
class ArchivalSettings(Section):
    """Settings of archival. It is off by default, because Hudi's writers archive by default."""

    params = ArchivalParams

    enabled: Enabled = False
    commits: Annotated[int, Spec("More completed commits on the active timeline are archived", ge=2, le=1_000_000)] = 60
    cron: Cron = None
    min_interval_seconds: Interval = 3600
    retain: int = _ARCHIVAL.retain


@dataclass(frozen=True)
class MetadataTableSettings(Section):
    """Compacts the metadata table in a job instead of in the writers. This is off by default, because Hudi's writers
    compact it at every tenth commit. Such a commit takes longer than the others, so `commits` should be below ten."""

    params = MetadataTableParams

    enabled: Enabled = False
    commits: Annotated[
        int, Spec("Deltacommits of the metadata table since its last compaction", ge=1, le=1_000_000)
    ] = 6
    cron: Cron = None
    min_interval_seconds: Interval = 300


@dataclass(frozen=True)
class PartitionTtlSettings(Section):
    """Settings of partition TTL. It is off by default and has no default number of days, because rows are removed for
    good."""

    params = PartitionTtlParams

    enabled: Enabled = False
    days_retain: Annotated[int | None, Spec("Parameter of the job; without it nothing is ever dropped")] = None
    strategy: TtlStrategy = TtlStrategy.KEEP_BY_TIME
    partitions: Annotated[tuple[PartitionChoice, ...], Spec("Parameter of the job; empty: all", max_length=1000)] = ()
    limit_partitions: Annotated[int, Spec("Parameter of the job; work beyond the limit is due at once")] = (
        _TTL.limit_partitions
    )
    seconds: Seconds = 86_400
    cron: Cron = None
    min_interval_seconds: Interval = 3600


@dataclass(frozen=True)
class CheckSettings(Section):
    """Settings of the jobs that look for damage, optionally in all rows."""

    enabled: Enabled = False
    seconds: Seconds = 86_400
    cron: Cron = None
    min_interval_seconds: Interval = 3600
    rows: bool = False


@dataclass(frozen=True)
class DiagnosisSettings(CheckSettings):
    """Looks for damage every `seconds`. This is off by default, because each diagnosis takes a worker's slot and lists
    all folders of the table, and object stores charge for listings."""

    params = DiagnosisParams


@dataclass(frozen=True)
class AuditSettings(CheckSettings):
    """Audits the table every `seconds`. The default audit reads no rows: it compares a listing of the storage with the
    commits and the metadata table."""

    params = AuditParams

    enabled: Enabled = True


@dataclass(frozen=True)
class SyncSettings(Section):
    """Syncs after each commit, or at the times of `cron` if it is set."""

    params = SyncParams

    enabled: Enabled = False
    metastore_uris: Annotated[str | None, Spec("Parameter of the job; null: no sync")] = None
    database: str = _SYNC.database
    table: str | None = None
    strategy: SyncStrategy = SyncStrategy.ALL
    cron: Cron = None
    min_interval_seconds: Interval = 60
