"""/v1/overview: the state of the whole installation, and one page of its tables"""

from __future__ import annotations

import logging
from collections import Counter
from datetime import datetime
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from jobs.kinds.words import NO_NUL
from service.api.answers import Shown
from service.api.dependencies import FleetDep
from service.api.health_problems import HealthProblemOut, SeverityCounts
from service.api.job_models import JobOut, Prospects
from service.api.overview_rows import BRIEF, WHOLE, Lengths, Past, TableRow
from service.api.policy_models import PauseOut
from service.api.query_parameters import AnyOf, OfOwners
from service.api.routes import Routes
from service.api.structs import answered, made, struct_of
from service.api.table_models import IncidentCounts
from service.catalog import sample_store
from service.db.documents import AtOnce
from service.db.engine import reading
from service.delegation.inbox import SUGGESTION
from service.delivery import outbox
from service.delivery.webhook import DeliveryState
from service.health import acknowledgement_store, overview, overview_store
from service.health.fleet_problems import groups_of
from service.health.late_services import CURRENT
from service.health.overview import Filter, Health, Order, TableState
from service.health.overview_store import Suggestion, WebhookCounts
from service.health.problem import ProblemKind
from service.health.problem_groups import ProblemGroup
from service.health.result_cache import MOST_AGE_AT_ONCE, UP_TO_DATE
from service.incidents import store as incident_store
from service.incidents.incident import IncidentState
from service.lake.table import TableType
from service.metrics.installation import Installation
from service.model.errors import DatabaseUnavailableError, FleetUnavailableError
from service.policies import pause_store
from service.queue.job import JobState
from service.queue.waiting import waiting_of
from service.scheduling import decision_store

log = logging.getLogger(__name__)

router = Routes(prefix="/v1", tags=["problems"])

_SUGGESTIONS = 20
_TREND_POINTS = 24
_FACTS = AtOnce(
    overview_store.SHAPES,
    incident_store.COUNTS,
    incident_store.UNRESOLVED,
    overview_store.SUGGESTIONS,
    overview_store.WEBHOOKS,
)


class TableRows(BaseModel):
    items: list[TableRow]
    total: int = Field(description="All registered tables", examples=[1000])
    matching: int = Field(description="Those that the filter selects", examples=[37])
    before: int = Field(description="Number of these tables on earlier pages", examples=[0])
    next_cursor: str | None = Field(description="For the next page, with the same filter and order; null at the end")


class ProblemGroupOut(Shown, declared=ProblemGroup):
    """Problems that have one cause, although they may be about several objects."""


class ProblemsNow(BaseModel):
    as_of: datetime | None = Field(
        description="When the problems and backlogs were computed. If that was more than some seconds ago, this call"
        " has started a new computation for later calls. Null after a start with very many tables, while they have"
        " not been computed; the counts and lists are then empty"
    )
    counts: SeverityCounts = Field(description="Counts of all problems, whatever the filter of the tables")
    groups: list[ProblemGroupOut] = Field(description="All problems, those with one cause in one group")
    items: list[HealthProblemOut] = Field(description="The 20 most serious ones; `GET /v1/problems` lists all")


class ActiveJobs(BaseModel):
    queued: int = Field(description="Jobs that no worker has", examples=[3])
    leased: int = Field(description="Jobs that a worker has leased and not begun", examples=[0])
    running: int = Field(description="Jobs that a worker runs", examples=[2])
    forecast: dict[str, str] = Field(
        description="Length of the queue of each worker group, in words; groups without jobs are left out",
        examples=[{"default": "99 queued, about 8 min with 1 slot"}],
    )
    items: list[JobOut] = Field(description="At most 50: those that workers hold first, then the oldest")


class SuggestionOut(BaseModel):
    """A table that is not registered although its writer delegates table services."""

    base_path: str = Field(examples=["/lake/orders"])
    table_name: str = Field(examples=["orders"])
    plans: int = Field(description="Plans that the writer has delegated", examples=[2])
    hint: str = Field(description="The remedy")

    @classmethod
    def of(cls, suggestion: Suggestion, hint: str) -> SuggestionOut:
        return made(cls, suggestion, hint=hint)


