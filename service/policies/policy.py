"""The settings of a table's upkeep. The values here are defaults; patterns of names and single tables override them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import time
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from jobs.contract import DEFAULT_GROUP
from jobs.job_params import (
    CleaningPolicy,
    ClusteringLayout,
    CompactionEngine,
    OnActiveWriters,
    SyncStrategy,
    TtlStrategy,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

MIB = 1024**2
GIB = 1024**3

MOST_TIMEOUT_SECONDS = 7 * 86_400
"""Longest time limit of an attempt that a job or a policy may set."""

GROUP_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,23}$"
"""Pattern of the name of a worker group."""


class Trigger(StrEnum):
    """Selects the thresholds that count: commits since the last run, seconds since it, both together, or either."""

    COMMITS = "commits"
    SECONDS = "seconds"
    BOTH = "both"
    EITHER = "either"


class Mode(StrEnum):
    """Mode of a table service. `SUGGEST` only shows the proposal."""

    AUTO = "auto"
    SUGGEST = "suggest"
    OFF = "off"


@dataclass(frozen=True)
class Window:
    """A period in which jobs may start, in the policy's time zone. `days` are those on which it opens, all if empty.

    An `end` that is not after `start` is on the next day.
    """

    start: time
    end: time
    days: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Window:
        return cls(time.fromisoformat(data["start"]), time.fromisoformat(data["end"]), tuple(data.get("days") or ()))

    def to_json(self) -> dict[str, Any]:
        return {"start": f"{self.start:%H:%M}", "end": f"{self.end:%H:%M}", "days": list(self.days)}


@dataclass(frozen=True)
class CompactionSettings:
    """`log_ratio` (bytes of log files to bytes of base files) counts in addition to the trigger, None not at all. With
    `cron` no threshold counts. A plan pending for `stale_plan_seconds` causes a warning, and a job that
    executes it if its runner is proved dead.
    `limit_bytes` and `limit_file_groups` are parameters of the job; what it leaves is due at once. `engine` and `codec`
    are parameters of the job as well."""

    enabled: bool = True
    trigger: Trigger = Trigger.COMMITS
    commits: int = 5
    seconds: int = 3600
    log_ratio: float | None = None
    cron: str | None = None
    min_interval_seconds: int = 60
    stale_plan_seconds: int = 6 * 3600
    limit_bytes: int | None = None
    limit_file_groups: int | None = None
    engine: CompactionEngine = CompactionEngine.AUTO
    codec: str | None = None


@dataclass(frozen=True)
class CleaningSettings:
    """`policy` and `retain` are the parameters of the job, the others decide when it is due. A consumer that has been
    silent for `consumer_hours` is not waited for any more, by cleaning and archival."""

    enabled: bool = True
    trigger: Trigger = Trigger.COMMITS
    commits: int = 10
    seconds: int = 86_400
    cron: str | None = None
    min_interval_seconds: int = 600
    policy: CleaningPolicy = CleaningPolicy.KEEP_LATEST_COMMITS
    retain: int = 10
    consumer_hours: int = 168


@dataclass(frozen=True)
class ClusteringSettings:
    """`small_file_share` and `unsorted_bytes` count separately, None not at all; with `cron` neither counts."""

    enabled: bool = False
    sort_by: tuple[str, ...] = ()
    layout: ClusteringLayout = ClusteringLayout.LINEAR
    expansion_factor: int | None = None
    small_file_share: float | None = 0.5
    unsorted_bytes: int | None = 4 * GIB
    cron: str | None = None
    min_interval_seconds: int = 86_400
    stale_plan_seconds: int = 6 * 3600
    on_active_writers: OnActiveWriters = OnActiveWriters.WAIT
    wait_seconds: int = 300
    lock_seconds: int = 20
    hand_over_seconds: int = 3600


@dataclass(frozen=True)
class ExpansionSettings:
    """`max_bucket_bytes` is the largest size of a bucket, base file and log files together. With `cron` it is only
    checked at those times."""

    mode: Mode = Mode.SUGGEST
    max_bucket_bytes: int = 3 * GIB
    cron: str | None = None
    min_interval_seconds: int = 86_400
    on_active_writers: OnActiveWriters = OnActiveWriters.WAIT
    wait_seconds: int = 300
    lock_seconds: int = 20
    hand_over_seconds: int = 3600
    settle_seconds: int = 15
    codec: str | None = None


@dataclass(frozen=True)
class ContractionSettings:
    """Contracts where the average bucket has less than `min_bucket_bytes`, base file and log files together. Off by
    default: a partition that is still being filled is small as well. `cron` as in `ExpansionSettings`."""

    mode: Mode = Mode.OFF
    min_bucket_bytes: int = 32 * MIB
    cron: str | None = None
    min_interval_seconds: int = 7 * 86_400
    on_active_writers: OnActiveWriters = OnActiveWriters.WAIT
    wait_seconds: int = 300
    lock_seconds: int = 20
    hand_over_seconds: int = 3600
    settle_seconds: int = 15
    codec: str | None = None


@dataclass(frozen=True)
class RepairSettings:
    """Settings of the repair of rows that are astray (`service.incidents.incident`)."""

    mode: Mode = Mode.AUTO
    min_interval_seconds: int = 30


@dataclass(frozen=True)
class RollbackSettings:
    """Rolls back a write whose writer has sent heartbeats, and none for `after_seconds`: nothing that has committed."""

    enabled: bool = True
    after_seconds: int = 600
    min_interval_seconds: int = 30


@dataclass(frozen=True)
class ArchivalSettings:
    """Archives when more than `commits` completed commits are on the active timeline; `retain` is the job's parameter.
    Off by default, because a writer of Hudi archives by itself unless it was told not to."""

    enabled: bool = False
    commits: int = 60
    cron: str | None = None
    min_interval_seconds: int = 3600
    retain: int = 30


@dataclass(frozen=True)
class PartitionTtlSettings:
    """Drops partitions that are older than `days_retain`, every `seconds`. Off by default, and without a default number
    of days, since rows are removed for good. Without `partitions` (paths, or objects with a `prefix`) all may
    expire."""

    enabled: bool = False
    days_retain: int | None = None
    strategy: TtlStrategy = TtlStrategy.KEEP_BY_TIME
    partitions: tuple[str | Mapping[str, str], ...] = ()
    limit_partitions: int = 100
    seconds: int = 86_400
    cron: str | None = None
    min_interval_seconds: int = 3600


@dataclass(frozen=True)
class DiagnosisSettings:
    """Looks for damages every `seconds`; `rows` is the parameter of the job. Off by default: each one lists all folders
    of the table in the storage, which an object store charges for, and takes a worker's slot."""

    enabled: bool = False
    seconds: int = 86_400
    cron: str | None = None
    min_interval_seconds: int = 3600
    rows: bool = False


