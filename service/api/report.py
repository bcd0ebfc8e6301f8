"""/v1/report: the work of the service in a period, and its cost"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from service.api.answers import Shown
from service.api.dependencies import DatabaseDep, ExposureDep
from service.api.query_parameters import Limit, OfOwners, Since, Until
from service.api.routes import Routes
from service.api.structs import made, struct_of
from service.catalog import table_store
from service.db.engine import reading
from service.events.database import Database
from service.health.problem_history import ProblemCounts
from service.model.errors import ParamsInvalidError
from service.queue.attempt_figures import Figures
from service.reports import fleet_samples, report
from service.reports.fleet_samples import TrendPoint
from service.reports.report import Group, GroupBy

router = Routes(prefix="/v1", tags=["jobs"])

_WEEK = timedelta(days=7)
_LONGEST = timedelta(days=366)


class FiguresOut(Shown, declared=Figures):
    """Work and cost of attempts. Amounts of data are those of successful attempts, without dry runs."""

    cost: float | None = Field(
        None,
        description="`gb_seconds` as hours, times GROUNDSKEEPER_PRICE_PER_GB_HOUR; null without that setting",
        examples=[1.25],
    )

    @classmethod
    def priced(cls, figures: Figures, price: float | None) -> FiguresOut:
        return made(cls, figures, cost=report.cost(figures, price))


class ReportGroup(BaseModel):
    key: str | None = Field(
        description="Id of the table, owner, tag (`key=value`, or `key`) or kind of job; null for tables without an"
        " owner or without a tag",
        examples=["team=shop"],
    )
    name: str | None = Field(description="The table's name if `by=table`; null if the table is no longer registered")
    tables: int = Field(description="Tables in this group on which something ran", examples=[12])
    figures: FiguresOut = Field(description="The sums of the group")

    @classmethod
    def of(cls, group: Group, price: float | None) -> ReportGroup:
        return made(cls, group, figures=FiguresOut.priced(group.figures, price))


class ProblemCountsOut(Shown, declared=ProblemCounts):
    """Problems that opened and ended in the period."""


class ReportOut(BaseModel):
    since: datetime
    until: datetime = Field(description="The end of the period", examples=["2026-01-08T12:00:00Z"])
    by: GroupBy = Field(description="How the figures are grouped", examples=["owner"])
    tables: int = Field(description="Tables on which something ran", examples=[31])
    total: FiguresOut = Field(description="The sums of all attempts, each counted once")
    groups: list[ReportGroup] = Field(
        description="The groups; those on which workers spent the most time come first. If `by=tag`, an attempt is "
        "counted in the group of each tag of its table"
    )
    left_out: int = Field(description="Groups beyond `limit`", examples=[0])
    problems: ProblemCountsOut = Field(
        description="Counts of the period's problems, which are known for GROUNDSKEEPER_EVENTS_DAYS"
    )
    text: str = Field(
        description="The report as short plain text, for a message",
        examples=["Groundskeeper from 2026-01-01 to 2026-01-08: 31 tables, 412 attempts succeeded, 3 failed."],
    )


class TrendPointOut(Shown, declared=TrendPoint):
    """A step of time."""


class TrendOut(BaseModel):
    since: datetime
    until: datetime = Field(description="The end of the period", examples=["2026-01-08T12:00:00Z"])
    step_seconds: int = Field(description="Length of a step", examples=[3600])
    items: list[TrendPointOut] = Field(description="The steps, oldest first; a step without a sample is missing")


@router.reader("GET /report/trend", "Show how the fleet has developed")
def get_trend(database: DatabaseDep, *, since: Since = None, until: Until = None) -> TrendOut:
    """Shows backlog, ended jobs, use of slots and freed bytes in at most 200 steps. The default period is the last
    seven days; at most 366 days are possible. All tables are sampled every five minutes."""
    begin, end = _period(database, since, until)
    with reading(database.engine) as connection:
        found = fleet_samples.trend(connection, begin, end)
    return struct_of(TrendOut)(
        since=begin,
        until=end,
        step_seconds=int(found.step.total_seconds()),
        items=[TrendPointOut.of(each) for each in found.points],
    )


def _period(database: Database, since: datetime | None, until: datetime | None) -> tuple[datetime, datetime]:
    end = until or database.clock()
    begin = since or end - _WEEK
    if not timedelta() < end - begin <= _LONGEST:
        message = "must be before `until`, by at most 366 days"
        raise ParamsInvalidError(f"since: {message}", extensions={"errors": [{"field": "since", "message": message}]})
    return begin, end


@router.reader("GET /report", "Sum up the work of the service in a period, and its cost")
def get_report(
    database: DatabaseDep,
    exposure: ExposureDep,
    *,
    since: Since = None,
    until: Until = None,
    by: Annotated[GroupBy, Query(description="How the figures are grouped")] = GroupBy.TABLE,
    selection: OfOwners,
    limit: Limit = 100,
) -> ReportOut:
    """Counts the attempts that ended in the period from `since` to `until` (exclusive). The default is the last seven
    days; at most 366 days are possible. Figures are kept for GROUNDSKEEPER_SAMPLE_DAYS, which is longer than jobs are
    kept."""
    begin, end = _period(database, since, until)
    with reading(database.engine) as connection:
        within = None if selection.is_open else table_store.ids_of(connection, selection)
        found = report.read(connection, begin, end, by, within=within, limit=limit)
    price = exposure.price_per_gb_hour
    return struct_of(ReportOut)(
        since=begin,
        until=end,
        by=by,
        tables=found.tables,
        total=FiguresOut.priced(found.total, price),
        groups=[ReportGroup.of(each, price) for each in found.groups],
        left_out=found.left_out,
        problems=ProblemCountsOut.of(found.problems),
        text=report.as_text(found, price),
    )