class WebhookSummary(BaseModel):
    total: int = Field(description="Number of webhooks", examples=[3])
    failing: int = Field(description="Enabled webhooks whose last delivery failed", examples=[1])
    disabled: int = Field(description="Disabled webhooks", examples=[0])
    pending: int = Field(description="Deliveries that are due, or wait for their next attempt", examples=[12])
    given_up: int = Field(description="Deliveries that can be replayed", examples=[0])

    @classmethod
    def of(cls, counts: WebhookCounts) -> WebhookSummary:
        return struct_of(cls)(
            total=counts.webhooks,
            failing=counts.failing,
            disabled=counts.disabled,
            pending=counts.deliveries.get(DeliveryState.PENDING, 0),
            given_up=counts.deliveries.get(DeliveryState.DEAD, 0),
        )


class WorkerSummary(BaseModel):
    alive: int = Field(description="Number of workers that were seen within a minute", examples=[2])
    ready: int = Field(description="Number of workers that take jobs", examples=[2])
    slots: int = Field(description="Number of jobs that the ready workers can run at once", examples=[4])
    busy: int = Field(description="Number of jobs that workers hold", examples=[1])


class Overview(BaseModel):
    at: datetime = Field(description="The service's time of this answer")
    event_id: int = Field(
        description="The newest event at this time. To continue from this answer, pass it as `after` to the stream "
        "of events"
    )
    problems: ProblemsNow = Field(description="Everything that is wrong")
    pause: PauseOut = Field(description="The pause of automatic jobs on all tables")
    jobs: ActiveJobs = Field(description="Jobs that have not ended")
    incidents: IncidentCounts = Field(description="Unresolved incidents of all tables")
    suggestions: list[SuggestionOut] = Field(description="At most 20")
    webhooks: WebhookSummary = Field(description="Webhooks and their deliveries")
    workers: WorkerSummary = Field(description="Workers of all groups")
    tables: TableRows = Field(description="One page of tables")


@router.reader(
    "GET /overview", "Show the state of everything, and a page of tables with their last jobs", FleetUnavailableError
)
def get_overview(
    fleet: FleetDep,
    *,
    q: Annotated[
        str,
        Query(max_length=200, pattern=NO_NUL, description="A part of the name or path, in upper or lower case"),
    ] = "",
    health: Annotated[
        list[Health], Query(max_length=10, description="The most serious problem. May be repeated. Default: any")
    ] = [],
    kind: Annotated[
        list[ProblemKind], Query(max_length=50, description="A problem of this kind. May be repeated. Default: any")
    ] = [],
    table_type: AnyOf[TableType] = [],
    state: AnyOf[TableState] = [],
    selection: OfOwners,
    sort: Annotated[
        Order,
        Query(
            description="`problems`: the most serious first; `backlog`: the most bytes of logs first; `ratio`: the"
            " most logs beside their base files first; `commit`: the"
            " last commit first; `silent`: the longest without a commit first; `registered`: the newest first"
        ),
    ] = Order.PROBLEMS,
    limit: Annotated[int, Query(ge=1, le=200, description="Maximum number of tables on a page")] = 50,
    cursor: Annotated[str | None, Query(max_length=2000, description="`next_cursor` of the previous page")] = None,
    brief: Annotated[
        bool,
        Query(
            description="Shortens the answer to about half of its bytes: `problems.items` is empty, `jobs.items` has at"
            " most 20 jobs, and each table has its most serious problem and its last 4 jobs"
        ),
    ] = False,
) -> Overview:
    """Returns all data of the dashboard's first page. The filter and the order apply to the tables. Problems and
    backlogs are some seconds old. If there are many thousands of tables, their list is also some seconds old, so that a
    call takes milliseconds. After a pause of some minutes, the first call then gets problems that are minutes old."""
    wanted = Filter(q, health, kind, table_type, state, selection)
    most = BRIEF if brief else WHOLE
    return answered(fleet, overview_of, wanted, sort, most, limit=limit, cursor=cursor)


