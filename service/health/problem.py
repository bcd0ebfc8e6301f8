"""The model of problems: what is wrong now with a table, a worker, a worker group or a webhook. These are not the
problem documents of RFC 9457, which describe a refused call or a failed job."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any

from jobs.spec import Documented, Spec
from service.health.next_step import Action, Step


class Severity(StrEnum):
    """The severity of a problem. `CRITICAL`: readers get wrong rows or none, or no work is done any more. `WARNING`:
    the problem becomes worse by itself. `NOTICE`: the problem costs something, and can wait."""

    CRITICAL = "critical"
    WARNING = "warning"
    NOTICE = "notice"


RANKS: Mapping[Severity, int] = {severity: rank for rank, severity in enumerate(Severity)}


class ProblemKind(StrEnum):
    """The kinds of problems. The function of `service.health` that finds a kind is next to its text and threshold."""

    TABLE_UNREADABLE = "table-unreadable"
    TABLE_NOT_POLLED = "table-not-polled"
    TABLE_NOT_WRITABLE = "table-not-writable"
    COMMITS_VANISHED = "commits-vanished"
    COMMITS_MISSED = "commits-missed"
    INCIDENT_STANDING = "incident-standing"
    DEAD_WRITER = "dead-writer"
    PLAN_STUCK = "plan-stuck"
    OTHER_RUNNER = "other-runner"
    CLOCKS_DISAGREE = "clocks-disagree"
    COMPACTION_BEHIND = "compaction-behind"
    COMPACTION_BACKLOG_GROWING = "compaction-backlog-growing"
    CLEANING_BEHIND = "cleaning-behind"
    OBJECTIVE_MISSED = "objective-missed"
    TIMELINE_LONG = "timeline-long"
    METADATA_TABLE_BEHIND = "metadata-table-behind"
    METADATA_TABLE_INCOMPLETE = "metadata-table-incomplete"
    BUCKET_TOO_LARGE = "bucket-too-large"
    BUCKETS_SKEWED = "buckets-skewed"
    SMALL_FILES = "small-files"
    POLICY_CANNOT_ACT = "policy-cannot-act"
    POLICY_WARNING = "policy-warning"
    JOBS_HELD_UP = "jobs-held-up"
    JOB_FAILING = "job-failing"
    JOB_HELD_BACK = "job-held-back"
    JOB_UNSETTLED = "job-unsettled"
    LOCK_AWAITED = "lock-awaited"
    LOCK_HELD_LONG = "lock-held-long"
    GROUP_WITHOUT_WORKER = "group-without-worker"
    WORKER_LOST = "worker-lost"
    WEBHOOK_FAILING = "webhook-failing"
    WEBHOOK_DISABLED = "webhook-disabled"
    DELIVERIES_GIVEN_UP = "deliveries-given-up"
    JOBS_PAUSED = "jobs-paused"
    CATALOG_FAILING = "catalog-failing"
    CATALOG_DIFFERS = "catalog-differs"

    @property
    def is_of_table(self) -> bool:
        return self not in _OF_OTHERS


_OF_OTHERS = frozenset(
    {
        ProblemKind.GROUP_WITHOUT_WORKER,
        ProblemKind.WORKER_LOST,
        ProblemKind.WEBHOOK_FAILING,
        ProblemKind.WEBHOOK_DISABLED,
        ProblemKind.DELIVERIES_GIVEN_UP,
        ProblemKind.JOBS_PAUSED,
        ProblemKind.CATALOG_FAILING,
        ProblemKind.CATALOG_DIFFERS,
    }
)


class ObjectType(StrEnum):
    TABLE = "table"
    GROUP = "group"
    WORKER = "worker"
    WEBHOOK = "webhook"
    CATALOG = "catalog"
    SERVICE = "service"


@dataclass(frozen=True)
class About(Documented):
    """The object that has the problem."""

    type: Annotated[ObjectType, Spec("Type of the object", examples=("table",))]
    id: Annotated[str, Spec("Id of the object; for a worker group, its name", examples=("tbl_0f3c2a9d5e7b1c44",))]
    name: Annotated[str, Spec("Its name", examples=("orders",))]


Figure = str | int | float | bool | None | Sequence[str]


@dataclass(frozen=True)
class HealthProblem(Documented):
    """A problem that exists now. Detail, consequence and remedy are sentences. Command and action apply the remedy, or
    show facts that it needs (`service.health.next_step`)."""

    kind: Annotated[ProblemKind, Spec("Kind of problem", examples=("compaction-behind",))]
    severity: Annotated[
        Severity,
        Spec(
            "`critical`: rows are wrong or unreadable, or nothing is done any more; `warning`: it becomes worse"
            " by itself; `notice`: it can wait"
        ),
    ]
    about: About
    since: Annotated[datetime, Spec("When the problem began, as exactly as this is known")]
    title: Annotated[str, Spec("What is wrong", examples=("Compaction is far behind",))]
    detail: Annotated[
        str,
        Spec(
            "The evidence in a sentence",
            examples=(
                "21 commits since the last compaction (threshold 5), with 3.1 GiB of logs beside 1.9 GiB of data.",
            ),
        ),
    ]
    consequence: Annotated[
        str, Spec("What happens if nobody does anything", examples=("Queries merge ever more log files.",))
    ]
    remedy: Annotated[str, Spec("What to do", examples=("Compact the table.",))]
    command: Annotated[
        str,
        Spec(
            "A line for a shell that applies the remedy, or shows facts that it needs. Replace words in angle "
            "brackets, such as `<COLUMN>`; until then a shell refuses the line",
            examples=("groundskeeper jobs run compaction tbl_0f3c2a9d5e7b1c44",),
        ),
    ]
    evidence: Annotated[
        Mapping[str, Figure],
        Spec(
            "Figures that depend on the kind",
            examples=(
                {"commits": 21, "threshold": 5, "log_bytes": 3328599654, "base_bytes": 2040109465, "enabled": True},
            ),
        ),
    ] = field(default_factory=dict)
    action: Action | None = None
    part: str = ""  # Distinguishes several problems of one kind and object, for example by the kind of job.

    @cached_property
    def id(self) -> str:
        """The id stays the same while the problem lasts, and is the same again if the problem comes back."""
        # `str` is much faster than the `value` of an enum.
        parts = (str(self.kind), str(self.about.type), self.about.id, self.part)
        return f"prb_{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}"

    @cached_property
    def place(self) -> tuple[int, datetime, str]:
        """The sort key: the most serious problem comes first, and among equals the oldest."""
        return RANKS[self.severity], self.since, self.id

    @property
    def words(self) -> dict[str, Any]:
        """The texts, the evidence and the action, as JSON."""
        return {
            "title": self.title,
            "detail": self.detail,
            "consequence": self.consequence,
            "remedy": self.remedy,
            "command": self.command,
            "evidence": dict(self.evidence),
            "action": dict(vars(self.action)) if self.action else None,
        }

    @property
    def table_id(self) -> str | None:
        return self.about.id if self.about.type is ObjectType.TABLE else None


@dataclass(frozen=True)
class Definition:
    """The texts of one kind of problem. A single problem may have another severity or remedy."""

    kind: ProblemKind
    severity: Severity
    title: str
    consequence: str
    remedy: str

    def of(
        self,
        about: About,
        since: datetime,
        detail: str,
        evidence: Mapping[str, Figure],
        *,
        step: Step,
        part: str = "",
        severity: Severity | None = None,
        remedy: str | None = None,
    ) -> HealthProblem:
        return HealthProblem(
            kind=self.kind,
            severity=severity or self.severity,
            about=about,
            since=since,
            title=self.title,
            detail=detail,
            consequence=self.consequence,
            remedy=remedy or self.remedy,
            command=step.command,
            evidence=evidence,
            action=step.action,
            part=part,
        )