@dataclass(frozen=True)
class AuditSettings:
    """Proves the table every `seconds`; `rows` is the parameter of the job. On by default without rows: a listing of
    the storage is compared with what the commits and the metadata table say."""

    enabled: bool = True
    seconds: int = 86_400
    cron: str | None = None
    min_interval_seconds: int = 3600
    rows: bool = False


@dataclass(frozen=True)
class SyncSettings:
    """Settings of the sync to a Hive metastore, after each commit, or with `cron` at these times. The others are the
    job's parameters."""

    enabled: bool = False
    metastore_uris: str | None = None
    database: str = "default"
    table: str | None = None
    strategy: SyncStrategy = SyncStrategy.ALL
    cron: str | None = None
    min_interval_seconds: int = 60


@dataclass(frozen=True)
class Policy:
    """A complete policy. Queued jobs with a higher `priority` are leased first. Without `windows` jobs may start at any
    time. Only workers of `worker_group` get the table's jobs. `timeout_seconds` limits an attempt of a job that has no
    limit of its own, None leaves that to the service's setting."""

    paused: bool = False
    priority: int = 0
    worker_group: str = DEFAULT_GROUP
    timeout_seconds: int | None = None
    time_zone: str = "UTC"
    windows: tuple[Window, ...] = ()
    compaction: CompactionSettings = field(default_factory=CompactionSettings)
    cleaning: CleaningSettings = field(default_factory=CleaningSettings)
    clustering: ClusteringSettings = field(default_factory=ClusteringSettings)
    bucket_expansion: ExpansionSettings = field(default_factory=ExpansionSettings)
    bucket_contraction: ContractionSettings = field(default_factory=ContractionSettings)
    repair: RepairSettings = field(default_factory=RepairSettings)
    rollback: RollbackSettings = field(default_factory=RollbackSettings)
    archival: ArchivalSettings = field(default_factory=ArchivalSettings)
    partition_ttl: PartitionTtlSettings = field(default_factory=PartitionTtlSettings)
    audit: AuditSettings = field(default_factory=AuditSettings)
    diagnosis: DiagnosisSettings = field(default_factory=DiagnosisSettings)
    sync: SyncSettings = field(default_factory=SyncSettings)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Policy:
        known = _known(cls, data)
        known["windows"] = tuple(Window.from_json(window) for window in data.get("windows", ()))
        for name, section in SECTIONS.items():
            known[name] = section(**_typed(section, data.get(name, {})))
        return cls(**known)

    def to_json(self) -> dict[str, Any]:
        data = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        data["windows"] = [window.to_json() for window in self.windows]
        for name in SECTIONS:
            section = dataclasses.asdict(data[name])
            data[name] = {key: list(value) if isinstance(value, tuple) else value for key, value in section.items()}
        return data


SECTIONS: Mapping[str, type[Any]] = {
    "compaction": CompactionSettings,
    "cleaning": CleaningSettings,
    "clustering": ClusteringSettings,
    "bucket_expansion": ExpansionSettings,
    "bucket_contraction": ContractionSettings,
    "repair": RepairSettings,
    "rollback": RollbackSettings,
    "archival": ArchivalSettings,
    "partition_ttl": PartitionTtlSettings,
    "audit": AuditSettings,
    "diagnosis": DiagnosisSettings,
    "sync": SyncSettings,
}
"""The members of a policy for single table services, by the name of the `JobKind`."""


@dataclass(frozen=True)
class PatternPolicy:
    """The settings for all tables whose name matches a glob. `settings` has only the members that were set.

    If several patterns match, the one with the higher `precedence` wins, then the one with more literal characters.
    """

    pattern: str
    settings: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    precedence: int = 0


@dataclass(frozen=True)
class TableLevel:
    """The settings for one table. `settings` has only the members that were set."""

    settings: Mapping[str, Any]
    updated_at: datetime


@dataclass(frozen=True)
class Pause:
    """A pause: the service starts no jobs by itself on any table."""

    since: datetime
    by: str
    reason: str = ""


def _known(cls: type, data: Mapping[str, Any]) -> dict[str, Any]:
    names = {each.name for each in dataclasses.fields(cls)}
    return {key: value for key, value in data.items() if key in names}


def _typed(cls: type, data: Mapping[str, Any]) -> dict[str, Any]:
    known = _known(cls, data)
    defaults = {field.name: field.default for field in dataclasses.fields(cls)}
    for key, value in known.items():
        if isinstance(default := defaults[key], StrEnum) and value is not None:
            known[key] = type(default)(value)
        elif isinstance(value, list):
            known[key] = tuple(value)
    return known
