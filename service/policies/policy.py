"""The policy of a table, and the levels from which it is merged: defaults, patterns of names, single tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, time
from enum import StrEnum
from typing import Annotated, Any

from jobs.contract import DEFAULT_GROUP
from jobs.spec import Documented, Spec
from service.policies.bucket_settings import ContractionSettings, ExpansionSettings, ResizeSettings
from service.policies.objective import AdviceSettings, BudgetSettings, ObjectiveSettings
from service.policies.settings import (
    ArchivalSettings,
    AuditSettings,
    CleaningSettings,
    ClusteringSettings,
    CompactionSettings,
    DiagnosisSettings,
    MetadataTableSettings,
    PartitionTtlSettings,
    RepairSettings,
    RollbackSettings,
    Section,
    SyncSettings,
)

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

MOST_TIMEOUT_SECONDS = 7 * 86_400
"""The longest time limit for an attempt that a job or a policy may set, in seconds."""

PRIORITY = Spec("Jobs with a higher value are handed out first", ge=-100, le=100)

GROUP_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,23}$"
"""Pattern of the name of a worker group."""


@dataclass(frozen=True)
class Window:
    """A period in which jobs may start, in the policy's time zone. `days` are the days on which the window opens; empty
    means every day.

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
class Policy:
    """A complete policy."""

    paused: Annotated[bool, Spec("No job starts automatically; running jobs go on")] = False
    priority: Annotated[int, PRIORITY] = 0
    worker_group: Annotated[
        str, Spec("Only workers of this group get the table's jobs, including submitted ones", pattern=GROUP_PATTERN)
    ] = DEFAULT_GROUP
    timeout_seconds: Annotated[
        int | None,
        Spec(
            "Time limit of one attempt of a job, unless the job sets its own; null: that of the service",
            ge=1,
            le=MOST_TIMEOUT_SECONDS,
        ),
    ] = None
    time_zone: Annotated[str, Spec("Time zone of the windows and of the cron expressions")] = "UTC"
    windows: Annotated[tuple[Window, ...], Spec("When jobs may start; empty: at any time", max_length=50)] = ()
    objective: ObjectiveSettings = field(default_factory=ObjectiveSettings)
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    advice: AdviceSettings = field(default_factory=AdviceSettings)
    compaction: CompactionSettings = field(default_factory=CompactionSettings)
    cleaning: CleaningSettings = field(default_factory=CleaningSettings)
    clustering: ClusteringSettings = field(default_factory=ClusteringSettings)
    bucket_expansion: ExpansionSettings = field(default_factory=ExpansionSettings)
    bucket_contraction: ContractionSettings = field(default_factory=ContractionSettings)
    bucket_resize: ResizeSettings = field(default_factory=ResizeSettings)
    repair: RepairSettings = field(default_factory=RepairSettings)
    rollback: RollbackSettings = field(default_factory=RollbackSettings)
    archival: ArchivalSettings = field(default_factory=ArchivalSettings)
    metadata_table: MetadataTableSettings = field(default_factory=MetadataTableSettings)
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
    name: type(section) for name, section in vars(Policy()).items() if isinstance(section, Section)
}
"""The members of a policy that have settings below them: the objective, the budget, advice, and each table service by
the name of its `JobKind`."""


@dataclass(frozen=True)
class PatternPolicy(Documented):
    """The settings for all tables whose name, owner or tags match the pattern (`precedence.Subject`). `settings` has
    only the members that were set.

    If several patterns match, the one with the highest `precedence` wins; if these are equal, the most exact one wins.
    """

    pattern: Annotated[str, Spec(examples=("orders_*",))]
    settings: Annotated[
        Mapping[str, Any], Spec("The members that were sent", examples=({"compaction": {"commits": 10}},))
    ]
    created_at: datetime
    updated_at: datetime
    precedence: Annotated[int, Spec("If two patterns match, the higher value wins", examples=(0,))] = 0


@dataclass(frozen=True)
class TableLevel:
    """The settings for one table. `settings` has only the members that were set."""

    settings: Mapping[str, Any]
    updated_at: datetime


@dataclass(frozen=True)
class Pause:
    """The pause of all tables, during which the service starts no jobs by itself."""

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
