"""The row of a table in the overview."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from jobs.contract import JobKind
from service.api.answers import Shown
from service.api.structs import made
from service.api.table_models import IncidentCounts
from service.catalog.table_statistics import TableBacklog
from service.health import overview
from service.health.fleet_problems import FleetProblems
from service.health.overview import Health, ListedTable, TableState
from service.health.overview_store import MOST_LAST_JOBS, PastJob, Shape
from service.health.problem import ProblemKind, Severity
from service.health.upcoming import NextJob, next_job
from service.incidents.incident import IncidentState
from service.scheduling.decision import Decision

_MOST_WARNINGS = 10


@dataclass(frozen=True)
class Lengths:
    """The greatest lengths of the lists inside an overview."""

    problems: int = 20
    active_jobs: int = 50
    problems_of_table: int = 5
    jobs_of_table: int = MOST_LAST_JOBS


WHOLE = Lengths()
BRIEF = Lengths(problems=0, active_jobs=20, problems_of_table=1, jobs_of_table=4)
"""What the first page of the dashboard shows."""


@dataclass(frozen=True)
class Past:
    """What is known about the tables of a page, by table id."""

    jobs: Mapping[str, Sequence[PastJob]]
    decisions: Mapping[str, Mapping[JobKind, Decision]]
    incidents: Mapping[str, Mapping[IncidentState, int]]
    log_ratios: Mapping[str, Sequence[float]]
    acknowledged: Collection[str]  # Ids of problems.


class BriefProblem(Shown):
    """A problem in short. `GET /v1/problems` has its details and remedy."""

    id: str = Field(examples=["prb_8c1d0e5f2a7b4963"])
    kind: ProblemKind = Field(examples=["compaction-behind"])
    severity: Severity = Field(description="How serious the problem is", examples=["warning"])
    title: str = Field(examples=["Compaction is far behind"])
    since: datetime = Field(description="When the problem began, as exactly as this is known")
    is_acknowledged: bool = Field(description="Whether somebody has acknowledged the problem")
    remedy: str = Field(description="What to do", examples=["Compact the table."])


class BacklogOut(Shown, declared=TableBacklog):
    """The work that the table services of a table have not done yet, at the last poll that found something new."""


class PastJobOut(Shown, declared=PastJob):
    """One of a table's last jobs. `GET /v1/jobs/{id}` has its details."""


class NextJobOut(Shown, declared=NextJob):
    """The next job of a table."""


class TableRow(BaseModel):
    """One table. The problems and the backlog are as old as `as_of` says; everything else is current."""

    id: str = Field(examples=["tbl_0f3c2a9d5e7b1c44"])
    name: str = Field(examples=["orders"])
    base_path: str = Field(description="Canonical: absolute, links and `..` resolved", examples=["/lake/orders"])
    owner: str | None
    tags: dict[str, str]
    table_type: str | None = Field(description="Null if the type was not detected", examples=["MERGE_ON_READ"])
    table_version: int | None = Field(description="Null if the version was not detected", examples=[9])
    declared_buckets: int | None = Field(
        description="Number of buckets in the writers' options; null without a bucket index", examples=[4]
    )
    buckets: int | None = Field(
        description="Number of buckets in force, which a hashing config of the table may have changed", examples=[8]
    )
    state: TableState = Field(
        description="`unreadable`: polls fail; `unpolled`: registered, and not polled yet; `busy`: workers hold jobs of"
        " it"
    )
    health: Health | None = Field(
        description="Severity of the table's most serious problem; `healthy` without problems; null if `as_of` is null"
    )
    problems: list[BriefProblem] = Field(description="The five most serious problems, most serious first")
    problem_count: int = Field(description="Number of the table's problems", examples=[2])
    warnings: list[str] = Field(
        description="Found when the table was last examined, at most 10", examples=[["Something is dangling."]]
    )
    incidents: IncidentCounts = Field(description="Unresolved incidents")
    backlog: BacklogOut | None = Field(description="Null before the first poll")
    last_commit_at: datetime | None = Field(description="Null before the first poll, or if there is no commit")
    log_ratio: float | None = Field(
        description="Log bytes divided by base bytes; null without base files", examples=[0.25]
    )
    log_ratios: list[float] = Field(
        description="The ratio at 24 equidistant moments of the last day, or since the first poll; empty without polls",
        examples=[[0.1, 0.2, 0.25]],
    )
    next_job: NextJobOut | None = Field(description="The first job that waits or is suggested; null if there is none")
    jobs: list[PastJobOut] = Field(description="The last 20 jobs, newest first, dry runs included")

    @classmethod
    def of(
        cls,
        table: ListedTable,
        known: FleetProblems,
        shape: Shape,
        past: Past,
        most: Lengths = WHOLE,
    ) -> TableRow:
        backlog = known.backlogs.get(table.id)
        problems = known.of_tables.get(table.id, ())
        profile = shape.profile
        declared = shape.index["num_buckets"] if shape.index else None
        jobs = past.jobs.get(table.id, ())
        return made(
            cls,
            table,
            table_type=profile.get("table_type"),
            table_version=profile.get("table_version"),
            declared_buckets=declared,
            buckets=_buckets(declared, profile),
            health=overview.health(table.id, known) if known.as_of else None,
            problems=[
                made(BriefProblem, each, is_acknowledged=each.id in past.acknowledged)
                for each in problems[: most.problems_of_table]
            ],
            problem_count=len(problems),
            warnings=list(profile.get("warnings") or ())[:_MOST_WARNINGS],
            incidents=IncidentCounts.of(past.incidents.get(table.id, {})),
            backlog=backlog,
            last_commit_at=backlog.last_commit_at if backlog else None,
            log_ratio=backlog.log_ratio if backlog else None,
            log_ratios=past.log_ratios.get(table.id, ()),
            next_job=next_job(jobs, past.decisions.get(table.id, {})),
            jobs=jobs[: most.jobs_of_table],
        )


def _buckets(declared: int | None, profile: Mapping[str, Any]) -> int | None:
    """Returns the writers' number of buckets; if a hashing config overrides it, the number that the files show."""
    layout = profile.get("bucket_layout") or {}
    highest = layout.get("highest_bucket")
    if declared is not None and layout.get("hashing_config") and highest is not None:
        return max(declared, int(highest) + 1)
    return declared