def overview_of(
    installation: Installation,
    wanted: Filter,
    order: Order,
    most: Lengths,
    *,
    limit: int = 50,
    cursor: str | None = None,
) -> Overview:
    database, monitoring = installation.database, installation.monitoring
    problems = monitoring.problems
    known = problems.known(database.engine, database.clock)
    if known.as_of is None and (wanted.health or wanted.kinds):
        known = problems.known(database.engine, database.clock, UP_TO_DATE)
    outlook = monitoring.forecaster.outlook(database.engine, database.clock, most_age=MOST_AGE_AT_ONCE)
    now = database.clock()
    with reading(database.engine) as connection:
        # The position is read first. So an event that is published during this call may be seen twice, but is not
        # missed.
        event_id = outbox.newest(connection)
    tables = problems.tables(database.engine, database.clock)
    with reading(database.engine) as connection:
        activity = overview_store.activity(connection)
        selected = overview.select(tables, known, wanted, order, limit=limit, cursor=cursor)
        ids = [table.id for table in selected.tables]
        shapes, incidents_of, unresolved, suggestions, webhooks = _FACTS.read(
            connection, {"of_tables": ids, "most": _SUGGESTIONS}
        )
        acknowledged = acknowledgement_store.every(connection, now)
        past = Past(
            jobs=overview_store.last_jobs(connection, ids, most.jobs_of_table),
            decisions=decision_store.current(connection, now - CURRENT, ids),
            incidents=incidents_of,
            acknowledged=acknowledged,
            log_ratios=sample_store.log_ratios(connection, ids, now, _TREND_POINTS),
        )
        jobs = overview_store.active_jobs(connection, most.active_jobs)
        waiting = waiting_of(connection, jobs, now)
        pause = pause_store.pause_of(connection)
    incidents: Counter[IncidentState] = Counter()
    for (_, incident_state), number in unresolved.items():
        incidents[incident_state] += number
    prospects = Prospects(waiting.names, waiting.waits, outlook)
    alive = [worker for worker in waiting.workers if worker.is_alive(now)]
    ready = [worker for worker in alive if worker.is_ready]
    return struct_of(Overview)(
        at=now,
        event_id=event_id,
        problems=struct_of(ProblemsNow)(
            as_of=known.as_of,
            counts=struct_of(SeverityCounts)(**{severity.value: number for severity, number in known.counts.items()}),
            groups=[ProblemGroupOut.of(each) for each in groups_of(known, frozenset(acknowledged))],
            items=[HealthProblemOut.of_known(each, acknowledged) for each in known.problems[: most.problems]],
        ),
        pause=PauseOut.of(pause),
        jobs=struct_of(ActiveJobs)(
            queued=activity.jobs.get(JobState.QUEUED, 0),
            leased=activity.jobs.get(JobState.LEASED, 0),
            running=activity.jobs.get(JobState.RUNNING, 0),
            forecast={name: group.summary for name, group in outlook.groups.items() if group.queued},
            items=[JobOut.of(job, prospects) for job in jobs],
        ),
        incidents=IncidentCounts.of(incidents),
        suggestions=[SuggestionOut.of(each, SUGGESTION) for each in suggestions],
        webhooks=WebhookSummary.of(webhooks),
        workers=struct_of(WorkerSummary)(
            alive=len(alive),
            ready=len(ready),
            slots=sum(worker.info.slots or 1 for worker in ready),
            busy=sum(len(worker.job_ids) for worker in alive),
        ),
        tables=struct_of(TableRows)(
            items=[TableRow.of(table, known, shapes[table.id], past, most) for table in selected.tables],
            total=selected.total,
            matching=selected.matching,
            before=selected.before,
            next_cursor=selected.next_cursor,
        ),
    )


def prepare(installation: Installation) -> None:
    """Computes an answer and the metrics in advance if there are many tables, so that the first call takes no longer
    than others."""
    try:
        if installation.monitoring.problems.prepare(installation.database.engine):
            overview_of(installation, Filter(), Order.PROBLEMS, WHOLE)
            installation.state.read()
    except DatabaseUnavailableError as error:
        # The first call tries again, and reports the error if it persists.
        log.warning("The overview and the metrics cannot be prepared: %s", error)
